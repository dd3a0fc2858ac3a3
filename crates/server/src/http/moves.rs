//! Connections that go over to another runtime. A socket belongs to the runtime that made it, which is told by the kernel when
//! there is something to read.

use std::os::fd::AsFd as _;
use std::{io, net};

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// Something that can be used on another runtime than it was made on.
pub(crate) trait Moves {
    /// To be called on the new runtime, before anything else.
    ///
    /// # Errors
    /// The process has no file descriptor left, even for a moment, or the runtime is about to end.
    fn arrive(&mut self) -> io::Result<()>;

    /// A way to end the connection while nobody can use it.
    ///
    /// # Errors
    /// The process has no file descriptor left.
    fn line(&self) -> io::Result<Line>;
}

/// The line of a connection, to be cut from another thread than that on which it is served.
#[derive(Debug)]
pub(crate) struct Line(net::TcpStream);

impl Line {
    /// The other end hears that it is over. Nothing is said: whoever could say something is stuck.
    pub(crate) fn cut(&self) {
        // One that is gone already is as good.
        drop(self.0.shutdown(net::Shutdown::Both));
    }
}

impl Moves for TcpStream {
    fn arrive(&mut self) -> io::Result<()> {
        let same = self.as_fd().try_clone_to_owned()?;
        *self = Self::from_std(same.into())?;
        Ok(())
    }

    fn line(&self) -> io::Result<Line> {
        Ok(Line(self.as_fd().try_clone_to_owned()?.into()))
    }
}

impl Moves for TlsStream<TcpStream> {
    fn arrive(&mut self) -> io::Result<()> {
        self.get_mut().0.arrive()
    }

    fn line(&self) -> io::Result<Line> {
        self.get_ref().0.line()
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// The runtime on which the socket was made is gone when it is used.
    #[test]
    fn a_socket_outlives_the_runtime_that_made_it() {
        let runtime = || tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let old = runtime();
        let mut socket = old.block_on(TcpStream::connect(address)).unwrap();
        let (other, _) = listener.accept().unwrap();
        let echo = std::thread::spawn(move || std::io::copy(&mut &other, &mut &other));
        let new = runtime();
        let come = new.block_on(async {
            socket.arrive().unwrap();
            old.shutdown_background();
            socket.write_all(b"here").await.unwrap();
            let mut come = [0; 4];
            socket.read_exact(&mut come).await.unwrap();
            drop(socket);
            come
        });
        assert_eq!(&come, b"here");
        echo.join().unwrap().unwrap();
    }
}
