//! A server of its own, for a measurement that nobody else disturbs.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use crate::client::{Call, Client, Server, Servers};
use crate::failure::Failure;

/// A fresh directory is served within a fraction of this.
const READY: Duration = Duration::from_secs(15);

/// A running server on a temporary directory; both go when this is dropped.
pub(super) struct OwnServer {
    server: Server,
    process: Child,
    _directory: TempDir,
}

impl OwnServer {
    /// Starts it and waits until it is ready.
    pub(super) async fn start() -> Result<Self, Failure> {
        let io = |what: &str| {
            let what = what.to_owned();
            move |error| Failure::Io { what, error }
        };
        let directory = tempfile::tempdir().map_err(io("cannot make a temporary directory"))?;
        let port = free_port().map_err(io("cannot find a free port"))?;
        let process = Command::new(std::env::current_exe().map_err(io("cannot find this program"))?)
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
            .arg(directory.path().join("data"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io("cannot start a server"))?;
        let own = Self { server: Server::local(port), process, _directory: directory };
        own.ready().await?;
        Ok(own)
    }

    /// Where it is.
    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    async fn ready(&self) -> Result<(), Failure> {
        let client = Client::new(Servers::only(self.server.clone()));
        let give_up = Instant::now() + READY;
        loop {
            match client.call(&Call::get("/v1/status")).await {
                Ok(_) => return Ok(()),
                Err(failure) if Instant::now() > give_up => return Err(failure),
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        }
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if let Some(pid) = Pid::from_raw(i32::try_from(self.process.id()).unwrap_or(0)) {
            // Already gone is as good.
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.process.wait();
    }
}

/// A port that was free a moment ago.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
