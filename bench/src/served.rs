//! A Leasehold server of the release binary.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use leasehold_tests::{Server as Node, binary, free_port};
use tempfile::TempDir;

/// A Leasehold server with its directory.
pub(crate) struct Served {
    pub(crate) node: Node,
    dir: TempDir,
}

impl Served {
    /// On the embedded journal, or on the one at this URL.
    pub(crate) fn start(journal: Option<&str>) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let more: Vec<&str> = journal.map_or_else(Vec::new, |url| vec!["--journal", url]);
        Ok(Self { node: serve(free_port(), &dir, &more), dir })
    }

    /// Killed and started again on the same directory; returns when it is ready.
    pub(crate) fn restart(self) -> Self {
        let Self { node, dir } = self;
        let port = node.port();
        node.kill9();
        Self { node: serve(port, &dir, &[]), dir }
    }
}

/// A server that logs as little as its peers do: none of them writes a line for every lock.
fn serve(port: u16, dir: &TempDir, more: &[&str]) -> Node {
    // However this program ends, it leaves no server behind.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary::path());
    command.arg("serve").env("LEASEHOLD_LOG", "warn,leasehold::locks=off");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut node = Node::spawn_by(command, address, &dir.path().join("data"), more);
    node.wait_ready();
    node
}
