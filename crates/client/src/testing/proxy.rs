//! A proxy whose network can be cut, frozen and healed.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// What the network is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Network {
    /// Bytes pass.
    Well,
    /// Bytes wait.
    Frozen,
    /// Connections are closed at once.
    Cut,
}

/// The network, and how often it was cut: a cut that is healed at once has broken every connection all the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Weather {
    network: Network,
    cuts: u64,
}

/// See the module. Everything ends when it is dropped.
#[derive(Debug)]
pub(super) struct Proxy {
    address: SocketAddr,
    weather: watch::Sender<Weather>,
    target: watch::Sender<SocketAddr>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    pub(super) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound listener has an address");
        let (weather, well) = watch::channel(Weather { network: Network::Well, cuts: 0 });
        let (target, targets) = watch::channel(target);
        let accepting = tokio::spawn(accept(listener, well, targets));
        Self { address, weather, target, accepting }
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn set(&self, network: Network) {
        self.weather.send_modify(|weather| {
            weather.network = network;
            weather.cuts += u64::from(network == Network::Cut);
        });
    }

    pub(super) fn lead_to(&self, target: SocketAddr) {
        self.target.send_replace(target);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(
    listener: TcpListener,
    weather: watch::Receiver<Weather>,
    target: watch::Receiver<SocketAddr>,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((socket, _)) = listener.accept() => {
                let target = *target.borrow();
                connections.spawn(carry(socket, target, weather.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn carry(socket: TcpStream, target: SocketAddr, mut weather: watch::Receiver<Weather>) {
    let begun = *weather.borrow_and_update();
    if begun.network == Network::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(target).await else { return };
    // Both are loopback sockets; without this small frames would wait for each other.
    let _ = (socket.set_nodelay(true), server.set_nodelay(true));
    let (client_read, client_write) = socket.into_split();
    let (server_read, server_write) = server.into_split();
    tokio::select! {
        () = pump(client_read, server_write, weather.clone()) => {}
        () = pump(server_read, client_write, weather.clone()) => {}
        _ = weather.wait_for(|weather| weather.cuts != begun.cuts) => {}
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut weather: watch::Receiver<Weather>) {
    let mut room = vec![0; 32 * 1024];
    while let Ok(n @ 1..) = from.read(&mut room).await {
        if weather.wait_for(|weather| weather.network != Network::Frozen).await.is_err() {
            return;
        }
        if to.write_all(&room[..n]).await.is_err() {
            return;
        }
    }
}
