//! An etcd of its own, with one member, in the cluster's directory.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::time::Instant;

use super::process::{Process, find};
use crate::failure::Failure;

const READY: Duration = Duration::from_secs(30);
/// A port that was free can be taken by another before etcd has it.
const ATTEMPTS: usize = 5;

/// Where etcd is, if it is installed.
pub(super) fn etcd_program() -> Option<PathBuf> {
    find("etcd")
}

/// See the module.
pub(super) struct PrivateEtcd {
    _process: Process,
    client_port: u16,
}

impl PrivateEtcd {
    pub(super) async fn start(dir: &Path) -> Result<Self, Failure> {
        let program = etcd_program().ok_or_else(|| {
            let hint = "install it (Debian: etcd-server), or name an engine with --journal";
            Failure::Failed(format!("there is no etcd on this machine; {hint}"))
        })?;
        for _ in 1..ATTEMPTS {
            if let Ok(started) = Self::attempt(&program, dir).await {
                return Ok(started);
            }
        }
        Self::attempt(&program, dir).await
    }

    async fn attempt(program: &Path, dir: &Path) -> Result<Self, Failure> {
        let (client_port, peer_port) = (free_port()?, free_port()?);
        let url = |port: u16| format!("http://127.0.0.1:{port}");
        let (client, peer) = (url(client_port), url(peer_port));
        let args = [
            "--name=dev".to_owned(),
            format!("--data-dir={}", dir.join("etcd").display()),
            format!("--listen-client-urls={client}"),
            format!("--advertise-client-urls={client}"),
            format!("--listen-peer-urls={peer}"),
            format!("--initial-advertise-peer-urls={peer}"),
            format!("--initial-cluster=dev={peer}"),
            "--auto-compaction-mode=periodic".to_owned(),
            "--auto-compaction-retention=5m".to_owned(),
        ];
        let mut process = Process::start(program, &args, &[], dir.join("etcd.log"))?;
        process.until_said("ready to serve client requests", Instant::now() + READY).await?;
        Ok(Self { _process: process, client_port })
    }

    /// Where the journal is.
    pub(super) fn url(&self) -> String {
        format!("etcd://127.0.0.1:{}", self.client_port)
    }
}

fn free_port() -> Result<u16, Failure> {
    let found = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    found
        .map(|address| address.port())
        .map_err(|error| Failure::Io { what: "cannot find a free port".into(), error })
}
