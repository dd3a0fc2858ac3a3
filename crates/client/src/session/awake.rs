//! A session stays awake for a moment while it waits for the server, where frames come one shortly after the other.

use std::thread;
use std::time::Duration;

use leasehold_types::Awake;
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::clock;
use crate::deadline::Stamp;

/// What comes within this is worth staying awake for, and so long one stays, when one caller waits: a durable write of a
/// server nearby, and the way there and back, also on a machine that is slow at times.
const SOON: Duration = Duration::from_micros(400);
/// With every other caller it may take longer, and is worth more: all of them are spared the same wake-up.
const SOON_EACH: Duration = Duration::from_micros(10);
/// A wake-up is no large part of what takes longer than this. Whoever works meanwhile, such as an engine on the same machine,
/// needs the cores more.
const SOON_MOST: Duration = Duration::from_micros(700);

/// How a session waits for what the server says.
pub(super) struct Hearing {
    /// `None`: it sleeps whenever it waits.
    awake: Option<Awake>,
    clock: fn() -> Stamp,
}

impl Hearing {
    /// That of a session on the present runtime.
    pub(super) fn new() -> Self {
        let awake = hears_by_itself(&Handle::current()).then(Awake::default);
        Self { awake, clock: clock::now }
    }

    /// Waits for the next frame, and looks around for it for a moment if that is worth it. So many callers wait for an answer.
    /// Cancel-safe if `frame` is.
    pub(super) async fn wait_for<T>(&mut self, frame: impl Future<Output = T>, callers: usize) -> T {
        let (Some(awake), clock) = (&mut self.awake, self.clock) else { return frame.await };
        let (begun, soon) = (clock(), soon(callers));
        let frame = tokio::select! {
            biased;
            frame = frame => frame,
            () = look_around(awake, begun, soon, clock) => unreachable!("it never completes"),
        };
        awake.woken(clock().since(begun) <= soon);
        frame
    }
}

fn soon(callers: usize) -> Duration {
    let callers = u32::try_from(callers).unwrap_or(u32::MAX);
    SOON.saturating_add(SOON_EACH.saturating_mul(callers)).min(SOON_MOST)
}

/// Whether a thread that stays awake is the one that hears of the network. Where there are several workers another one
/// sleeps until something comes, and is woken for it all the same.
fn hears_by_itself(runtime: &Handle) -> bool {
    match runtime.runtime_flavor() {
        RuntimeFlavor::CurrentThread => true,
        RuntimeFlavor::MultiThread => runtime.metrics().num_workers() == 1,
        _ => false,
    }
}

/// Never completes. With every look the other tasks of this thread have their turns, and the other threads of this core.
async fn look_around(awake: &mut Awake, begun: Stamp, soon: Duration, clock: fn() -> Stamp) {
    let mut last = begun;
    let until = if awake.is_worth_it(begun.0) { begun.plus(soon) } else { begun };
    while last < until {
        tokio::task::yield_now().await;
        thread::yield_now();
        let now = clock();
        if awake.is_held_up(last.0, now.0) {
            break;
        }
        last = now;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::{pending, ready};
    use std::pin::pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::task::{Context, Poll, Wake, Waker};

    use tokio::runtime::Builder;

    use super::*;

    const TICK: Duration = Duration::from_micros(1);

    thread_local! {
        /// How long a look at [`ticking`] takes, and its time.
        static CLOCK: Cell<(Duration, Duration)> = const { Cell::new((TICK, Duration::ZERO)) };
    }

    /// A clock that goes on with every look at it.
    fn ticking() -> Stamp {
        let (tick, time) = CLOCK.get();
        CLOCK.set((tick, time + tick));
        Stamp(time)
    }

    /// With looks at the clock that take this long from now on.
    fn slowly(tick: Duration) {
        CLOCK.set((tick, CLOCK.get().1));
    }

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Relaxed);
        }
    }

    /// How often it looks for a frame of which nobody tells it.
    fn looks(hearing: &mut Hearing) -> usize {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut waiting = pin!(hearing.wait_for(pending::<()>(), 1));
        let mut looks = 0;
        loop {
            assert!(waiting.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            if !woken.0.swap(false, Relaxed) {
                return looks;
            }
            looks += 1;
        }
    }

    fn hear(hearing: &mut Hearing) {
        let heard = pin!(hearing.wait_for(ready(()), 1)).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(heard, Poll::Ready(()));
    }

    fn after_frames_that_came_soon(count: usize) -> Hearing {
        let mut hearing = Hearing { awake: Some(Awake::default()), clock: ticking };
        (0..count).for_each(|_| hear(&mut hearing));
        hearing
    }

    #[test]
    fn after_some_frames_that_came_soon_the_next_is_looked_for_and_not_for_long() {
        assert_eq!(looks(&mut after_frames_that_came_soon(3)), 0);
        assert_eq!(looks(&mut after_frames_that_came_soon(4)), 410);
        let mut hearing = after_frames_that_came_soon(4);
        slowly(SOON + SOON_EACH + TICK);
        hear(&mut hearing);
        assert_eq!(looks(&mut hearing), 0, "the last one did not come soon");
    }

    #[test]
    fn the_more_callers_wait_the_longer_it_is_worth_it() {
        let micros = [0, 1, 16, 64, usize::MAX].map(|callers| soon(callers).as_micros());
        assert_eq!(micros, [400, 410, 560, 700, 700]);
    }

    #[test]
    fn whoever_is_held_up_looks_no_more() {
        let mut hearing = after_frames_that_came_soon(4);
        slowly(Duration::from_millis(1));
        assert_eq!(looks(&mut hearing), 1);
        slowly(TICK);
        assert_eq!(looks(&mut hearing), 0);
    }

    #[test]
    fn only_a_thread_that_hears_the_network_by_itself_stays_awake() {
        let one = Builder::new_current_thread().build().unwrap();
        assert!(hears_by_itself(one.handle()));
        for workers in 1..3 {
            let several = Builder::new_multi_thread().worker_threads(workers).build().unwrap();
            assert_eq!(hears_by_itself(several.handle()), workers == 1);
        }
        let mut hearing = Hearing { awake: None, ..after_frames_that_came_soon(4) };
        assert_eq!(looks(&mut hearing), 0);
    }
}
