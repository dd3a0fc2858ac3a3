//! TLS to ZooKeeper. The driver speaks plain TCP alone, so it is given addresses of this process: what it sends there
//! goes on to the servers inside TLS. Only connections of this program's own user are taken.

use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use leasehold_journal::remote::is_of_certificates;
use leasehold_journal::remote::tls::{self, ClientConfig};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::config::InvalidConfig;

/// ZooKeeper's usual port, where the URL has none.
const PORT: u16 = 2181;

/// The files that a URL names.
#[derive(Clone, Debug, Default)]
pub(crate) struct TlsFiles {
    pub(crate) ca: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
}

impl TlsFiles {
    /// Reads the files; `None` if there are none, and so no TLS.
    pub(crate) fn read(&self) -> Result<Option<Arc<ClientConfig>>, InvalidConfig> {
        let Some(ca) = &self.ca else {
            let none = self.cert.is_none() && self.key.is_none();
            return if none { Ok(None) } else { Err(InvalidConfig("TLS needs `tls_ca`".to_owned())) };
        };
        let ours = match (&self.cert, &self.key) {
            (None, None) => None,
            (Some(cert), Some(key)) => Some((cert.as_path(), key.as_path())),
            _ => return Err(InvalidConfig("`tls_cert` and `tls_key` belong together".to_owned())),
        };
        let config = tls::certificates(ca).and_then(|trusted| tls::client_config(trusted, ours));
        config.map(|config| Some(Arc::new(config))).map_err(InvalidConfig)
    }
}

/// One tunnel for each server; they end when this is dropped.
pub(crate) struct Tunnels {
    /// Where the driver connects to instead of the servers.
    pub(crate) hosts: String,
    /// What was wrong with a certificate: the driver hears no more than that its connection was lost.
    mistrust: Arc<OnceLock<String>>,
    _tasks: JoinSet<()>,
}

impl Tunnels {
    /// Begins to listen. `hosts` are the servers as the URL lists them.
    pub(crate) async fn open(hosts: &str, tls: &Arc<ClientConfig>) -> io::Result<Self> {
        let (mut addresses, mut tasks) = (Vec::new(), JoinSet::new());
        let mistrust = Arc::<OnceLock<String>>::default();
        for host in hosts.split(',') {
            let (name, port) = parted(host);
            let server = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            addresses.push(listener.local_addr()?.to_string());
            let (address, tls) = ((name.to_owned(), port), Arc::clone(tls));
            let tunnel = Tunnel { address, server, tls, mistrust: Arc::clone(&mistrust) };
            tasks.spawn(tunnel.listen(listener));
        }
        Ok(Self { hosts: addresses.join(","), mistrust, _tasks: tasks })
    }

    /// What was wrong with a server's certificate, if that was it.
    pub(crate) fn mistrust(&self) -> Option<&str> {
        self.mistrust.get().map(String::as_str)
    }
}

/// The name or address without brackets, and the port.
fn parted(host: &str) -> (&str, u16) {
    let with_port = host.rsplit_once(':').filter(|(name, _)| !name.contains(':') || name.ends_with(']'));
    let parsed = with_port.and_then(|(name, port)| Some((name, port.parse().ok()?)));
    let (name, port) = parsed.unwrap_or((host, PORT));
    (name.trim_start_matches('[').trim_end_matches(']'), port)
}

/// The way to one server.
#[derive(Clone)]
struct Tunnel {
    address: (String, u16),
    server: ServerName<'static>,
    tls: Arc<ClientConfig>,
    mistrust: Arc<OnceLock<String>>,
}

impl Tunnel {
    async fn listen(self, listener: TcpListener) {
        let mut passing = JoinSet::new();
        while let Ok((mut near, from)) = listener.accept().await {
            // Those that have ended are forgotten.
            while passing.try_join_next().is_some() {}
            if !is_of_own_user(from) {
                tracing::warn!(%from, "somebody else tried to use the way to ZooKeeper");
                continue;
            }
            let tunnel = self.clone();
            passing.spawn(async move {
                if let Err(error) = tunnel.pass(&mut near).await {
                    // `near` is still open: the driver must not hear of it before this is noted.
                    let (server, port) = &tunnel.address;
                    let words = format!("{server}:{port}: {error}");
                    if is_of_certificates(&words) {
                        tunnel.mistrust.get_or_init(|| words);
                    }
                    tracing::warn!(server, port, %error, "the TLS connection to ZooKeeper failed");
                }
            });
        }
    }

    async fn pass(&self, near: &mut TcpStream) -> io::Result<()> {
        let (name, port) = &self.address;
        let far = TcpStream::connect((name.as_str(), *port)).await?;
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let mut far = TlsConnector::from(Arc::clone(&self.tls)).connect(self.server.clone(), far).await?;
        // A connection that is cut is the driver's affair: it has lost its session, and knows it.
        let _ = copy_bidirectional(near, &mut far).await;
        Ok(())
    }
}

/// Whether the other end of a local connection belongs to the user of this process, as the kernel's table of
/// connections says.
fn is_of_own_user(from: SocketAddr) -> bool {
    let own = fs::metadata("/proc/self").map(|own| own.uid());
    let table = fs::read_to_string("/proc/net/tcp");
    match (own, table) {
        (Ok(own), Ok(table)) => owner_of(&table, from.port()) == Some(own),
        _ => false,
    }
}

/// The owner of the connection that has this port of 127.0.0.1 at its own end.
fn owner_of(table: &str, port: u16) -> Option<u32> {
    let local = format!("{:08X}:{port:04X}", u32::from_ne_bytes(Ipv4Addr::LOCALHOST.octets()));
    let line = table.lines().skip(1).find(|line| line.split_whitespace().nth(1) == Some(&local))?;
    line.split_whitespace().nth(7)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_ports_or_the_usual_one() {
        assert_eq!(parted("a:1"), ("a", 1));
        assert_eq!(parted("a"), ("a", 2181));
        assert_eq!(parted("[::1]:7"), ("::1", 7));
        assert_eq!(parted("::1"), ("::1", 2181));
    }

    #[tokio::test]
    async fn the_kernel_tells_whose_connection_it_is() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        assert!(is_of_own_user(ours.local_addr().unwrap()));
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
                     0: 0100007F:1F90 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1000        0 1 1\n";
        assert_eq!(owner_of(table, 0x1F90), Some(1_000));
        assert_eq!(owner_of(table, 0x0050), None);
    }
}
