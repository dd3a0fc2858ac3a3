//! One connection and its patience: with a slow head, a slow reader, an idle client.
//!
//! Nothing here reads a clock on the way of a request: bytes and requests are counted, and a look every few seconds
//! tells whether the counts have moved.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf, Take};
use tokio::time::Sleep;

use crate::auth::ConnectionCaller;
use crate::config::patience;

/// What has happened on a connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    bytes_read: AtomicU64,
    /// `bytes_read` when the last request was done: more since then is the beginning of a next one.
    bytes_at_rest: AtomicU64,
    requests: AtomicU64,
    in_flight: AtomicUsize,
    left_unread: AtomicBool,
    /// Who is at the other end.
    pub(crate) caller: ConnectionCaller,
}

impl Activity {
    /// Of a connection whose client has shown a certificate, or none.
    pub(crate) fn of(caller: ConnectionCaller) -> Arc<Self> {
        Arc::new(Self { caller, ..Self::default() })
    }

    /// A request has arrived.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.requests.fetch_add(1, Relaxed);
        self.in_flight.fetch_add(1, Relaxed);
        InFlight(Arc::clone(self))
    }

    /// A body was refused before all of it had come.
    pub(crate) fn leave_unread(&self) {
        self.left_unread.store(true, Relaxed);
    }

    /// Completes when the connection has been silent, or stuck in a head, for too long.
    pub(crate) async fn until_stale(&self) {
        let mut last = Look::default();
        let mut idle_looks = 0;
        loop {
            tokio::time::sleep(patience::LOOK).await;
            let look = self.look();
            let waits_for_head = look.head_begun || look.requests == 0;
            if !look.busy && waits_for_head && last == look {
                return;
            }
            idle_looks = if look.busy || last.requests != look.requests { 0 } else { idle_looks + 1 };
            if idle_looks >= patience::IDLE_LOOKS {
                return;
            }
            last = look;
        }
    }

    fn look(&self) -> Look {
        Look {
            busy: self.in_flight.load(Relaxed) > 0,
            head_begun: self.bytes_read.load(Relaxed) != self.bytes_at_rest.load(Relaxed),
            requests: self.requests.load(Relaxed),
            seen: true,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Look {
    busy: bool,
    head_begun: bool,
    requests: u64,
    /// Tells a first look from none.
    seen: bool,
}

/// A request that is being answered; the answer is complete, or given up, when this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.bytes_at_rest.store(self.0.bytes_read.load(Relaxed), Relaxed);
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// So much is read in one turn; then it is the others' on the same thread. It is a frame with the calls of some dozen tasks, and
/// no more than hundreds of frames with nothing in them, which nobody has to wait for long.
const TURN: u64 = 4 * 1024;

/// A socket that counts what it reads, lets others have a turn, does not wait for ever on a reader that reads nothing, and takes
/// the rest of a refused body before it closes.
pub(crate) struct WatchedStream<S> {
    /// Its limit is what is left of this turn.
    socket: Take<S>,
    activity: Arc<Activity>,
    /// Runs while the client takes nothing.
    write_stall: Option<Pin<Box<Sleep>>>,
    linger: Option<Linger>,
}

struct Linger {
    until: Pin<Box<Sleep>>,
    bytes_left: usize,
}

impl<S: AsyncRead + Unpin> WatchedStream<S> {
    /// Watches over a socket, or what is inside of it.
    pub(crate) fn new(socket: S, activity: Arc<Activity>) -> Self {
        Self { socket: socket.take(TURN), activity, write_stall: None, linger: None }
    }

    fn poll_written(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.write_stall = None;
            return written;
        }
        let stall = self.write_stall.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience::WRITE)));
        ready!(stall.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Linger {
            until: Box::pin(tokio::time::sleep(patience::LINGER)),
            bytes_left: patience::LINGER_BYTES,
        });
        let mut room = [0; 16 * 1024];
        while linger.bytes_left > 0 {
            let mut buffer = ReadBuf::new(&mut room);
            match Pin::new(self.socket.get_mut()).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    linger.bytes_left = linger.bytes_left.saturating_sub(buffer.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return linger.until.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WatchedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.socket.limit() == 0 {
            self.socket.set_limit(TURN);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let outcome = Pin::new(&mut self.socket).poll_read(cx, buffer);
        if outcome.is_pending() {
            self.socket.set_limit(TURN);
        }
        self.activity.bytes_read.fetch_add((buffer.filled().len() - before) as u64, Relaxed);
        outcome
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for WatchedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(self.socket.get_mut()).poll_write(cx, bytes);
        self.poll_written(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(self.socket.get_mut()).poll_write_vectored(cx, pieces);
        self.poll_written(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.get_ref().is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.socket.get_mut()).poll_flush(cx)
    }

    /// Closing a socket with unread bytes resets it, and the client may never see its answer: so they are read first.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.linger.is_none() {
            ready!(Pin::new(self.socket.get_mut()).poll_shutdown(cx))?;
        }
        if self.activity.left_unread.load(Relaxed) {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpStream;

    use super::*;

    async fn stale_after(activity: &Activity) -> std::time::Duration {
        let begun = tokio::time::Instant::now();
        activity.until_stale().await;
        begun.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_byte_and_a_whole_head_are_waited_for_briefly() {
        let activity = Arc::new(Activity::default());
        assert_eq!(stale_after(&activity).await, 2 * patience::LOOK);
        drop(activity.begin());
        activity.bytes_read.fetch_add(1, Relaxed);
        assert_eq!(stale_after(&activity).await, 2 * patience::LOOK);
    }

    /// There is always more to read, as in a flood.
    #[tokio::test]
    async fn after_so_much_others_have_a_turn_and_then_it_goes_on() {
        let mut stream = WatchedStream::new(tokio::io::repeat(b'x'), Arc::default());
        let (mut all, mut turns_of_others) = (vec![0; 10 * TURN as usize], 0);
        let others = async {
            loop {
                turns_of_others += 1;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            biased;
            read = stream.read_exact(&mut all) => assert_eq!(read.unwrap(), 10 * TURN as usize),
            () = others => {}
        }
        assert_eq!(turns_of_others, 9);
        assert_eq!(stream.activity.bytes_read.load(Relaxed), 10 * TURN);
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_nothing_is_given_up() {
        use tokio::io::AsyncWriteExt;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let silent = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (socket, _) = listener.accept().await.unwrap();
        let mut stream = WatchedStream::new(socket, Arc::default());
        let begun = tokio::time::Instant::now();
        let endless = vec![0; 64 << 20];
        let error = stream.write_all(&endless).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() >= patience::WRITE);
        drop(silent);
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_is_kept_for_long_and_a_busy_one_for_ever() {
        let activity = Arc::new(Activity::default());
        let busy = activity.begin();
        let hour = std::time::Duration::from_secs(3_600);
        assert!(tokio::time::timeout(hour, activity.until_stale()).await.is_err());
        drop(busy);
        assert!(stale_after(&activity).await >= patience::IDLE_LOOKS * patience::LOOK);
    }
}
