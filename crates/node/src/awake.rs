//! The loop stays awake for a moment when it has nothing to do, where calls come one shortly after the other.

use std::time::Duration;

use leasehold_types::Awake;

use crate::Clock;

/// Looks before it sleeps: a tenth of a millisecond or two, the time in which a client on the same machine asks again.
const LOOKS: u32 = 200;
/// Calls that come within this are worth staying awake for: what that many looks take.
pub(crate) const SOON: Duration = Duration::from_micros(150);

/// Looks around for a moment, if that is worth it; never completes. Every look lets those beside the loop have a turn.
/// `None` on an engine: there is always somebody else to wait for, and much longer. Cancel-safe.
pub(crate) async fn stay(awake: Option<&mut Awake>, clock: &dyn Clock) {
    if let Some(awake) = awake {
        let mut last = clock.monotonic();
        let looks = if awake.is_worth_it(last) { LOOKS } else { 0 };
        for _ in 0..looks {
            tokio::task::yield_now().await;
            let now = clock.monotonic();
            if awake.is_held_up(last, now) {
                break;
            }
            last = now;
        }
    }
    std::future::pending().await
}
