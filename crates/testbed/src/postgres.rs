//! PostgreSQL.

use rustix::process::Signal;

use crate::find;
use crate::member::{Launch, unprivileged};
use crate::port::free_port;
use crate::server::{Plan, directory, prepare, text};
use crate::setup::Setup;

pub(crate) fn launch(setup: &Setup) -> Plan {
    let (dir, port, bin) = (directory("postgres"), free_port(), find::postgres_programs());
    let data = text(&dir.path().join("data"));
    let mut init = unprivileged(&bin.join("initdb"), None);
    // Not synced here: nobody asks whether an empty cluster survives a power cut.
    init.args(["--no-sync", "--no-instructions", "--username=postgres", "--auth=trust", "--encoding=UTF8"]);
    init.args(["--locale=C", "--pgdata", &data]);
    prepare(init);
    let mut args =
        vec!["-D".to_owned(), data, "-p".into(), port.to_string(), "-h".into(), "127.0.0.1".into()];
    args.extend(["-k".to_owned(), text(dir.path())]);
    let ours = [("timezone", "UTC"), ("fsync", if setup.fsync() { "on" } else { "off" })];
    let tls = setup
        .tls()
        .map(|files| [("ssl", "on"), ("ssl_cert_file", &files.certificate), ("ssl_key_file", &files.key)]);
    let all = ours.into_iter().chain(tls.into_iter().flatten()).chain(setup.settings());
    args.extend(all.flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]));
    let ready = "database system is ready to accept connections";
    // QUIT is PostgreSQL's immediate shutdown: as abrupt as KILL, but its shared memory goes too.
    let leftover = Some(dir.path().join("data/postmaster.pid"));
    let member = Launch { program: bin.join("postgres"), args, ready, stop: Signal::QUIT, leftover };
    let url = format!("postgres://postgres@127.0.0.1:{port}/postgres");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
