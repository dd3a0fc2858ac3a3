//! etcd, alone or as a cluster.

use std::path::Path;

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::server::{Plan, directory, free_port, text};
use crate::setup::Setup;

struct Ports {
    client: u16,
    peer: u16,
}

pub(crate) fn launch(members: usize, setup: &Setup) -> Plan {
    assert!(members > 0, "a cluster has at least one member");
    let dir = directory("etcd");
    let ports: Vec<_> = (0..members).map(|_| Ports { client: free_port(), peer: free_port() }).collect();
    let cluster: Vec<_> =
        ports.iter().enumerate().map(|(n, port)| format!("m{n}=http://127.0.0.1:{}", port.peer)).collect();
    let cluster = cluster.join(",");
    let launch = |(n, port)| member(n, port, &cluster, dir.path(), setup);
    let launches = ports.iter().enumerate().map(launch).collect();
    let endpoints: Vec<_> = ports.iter().map(|port| format!("http://127.0.0.1:{}", port.client)).collect();
    Plan { members: launches, url: endpoints[0].clone(), endpoints, dir }
}

fn member(n: usize, port: &Ports, cluster: &str, dir: &Path, setup: &Setup) -> Launch {
    let (client, peer) =
        (format!("http://127.0.0.1:{}", port.client), format!("http://127.0.0.1:{}", port.peer));
    let data = text(&dir.join(format!("m{n}")));
    let name = format!("m{n}");
    let ours = [
        ("name", name.as_str()),
        ("data-dir", &data),
        ("listen-client-urls", &client),
        ("advertise-client-urls", &client),
        ("listen-peer-urls", &peer),
        ("initial-advertise-peer-urls", &peer),
        ("initial-cluster", cluster),
    ];
    let args = ours.into_iter().chain(setup.settings()).map(|(name, value)| format!("--{name}={value}"));
    let program = find::program("etcd", "etcd-server");
    Launch {
        program,
        args: args.collect(),
        ready: "ready to serve client requests",
        stop: Signal::KILL,
        leftover: None,
    }
}
