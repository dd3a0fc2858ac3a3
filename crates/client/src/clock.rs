//! The two things a client takes from its machine: time and chance.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::deadline::Stamp;

/// Now, by the clock that goes on while the machine is suspended: the fast clock, by which one trusts oneself (R3).
pub(crate) fn now() -> Stamp {
    let now = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).expect("time since boot is not negative");
    Stamp(Duration::new(seconds, u32::try_from(now.tv_nsec).expect("nanoseconds of a second")))
}

/// A number from 0 to 1, for jitter.
pub(crate) fn random() -> f64 {
    let [a, b, c, d, ..] = leasehold_types::ids::random();
    f64::from(u32::from_le_bytes([a, b, c, d])) / f64::from(u32::MAX)
}

/// Sleeps at most this long at a time: timers stand still while the machine is suspended, and deadlines do not.
pub(crate) const LOOK: Duration = Duration::from_millis(250);

/// Waits until `at`, by the clock of [`now`]. Cancel-safe.
pub(crate) async fn sleep_until(at: Stamp) {
    loop {
        let left = at.since(now());
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(left.min(LOOK)).await;
    }
}
