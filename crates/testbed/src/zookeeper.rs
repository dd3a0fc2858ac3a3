//! ZooKeeper, stand-alone.

use std::fs;

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::server::{Plan, directory, free_port, text};
use crate::setup::Setup;

pub(crate) fn launch(setup: &Setup) -> Plan {
    let (dir, port) = (directory("zookeeper"), free_port());
    let (data, port_text) = (text(&dir.path().join("data")), port.to_string());
    let ours = [("tickTime", "500"), ("dataDir", &data), ("clientPort", &port_text)];
    let fixed = [("clientPortAddress", "127.0.0.1"), ("admin.enableServer", "false")];
    let sync = [("forceSync", if setup.fsync() { "yes" } else { "no" })];
    let all = ours.into_iter().chain(fixed).chain(sync).chain(setup.settings());
    let lines: String = all.map(|(name, value)| format!("{name}={value}\n")).collect();
    let config = dir.path().join("zoo.cfg");
    fs::write(&config, lines).expect("the directory is fresh");
    fs::set_permissions(&config, std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .expect("the file is ours");
    let jars = [find::file("/usr/share/java/zookeeper.jar", "zookeeper")];
    // Without it ZooKeeper prints nothing, and nobody knows when it serves.
    let log = [find::file("/usr/share/java/slf4j-simple.jar", "libslf4j-java")];
    let classes: Vec<_> = jars.iter().chain(&log).map(|jar| text(jar)).collect();
    let mut args =
        vec!["-cp".to_owned(), classes.join(":"), "-Xmx256m".into(), "-XX:TieredStopAtLevel=1".into()];
    args.extend(["org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned(), text(&config)]);
    let program = find::program("java", "default-jre-headless");
    // The last line that ZooKeeper prints while it starts.
    let member = Launch { program, args, ready: "ZooKeeper audit is", stop: Signal::KILL, leftover: None };
    let url = format!("127.0.0.1:{port}");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
