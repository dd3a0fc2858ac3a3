//! The address of a server, taken before anything else and listened on after everything else.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

use crate::error::ServeError;

/// Connections that the system keeps until they are accepted, as the standard library has it.
const BACKLOG: u32 = 1024;

/// An address that is taken, but where nobody is let in yet: a connection is refused until [`Place::listen`], so that
/// clients with several servers go on to the next one while this one still opens its journal.
pub(crate) struct Place {
    socket: TcpSocket,
    wanted: SocketAddr,
    /// With the port that the system chose, if that was left to it. Other nodes are told of it before it can be asked.
    pub(crate) address: SocketAddr,
}

impl Place {
    /// Takes the address. Fails if somebody listens there.
    pub(crate) fn take(wanted: SocketAddr) -> Result<Self, ServeError> {
        let taken = bound(wanted).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = taken.map_err(|error| ServeError::Listen { address: wanted, error })?;
        Ok(Self { socket, wanted, address })
    }

    /// Lets connections in. Fails if another process took the same address at the same moment, and was faster.
    pub(crate) fn listen(self) -> Result<TcpListener, ServeError> {
        self.socket.listen(BACKLOG).map_err(|error| ServeError::Listen { address: self.wanted, error })
    }
}

fn bound(wanted: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match wanted {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A server that is started again finds connections of its former life, which would keep it out for a minute.
    socket.set_reuseaddr(true)?;
    socket.bind(wanted)?;
    Ok(socket)
}
