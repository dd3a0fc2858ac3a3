//! The loop stays awake for a moment when it has nothing to do, where calls come one shortly after the other.

use std::time::Duration;

use leasehold_journal::Limits;
use leasehold_types::Awake;

use crate::Clock;

/// Looks before it sleeps: a tenth of a millisecond or two, the time in which a client on the same machine asks again.
const LOOKS: u32 = 200;
/// Calls that come within this are worth staying awake for: what that many looks take.
pub(crate) const SOON: Duration = Duration::from_micros(150);

/// Whether a loop over a journal with these limits stays awake. Not on an engine: there is always somebody else to wait for, and
/// much longer.
pub(crate) fn over(limits: &Limits) -> Option<Awake> {
    limits.confirm_is_free.then(Awake::default)
}

/// Looks around for a moment, if that is worth it; never completes. Every look lets those beside the loop have a turn. Cancel-safe.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_an_engine_the_loop_always_sleeps() {
        let limits = |confirm_is_free| Limits { body_bytes: 1, chunk_bytes: 1, confirm_is_free };
        assert!(over(&limits(false)).is_none());
        assert!(over(&limits(true)).is_some());
    }
}
