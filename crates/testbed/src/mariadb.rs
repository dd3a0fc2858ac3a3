//! MariaDB.

use rustix::process::Signal;

use crate::find;
use crate::member::{Launch, unprivileged};
use crate::port::free_port;
use crate::server::{Plan, directory, prepare, text};
use crate::setup::Setup;

const PACKAGE: &str = "mariadb-server";

pub(crate) fn launch(setup: &Setup) -> Plan {
    let (dir, port) = (directory("mariadb"), free_port());
    let data = text(&dir.path().join("data"));
    let mut init = unprivileged(&find::program("mariadb-install-db", PACKAGE), None);
    init.args(["--no-defaults", "--auth-root-authentication-method=normal", "--skip-name-resolve"]);
    init.arg(format!("--datadir={data}"));
    prepare(init);
    let mut args = vec!["--no-defaults".to_owned(), format!("--datadir={data}"), format!("--port={port}")];
    args.extend(["--bind-address=127.0.0.1".to_owned(), "--skip-name-resolve".into()]);
    args.push(format!("--socket={}", text(&dir.path().join("socket"))));
    args.push(format!("--tmpdir={}", text(dir.path())));
    if !setup.fsync() {
        args.push("--innodb-flush-log-at-trx-commit=0".into());
    }
    args.extend(setup.settings().map(|(name, value)| format!("--{name}={value}")));
    let program = find::program("mariadbd", PACKAGE);
    let member = Launch { program, args, ready: "ready for connections", stop: Signal::KILL, leftover: None };
    let url = format!("mysql://root@127.0.0.1:{port}/test");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
