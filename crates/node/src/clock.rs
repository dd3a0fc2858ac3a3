//! Time, injected: [`RealClock`] for serving, [`ManualClock`] for tests.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use leasehold_types::WallTime;
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

/// One look at the clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reading {
    /// Stands still while the machine is suspended: the slow clock, by which others are expired (R3).
    pub monotonic: Duration,
    /// Goes on while the machine is suspended: the fast clock, by which one trusts oneself (R3).
    pub boottime: Duration,
    /// For people; no decision is made from it.
    pub wall: WallTime,
}

/// A wait for a point of monotonic time.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the node's time comes from.
pub trait Clock: Send + Sync + 'static {
    /// Looks at the clocks.
    fn read(&self) -> Reading;

    /// Looks at the monotonic clock alone, which is most often asked for.
    fn monotonic(&self) -> Duration {
        self.read().monotonic
    }

    /// Completes once the monotonic clock has reached `deadline`, never earlier. Called inside a tokio runtime with time
    /// enabled; cancel-safe.
    fn sleep_until(&self, deadline: Duration) -> Sleep;
}

/// The clocks of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn read(&self) -> Reading {
        Reading {
            monotonic: since_zero(ClockId::Monotonic),
            boottime: since_zero(ClockId::Boottime),
            wall: wall(),
        }
    }

    fn monotonic(&self) -> Duration {
        since_zero(ClockId::Monotonic)
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        let wait = deadline.saturating_sub(self.monotonic());
        Box::pin(tokio::time::sleep(wait))
    }
}

/// Asked by way of the C library, so that a test can step it. Set before 1970 it reads as 1970: it is shown to people and
/// nothing else.
#[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
fn wall() -> WallTime {
    let since = std::time::SystemTime::now().duration_since(std::time::SystemTime::UNIX_EPOCH);
    WallTime(since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)))
}

fn since_zero(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}

/// A clock that moves when it is told to.
#[derive(Debug)]
pub struct ManualClock {
    reading: watch::Sender<Reading>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl ManualClock {
    /// Where a manual wall clock begins: an instant that tests recognise.
    pub const WALL_START: WallTime = WallTime(1_700_000_000_000);

    /// A clock that has just been started.
    pub fn new() -> Self {
        // Not zero, so that "never" and "at the start" cannot be confused.
        let start = Duration::from_secs(1_000);
        let reading = Reading { monotonic: start, boottime: start, wall: Self::WALL_START };
        Self { reading: watch::Sender::new(reading) }
    }

    /// Moves all clocks on. A step of more than 250 ms is a pause in the eyes of a node: its deadlines move with it.
    pub fn advance(&self, by: Duration) {
        self.reading.send_modify(|reading| {
            reading.monotonic += by;
            reading.boottime += by;
            reading.wall = reading.wall.plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        });
    }

    /// Suspends the machine for this long: the monotonic clock stands still meanwhile.
    pub fn suspend(&self, by: Duration) {
        self.reading.send_modify(|reading| {
            reading.boottime += by;
            reading.wall = reading.wall.plus_ms(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        });
    }
}

impl Clock for ManualClock {
    fn read(&self) -> Reading {
        *self.reading.borrow()
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        let mut reading = self.reading.subscribe();
        Box::pin(async move {
            if reading.wait_for(|reading| reading.monotonic >= deadline).await.is_err() {
                // The clock is gone: its time has stopped, so this moment never comes.
                std::future::pending::<()>().await;
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_real_clocks_do_not_go_back() {
        let (first, second) = (RealClock.read(), RealClock.read());
        assert!(second.monotonic >= first.monotonic && second.boottime >= first.boottime);
        assert!(first.wall > ManualClock::WALL_START, "the wall clock counts from 1970");
    }

    #[tokio::test]
    async fn a_manual_sleep_ends_when_its_time_has_come() {
        let clock = ManualClock::new();
        let deadline = clock.read().monotonic + Duration::from_millis(100);
        let mut sleep = clock.sleep_until(deadline);
        clock.advance(Duration::from_millis(99));
        assert!(futures_poll(&mut sleep).await, "one millisecond is missing");
        clock.advance(Duration::from_millis(1));
        sleep.await;
    }

    /// Whether the sleep is still pending.
    async fn futures_poll(sleep: &mut Sleep) -> bool {
        std::future::poll_fn(|cx| std::task::Poll::Ready(sleep.as_mut().poll(cx).is_pending())).await
    }
}
