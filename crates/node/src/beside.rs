//! Places on the loop's own thread, for the few who talk to the loop all the time.
//!
//! What is handed over on one thread wakes no other: on two cores the way from a connection to the loop and back costs
//! more than the deciding. There is room where the loop never blocks its thread, which is on a journal that is shared with
//! other nodes; and only for a few, since whoever is there takes its time from the loop.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::Clock;

/// How many there may be: the streams of a few busy processes. Chosen, not measured: one is where the gain is, and many would
/// leave the other threads idle.
const PLACES: u32 = 4;
/// Those who are still there when a life ends get this long to take their leave.
const FAREWELL: Duration = Duration::from_millis(500);

/// All of the places.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    runtime: runtime::Handle,
    free: Arc<Semaphore>,
}

impl Places {
    pub(crate) fn new(runtime: runtime::Handle) -> Self {
        Self { runtime, free: Arc::new(Semaphore::new(PLACES as usize)) }
    }

    /// One of them, if one is free.
    pub(crate) fn take(&self) -> Option<Beside> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Beside { runtime: self.runtime.clone(), place })
    }

    /// Waits until everybody has left, but not for long. Asked for by the loop itself, which blocks its thread next.
    pub(crate) async fn farewell(&self, clock: &dyn Clock) {
        tokio::select! {
            biased;
            // Never closed.
            left = self.free.acquire_many(PLACES) => drop(left),
            () = async { clock.sleep_until(clock.monotonic() + FAREWELL).await } => {}
        }
    }
}

/// A place on the loop's own thread; see [`crate::Handle::beside_the_loop`].
#[derive(Debug)]
pub struct Beside {
    runtime: runtime::Handle,
    place: OwnedSemaphorePermit,
}

impl Beside {
    /// Does this work there, until it is done, this future is dropped, or the node is gone. The work must never block, and
    /// whatever it does with sockets and timers must have been made there: they belong to the runtime that made them.
    pub async fn run(self, work: impl Future<Output = ()> + Send + 'static) {
        let Self { runtime, place } = self;
        let mut there = JoinSet::new();
        there.spawn_on(
            async move {
                work.await;
                drop(place);
            },
            &runtime,
        );
        // With the node gone there is nothing more to do, and nobody to tell.
        drop(there.join_next().await);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::ManualClock;

    #[tokio::test]
    async fn there_are_a_few_places_and_each_is_free_again_when_its_work_is_done() {
        let places = Places::new(runtime::Handle::current());
        let taken: Vec<_> = std::iter::from_fn(|| places.take()).collect();
        assert_eq!(taken.len(), PLACES as usize);
        for beside in taken {
            beside.run(async {}).await;
        }
        assert!(places.take().is_some());
    }

    #[tokio::test]
    async fn work_ends_with_whoever_wanted_it() {
        let places = Places::new(runtime::Handle::current());
        let (alive, gone) = oneshot::channel::<()>();
        let work = places.take().unwrap().run(async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        tokio::select! {
            biased;
            () = work => panic!("it never ends by itself"),
            () = tokio::task::yield_now() => {}
        }
        assert!(gone.await.is_err());
    }

    #[tokio::test]
    async fn who_has_left_is_not_waited_for_and_who_stays_not_for_long() {
        let (places, clock) = (Places::new(runtime::Handle::current()), ManualClock::new());
        places.farewell(&clock).await;
        let (leave, left) = oneshot::channel::<()>();
        let stays = tokio::spawn(places.take().unwrap().run(async { drop(left.await) }));
        tokio::join!(biased; places.farewell(&clock), async { clock.advance(FAREWELL) });
        assert!(!stays.is_finished());
        leave.send(()).unwrap();
        places.farewell(&clock).await;
        stays.await.unwrap();
        assert_eq!(places.free.available_permits(), PLACES as usize);
    }
}
