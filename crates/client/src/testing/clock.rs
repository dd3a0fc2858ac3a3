//! Real time that can be made to jump.

use std::time::Duration;

use leasehold_node::{Clock, Reading, RealClock, Sleep};
use tokio::sync::watch;

/// Below what a node takes for a pause of its own, after which it would move its deadlines along.
const STEP: Duration = Duration::from_millis(200);
/// Between two steps, so that the node looks at its clock.
const REST: Duration = Duration::from_millis(4);

/// The clocks of this machine, and an offset.
#[derive(Debug)]
pub(super) struct TestClock {
    offset: watch::Sender<Duration>,
}

impl TestClock {
    pub(super) fn new() -> Self {
        Self { offset: watch::Sender::new(Duration::ZERO) }
    }

    pub(super) async fn jump(&self, by: Duration) {
        let mut left = by;
        while !left.is_zero() {
            let step = left.min(STEP);
            self.offset.send_modify(|offset| *offset += step);
            left -= step;
            tokio::time::sleep(REST).await;
        }
    }
}

fn shifted(offset: Duration) -> Reading {
    let Reading { monotonic, boottime, wall } = RealClock.read();
    let by_ms = u64::try_from(offset.as_millis()).unwrap_or(u64::MAX);
    Reading { monotonic: monotonic + offset, boottime: boottime + offset, wall: wall.plus_ms(by_ms) }
}

impl Clock for TestClock {
    fn read(&self) -> Reading {
        shifted(*self.offset.borrow())
    }

    fn sleep_until(&self, deadline: Duration) -> Sleep {
        let mut offset = self.offset.subscribe();
        Box::pin(async move {
            loop {
                let left = deadline.saturating_sub(shifted(*offset.borrow_and_update()).monotonic);
                if left.is_zero() {
                    return;
                }
                tokio::select! {
                    () = tokio::time::sleep(left) => {}
                    Ok(()) = offset.changed() => {}
                }
            }
        })
    }
}
