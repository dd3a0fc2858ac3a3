//! ZooKeeper, stand-alone or as an ensemble.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::{Signal, geteuid};

use crate::find;
use crate::member::{Launch, NOBODY};
use crate::port::free_port;
use crate::server::{Plan, directory, text};
use crate::setup::Setup;

/// Ports for clients, for followers, and for elections.
struct Ports {
    client: u16,
    peer: u16,
    election: u16,
}

pub(crate) fn launch(members: usize, setup: &Setup) -> Plan {
    assert!(members > 0, "an ensemble has at least one member");
    let dir = directory("zookeeper");
    let ports: Vec<_> = (0..members)
        .map(|_| Ports { client: free_port(), peer: free_port(), election: free_port() })
        .collect();
    let ensemble: Vec<_> = ports
        .iter()
        .enumerate()
        .map(|(n, port)| (format!("server.{}", n + 1), format!("127.0.0.1:{}:{}", port.peer, port.election)))
        .collect();
    let ensemble = if members == 1 { Vec::new() } else { ensemble };
    let launch = |(n, port): (usize, &Ports)| member(n, port.client, &ensemble, dir.path(), setup);
    let launches = ports.iter().enumerate().map(launch).collect();
    let endpoints: Vec<_> = ports.iter().map(|port| format!("127.0.0.1:{}", port.client)).collect();
    Plan { members: launches, url: endpoints.join(","), endpoints, dir }
}

fn member(n: usize, port: u16, ensemble: &[(String, String)], dir: &Path, setup: &Setup) -> Launch {
    let data_dir = dir.join(format!("data-{n}"));
    let (data, port) = (text(&data_dir), port.to_string());
    let ours = [("tickTime", "500"), ("dataDir", &data), ("initLimit", "20"), ("syncLimit", "6")];
    let place = place(&port, setup);
    let fixed = place.into_iter().chain([("admin.enableServer", "false")]);
    let sync = [("forceSync", if setup.fsync() { "yes" } else { "no" })];
    let peers = ensemble.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let all = ours.into_iter().chain(fixed).chain(sync).chain(peers).chain(setup.settings());
    let lines: String = all.map(|(name, value)| format!("{name}={value}\n")).collect();
    let config = dir.join(format!("zoo-{n}.cfg"));
    write(&config, &lines);
    if !ensemble.is_empty() {
        fs::create_dir(&data_dir).expect("the directory is fresh");
        write(&data_dir.join("myid"), &(n + 1).to_string());
        if geteuid().is_root() {
            std::os::unix::fs::chown(&data_dir, Some(NOBODY), Some(NOBODY)).expect("root may give it away");
        }
    }
    // The last line that ZooKeeper prints while it starts; in an ensemble, once there is a quorum.
    let ready = if ensemble.is_empty() { "ZooKeeper audit is" } else { " - broadcast" };
    let program = find::program("java", "default-jre-headless");
    Launch { program, args: java(&config, setup), ready, stop: Signal::KILL, leftover: None }
}

/// Where clients are served. ZooKeeper has TLS with netty alone.
fn place<'a>(port: &'a str, setup: &'a Setup) -> Vec<(&'a str, &'a str)> {
    let Some(files) = setup.tls() else {
        return vec![("clientPort", port), ("clientPortAddress", "127.0.0.1")];
    };
    vec![
        ("secureClientPort", port),
        ("secureClientPortAddress", "127.0.0.1"),
        ("serverCnxnFactory", "org.apache.zookeeper.server.NettyServerCnxnFactory"),
        ("ssl.keyStore.location", &files.both),
        ("ssl.keyStore.type", "PEM"),
        ("ssl.trustStore.location", &files.certificate),
        ("ssl.trustStore.type", "PEM"),
        ("ssl.clientAuth", "none"),
    ]
}

fn java(config: &Path, setup: &Setup) -> Vec<String> {
    let mut jars = vec![find::file("/usr/share/java/zookeeper.jar", "zookeeper")];
    // Without it ZooKeeper prints nothing, and nobody knows when it serves.
    jars.push(find::file("/usr/share/java/slf4j-simple.jar", "libslf4j-java"));
    // All else that netty needs is named by the archive of ZooKeeper.
    jars.extend(setup.tls().map(|_| find::file("/usr/share/java/netty-codec.jar", "libnetty-java")));
    let classes: Vec<_> = jars.iter().map(|jar| text(jar)).collect();
    let mut args =
        vec!["-cp".to_owned(), classes.join(":"), "-Xmx256m".into(), "-XX:TieredStopAtLevel=1".into()];
    args.extend(["org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned(), text(config)]);
    args
}

fn write(file: &Path, content: &str) {
    fs::write(file, content).expect("the directory is fresh");
    fs::set_permissions(file, fs::Permissions::from_mode(0o644)).expect("the file is ours");
}
