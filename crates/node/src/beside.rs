//! Places on the loop's own thread, for those who talk to the loop all the time.
//!
//! What is handed over on one thread wakes no other: on two cores the way from a connection to the loop and back costs
//! more than the deciding. Whoever is there takes its time from the loop, so that where other cores are free there is room
//! only for a few.
//!
//! The embedded journal blocks that thread while it writes, for a tenth of a millisecond. Behind a disk that hangs whoever is
//! there is stuck, and could not even be told that nothing moves (N5): so somebody on another thread watches, and gives
//! them up.

use std::num::NonZero;
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::runtime;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use crate::Clock;
use crate::config::STALL;
use crate::shared::Shared;

/// How many there are: the streams of a few busy processes. Chosen, not measured: one is where the gain is, and many would
/// leave the other threads idle.
const PLACES: u32 = 4;
/// How many there are on [`FEW_CORES`]. The loop has one of them for itself; workers would share the other with whoever calls,
/// and spend much of it waking each other. A bound all the same: a flood of connections is the workers'.
const PLACES_ON_FEW_CORES: u32 = 256;
/// No more cores than this are few.
const FEW_CORES: usize = 2;
/// Those who are still there when a life ends get this long to take their leave.
const FAREWELL: Duration = Duration::from_millis(500);

/// All of the places.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    runtime: runtime::Handle,
    /// How many there are, free or not.
    all: u32,
    free: Arc<Semaphore>,
    /// Whether the journal may block the thread.
    may_block: bool,
    /// The thread, once it runs.
    thread: Arc<OnceLock<ThreadId>>,
}

impl Places {
    pub(crate) fn new(runtime: runtime::Handle, may_block: bool) -> Self {
        // Where nobody knows, there may be many.
        Self::on_cores(thread::available_parallelism().map_or(usize::MAX, NonZero::get), runtime, may_block)
    }

    fn on_cores(cores: usize, runtime: runtime::Handle, may_block: bool) -> Self {
        let all = if cores <= FEW_CORES { PLACES_ON_FEW_CORES } else { PLACES };
        let free = Arc::new(Semaphore::new(all as usize));
        Self { runtime, all, free, may_block, thread: Arc::default() }
    }

    /// Said on the loop's thread, before anybody comes.
    pub(crate) fn begin_here(&self) {
        self.thread.set(thread::current().id()).expect("the loop has one thread");
    }

    /// Whether whoever asks is on the loop's thread.
    pub(crate) fn are_here(&self) -> bool {
        self.thread.get() == Some(&thread::current().id())
    }

    /// How many turns those who are here need after so many of them were told something: in one of the runtime's about 16 pass
    /// an answer, or a call, on. None where there is but one, who has nobody to wait for. With nothing to do a turn takes a microsecond.
    pub(crate) fn turns(&self, told: usize) -> usize {
        let here = self.all as usize - self.free.available_permits();
        if here <= 1 { 0 } else { 1 + told / 16 }
    }

    /// Whether the journal may block the thread.
    pub(crate) fn may_block(&self) -> bool {
        self.may_block
    }

    /// One of them, if one is free, for somebody who talks to this life.
    pub(crate) fn take(&self, life: Arc<Shared>) -> Option<Beside> {
        let place = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(Beside { runtime: self.runtime.clone(), place, life, may_block: self.may_block })
    }

    /// Waits until everybody has left, but not for long. Asked for by the loop itself, which blocks its thread next.
    pub(crate) async fn farewell(&self, clock: &dyn Clock) {
        tokio::select! {
            biased;
            // Never closed.
            left = self.free.acquire_many(self.all) => drop(left),
            () = async { clock.sleep_until(clock.monotonic() + FAREWELL).await } => {}
        }
    }
}

/// A place on the loop's own thread; see [`crate::Handle::beside_the_loop`].
#[derive(Debug)]
pub struct Beside {
    runtime: runtime::Handle,
    place: OwnedSemaphorePermit,
    life: Arc<Shared>,
    may_block: bool,
}

/// How it went with somebody beside the loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum Left {
    /// It was done, or the node is gone.
    Done,
    /// The journal is stuck, and perhaps the thread with it: it was given up where it stands, and is dropped there when
    /// things move again.
    Stuck,
}

impl Beside {
    /// Does this work there, until it is done, this future is dropped, the node is gone, or its journal is stuck. The work must never
    /// block, and whatever it does with sockets and timers must have been made there: they belong to the runtime that made them.
    pub async fn run(self, work: impl Future<Output = ()> + Send + 'static) -> Left {
        let Self { runtime, place, life, may_block } = self;
        let mut there = JoinSet::new();
        there.spawn_on(
            async move {
                work.await;
                drop(place);
            },
            &runtime,
        );
        tokio::select! {
            biased;
            // With the node gone there is nothing more to do, and nobody to tell.
            _ = there.join_next() => Left::Done,
            () = stuck(&life), if may_block => Left::Stuck,
        }
    }
}

/// Completes when nothing has moved for too long (N5). To be waited for on another thread than the loop's.
async fn stuck(life: &Shared) {
    loop {
        let now = life.clock.monotonic();
        if life.is_stalled(now) {
            return;
        }
        life.clock.sleep_until(now + STALL / 4).await;
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::ManualClock;
    use crate::testing::life;

    fn places(may_block: bool) -> (Places, Arc<Shared>, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new());
        (Places::new(runtime::Handle::current(), may_block), life(clock.clone()), clock)
    }

    #[tokio::test]
    async fn places_are_few_where_cores_are_many_and_free_again_when_their_work_is_done() {
        let (_, life, _) = places(false);
        for (cores, all) in [(1, 256), (2, 256), (3, 4), (64, 4)] {
            let places = Places::on_cores(cores, runtime::Handle::current(), false);
            let taken: Vec<_> = std::iter::from_fn(|| places.take(Arc::clone(&life))).collect();
            assert_eq!(taken.len(), all, "on {cores} cores");
            for beside in taken {
                assert_eq!(beside.run(async {}).await, Left::Done);
            }
            assert!(places.take(Arc::clone(&life)).is_some());
        }
    }

    #[tokio::test]
    async fn who_is_alone_waits_for_nobody_and_the_more_were_told_the_more_turns_they_need() {
        let (places, life, _) = places(true);
        let turns = || [0, 1, 16, 64, 256].map(|told| places.turns(told));
        assert_eq!(turns(), [0; 5]);
        let _one = places.take(Arc::clone(&life)).unwrap();
        assert_eq!(turns(), [0; 5]);
        let _another = places.take(life).unwrap();
        assert_eq!(turns(), [1, 1, 2, 5, 17]);
    }

    #[tokio::test]
    async fn only_the_loops_thread_is_where_they_are() {
        let (places, ..) = places(true);
        assert!(!places.are_here(), "no loop runs yet");
        places.begin_here();
        assert!(places.are_here());
        let elsewhere = places.clone();
        assert!(!thread::spawn(move || elsewhere.are_here()).join().unwrap());
    }

    #[tokio::test]
    async fn work_ends_with_whoever_wanted_it() {
        let (places, life, _) = places(false);
        let (alive, gone) = oneshot::channel::<()>();
        let work = places.take(life).unwrap().run(async move {
            std::future::pending::<()>().await;
            drop(alive);
        });
        tokio::select! {
            biased;
            left = work => panic!("it never ends by itself, and was {left:?}"),
            () = tokio::task::yield_now() => {}
        }
        assert!(gone.await.is_err());
    }

    #[tokio::test]
    async fn who_has_left_is_not_waited_for_and_who_stays_not_for_long() {
        let (places, life, clock) = places(false);
        places.farewell(&*clock).await;
        let (leave, left) = oneshot::channel::<()>();
        let stays = tokio::spawn(places.take(life).unwrap().run(async { drop(left.await) }));
        tokio::join!(biased; places.farewell(&*clock), async { clock.advance(FAREWELL) });
        assert!(!stays.is_finished());
        leave.send(()).unwrap();
        places.farewell(&*clock).await;
        assert_eq!(stays.await.unwrap(), Left::Done);
        assert_eq!(places.free.available_permits(), places.all as usize);
    }

    #[tokio::test]
    async fn who_is_stuck_is_given_up_where_the_journal_may_block_the_thread_and_nowhere_else() {
        for may_block in [true, false] {
            let (places, life, clock) = places(may_block);
            let beside = places.take(Arc::clone(&life)).unwrap();
            let stays = tokio::spawn(beside.run(std::future::pending()));
            clock.advance(STALL);
            tokio::task::yield_now().await;
            assert!(!stays.is_finished(), "nothing was to be done");
            life.busy(clock.monotonic());
            for _ in 0..8 {
                tokio::task::yield_now().await;
                clock.advance(STALL / 4);
            }
            if may_block {
                assert_eq!(stays.await.unwrap(), Left::Stuck);
            } else {
                tokio::task::yield_now().await;
                assert!(!stays.is_finished(), "it is told by its calls");
            }
        }
    }
}
