//! A stretch of network between a worker and whatever it talks to, which can hold what is on its way.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::failure::Failure;

/// What happens to the next bytes from the worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Gate {
    /// They pass.
    Open,
    /// So many requests pass, then it closes. A request is what the worker sends after it was answered; `fresh`: the next
    /// bytes begin one.
    Closing { passing: u32, fresh: bool },
    /// They wait.
    Closed,
}

/// A way through which bytes pass until they are held. Everything ends when it is dropped.
pub(super) struct Network {
    address: SocketAddr,
    gate: Arc<watch::Sender<Gate>>,
    accepting: JoinHandle<()>,
}

impl Network {
    /// Leads from a free port of this machine to `target`, a host with a port.
    pub(super) async fn to(target: String) -> Result<Self, Failure> {
        let io = |error| Failure::Io { what: "cannot listen on this machine".into(), error };
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(io)?;
        let address = listener.local_addr().map_err(io)?;
        let gate = Arc::new(watch::Sender::new(Gate::Open));
        let accepting = tokio::spawn(accept(listener, target, gate.clone()));
        Ok(Self { address, gate, accepting })
    }

    /// Where the worker connects.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets so many requests pass and holds everything after them.
    pub(super) fn hold_after(&self, requests: u32) {
        self.gate.send_replace(Gate::Closing { passing: requests, fresh: true });
    }

    /// Completes once something is held.
    pub(super) async fn held(&self) {
        // The sender is ours, so waiting ends with the gate closed.
        let _ = self.gate.subscribe().wait_for(|gate| *gate == Gate::Closed).await;
    }

    /// Delivers what was held, in order, and lets everything pass again.
    pub(super) fn deliver(&self) {
        self.gate.send_replace(Gate::Open);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, target: String, gate: Arc<watch::Sender<Gate>>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                connections.spawn(carry(socket, target.clone(), gate.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(socket: TcpStream, target: String, gate: Arc<watch::Sender<Gate>>) {
    let Ok(server) = TcpStream::connect(target).await else { return };
    // Without this small messages wait for each other.
    let _ = (socket.set_nodelay(true), server.set_nodelay(true));
    let (from_worker, to_worker) = socket.into_split();
    let (from_server, to_server) = server.into_split();
    tokio::join!(requests(from_worker, to_server, &gate), answers(from_server, to_worker, &gate));
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: &watch::Sender<Gate>) {
    let mut room = vec![0; 32 * 1024];
    while let Ok(n @ 1..) = from.read(&mut room).await {
        gate.send_if_modified(|gate| gate.request());
        let opened = gate.subscribe().wait_for(|gate| *gate != Gate::Closed).await.is_ok();
        if !opened || to.write_all(&room[..n]).await.is_err() {
            return;
        }
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, gate: &watch::Sender<Gate>) {
    let mut room = vec![0; 32 * 1024];
    while let Ok(n @ 1..) = from.read(&mut room).await {
        gate.send_if_modified(|gate| gate.answer());
        if to.write_all(&room[..n]).await.is_err() {
            return;
        }
    }
}

impl Gate {
    /// The worker sends; whether that changed something.
    fn request(&mut self) -> bool {
        let next = match *self {
            Self::Closing { passing: 0, fresh: true } => Self::Closed,
            Self::Closing { passing, fresh: true } => Self::Closing { passing: passing - 1, fresh: false },
            same => same,
        };
        std::mem::replace(self, next) != next
    }

    /// The server sends.
    fn answer(&mut self) -> bool {
        let next = match *self {
            Self::Closing { passing, fresh: false } => Self::Closing { passing, fresh: true },
            same => same,
        };
        std::mem::replace(self, next) != next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_sent_after_the_passing_requests_is_held_and_then_delivered_in_order() {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let network = Network::to(server.local_addr().unwrap().to_string()).await.unwrap();
        let mut worker = TcpStream::connect(network.address()).await.unwrap();
        let (mut served, _) = server.accept().await.unwrap();
        let mut room = [0; 1];
        network.hold_after(1);
        worker.write_all(b"1").await.unwrap();
        served.read_exact(&mut room).await.unwrap();
        served.write_all(b"a").await.unwrap();
        worker.read_exact(&mut room).await.unwrap();
        worker.write_all(b"2").await.unwrap();
        network.held().await;
        assert!(served.try_read(&mut room).is_err(), "it is on its way");
        worker.write_all(b"3").await.unwrap();
        network.deliver();
        let mut both = [0; 2];
        served.read_exact(&mut both).await.unwrap();
        assert_eq!(&both, b"23");
    }
}
