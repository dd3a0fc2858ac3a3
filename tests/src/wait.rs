//! Waiting for another process. It has no event to await, so its state is looked at again and again, with a deadline.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Looks until there is something to see.
///
/// # Panics
/// After `most`, naming what was waited for.
pub fn until<T>(what: &str, most: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let watch = Stopwatch::start();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(watch.elapsed() < most, "waited {most:?} for {what}");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "another process cannot be awaited, only looked at")]
fn pause() {
    std::thread::sleep(Duration::from_millis(2));
}

/// Measures what a test waited.
#[derive(Clone, Copy)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    /// Begins.
    #[expect(
        clippy::disallowed_methods,
        reason = "measures a real process; nothing of the service is decided from it"
    )]
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Since the beginning.
    pub fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Checks what was measured against what is promised. By hand (`LEASEHOLD_STRICT`) every single measurement is held to
/// it. In the test run, beside other tests on the same two cores, most of them are, and none may be many times as long.
pub fn hold_to(promised: Duration, measured: &[Duration]) {
    let within = |time: &Duration| *time <= promised;
    let bearable = 10 * promised.max(Duration::from_secs(1));
    let kept = match std::env::var_os("LEASEHOLD_STRICT") {
        Some(_) => measured.iter().all(within),
        None => {
            let in_time = measured.iter().filter(|time| within(time)).count();
            2 * in_time > measured.len() && measured.iter().all(|time| *time <= bearable)
        }
    };
    assert!(kept, "promised within {promised:?}, measured {measured:?}");
}

/// Tells the clients of a drill to stop, also when a check failed: they must not work for ever.
pub struct StopOnDrop<'a>(pub &'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
