//! What `run` tells its keeper: until when the command may live.

use std::time::Duration;

use leasehold::LeaseGuard;
use rustix::time::{ClockId, clock_gettime};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// Bytes of one message.
const BYTES: usize = 16;

/// Two moments, in milliseconds of the clock that both processes share and that goes on while the machine is suspended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// The command is asked to end.
    pub(super) term_ms: u64,
    /// The command is killed.
    pub(super) kill_ms: u64,
}

impl Limits {
    /// Without a lock there is nothing to outlive.
    pub(super) const NONE: Self = Self { term_ms: u64::MAX, kill_ms: u64::MAX };

    /// TERM at the deadline less two margins, or `grace` before KILL if that is earlier; KILL at the deadline less one
    /// margin.
    pub(super) fn of(guard: &LeaseGuard, grace: Duration) -> Self {
        // Looked at before the guard is asked: too early by an instant, never too late.
        let now = now_ms();
        let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let kill_ms = now + ms(guard.remaining().saturating_sub(guard.margin()));
        Self { term_ms: kill_ms.saturating_sub(ms(guard.margin().max(grace))), kill_ms }
    }

    /// Whether the command has been asked to end by now.
    pub(super) fn term_passed(self) -> bool {
        now_ms() >= self.term_ms
    }

    /// Completes a moment after the keeper should have killed the command.
    pub(super) async fn kill_passed(self) {
        until(self.kill_ms.saturating_add(20)).await;
    }

    /// Sends it.
    pub(super) async fn write(self, to: &mut UnixStream) -> std::io::Result<()> {
        let mut bytes = [0; BYTES];
        bytes[..8].copy_from_slice(&self.term_ms.to_le_bytes());
        bytes[8..].copy_from_slice(&self.kill_ms.to_le_bytes());
        to.write_all(&bytes).await
    }

    /// Receives one; not cancel-safe. An error is the end of the other side.
    pub(super) async fn read(from: &mut (impl tokio::io::AsyncRead + Unpin)) -> std::io::Result<Self> {
        Ok(Self { term_ms: from.read_u64_le().await?, kill_ms: from.read_u64_le().await? })
    }
}

/// Now, by the clock of [`Limits`].
pub(super) fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000
}

/// Waits until this moment. Looks often: timers stand still while the machine is suspended.
pub(super) async fn until(at_ms: u64) {
    loop {
        let left = at_ms.saturating_sub(now_ms());
        if left == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left.min(100))).await;
    }
}
