//! The time that deadlines are counted in.

use std::time::Duration;

use leasehold_types::{Now, Time};

use crate::Reading;
use crate::config::{CLOCKS_PART, PAUSE, PAUSE_GRACE};

/// Serving time: monotonic, but standing still while the loop was paused, so that a pause moves every deadline by its
/// length (N3).
///
/// A pause is a look at the clocks that comes more than 250 ms after the last one. When the next look comes as late
/// again before the grace after the first has passed, the loop is slow rather than paused (every append of a sick disk
/// takes that long, say): what waited is drained between any two looks, so that time counts. Without this exception
/// nothing would ever expire on such a disk.
#[derive(Debug)]
pub struct ServingTime {
    last: Reading,
    served: Duration,
    /// Until this point of the monotonic clock serving time stands still.
    still_until: Duration,
}

/// What a look at the clocks shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look {
    /// What to decide with.
    pub now: Now,
    /// The loop was paused for this long: drain and confirm before anything expires (N3).
    pub paused: Option<Duration>,
    /// The machine was suspended: confirm before anything is told (R3).
    pub suspended: bool,
}

impl ServingTime {
    /// Time from zero on, as of this look.
    pub fn starting(reading: Reading) -> Self {
        Self { last: reading, served: Duration::ZERO, still_until: Duration::ZERO }
    }

    /// What to decide commands with, as of the last look: the next whole millisecond. Deadlines are counted from it, and
    /// one counted from a time before the command came would be up to a millisecond early.
    pub fn now(&self) -> Now {
        let begun = u64::from(!self.served.subsec_nanos().is_multiple_of(1_000_000));
        Now { time: Time(whole_ms(self.served) + begun), wall: self.last.wall }
    }

    /// Whether [`ServingTime::now`] may be over by this moment.
    pub fn is_over(&self, monotonic: Duration) -> bool {
        let passed = monotonic.saturating_sub(self.last.monotonic);
        whole_ms(self.served + passed) >= self.now().time.0
    }

    /// What has come, as of the last look: the last whole millisecond. By this deadlines are kept.
    pub fn due(&self) -> Now {
        Now { time: Time(whole_ms(self.served)), wall: self.last.wall }
    }

    /// Looks at the clocks.
    pub fn look(&mut self, reading: Reading) -> Look {
        let passed = reading.monotonic.saturating_sub(self.last.monotonic);
        let booted = reading.boottime.saturating_sub(self.last.boottime);
        let was_slow_before = self.last.monotonic < self.still_until;
        let paused = (passed > PAUSE && !was_slow_before).then_some(passed);
        if paused.is_some() {
            self.still_until = reading.monotonic + PAUSE_GRACE;
        } else {
            self.served += passed.min(reading.monotonic.saturating_sub(self.still_until));
        }
        self.last = reading;
        Look { now: self.now(), paused, suspended: booted.abs_diff(passed) > CLOCKS_PART }
    }

    /// When, by the monotonic clock, serving time reaches `deadline` if nothing is paused until then.
    pub fn monotonic_at(&self, deadline: Time) -> Duration {
        let missing = Duration::from_millis(deadline.0).saturating_sub(self.served);
        self.last.monotonic.max(self.still_until) + missing
    }
}

/// Milliseconds since 1970 are not lost in 64 bits, nor are those since the start.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use leasehold_types::WallTime;

    use super::*;

    fn at(monotonic_ms: u64, boottime_ms: u64) -> Reading {
        let wall = WallTime(1_700_000_000_000 + boottime_ms);
        let (monotonic, boottime) = (Duration::from_millis(monotonic_ms), Duration::from_millis(boottime_ms));
        Reading { monotonic, boottime, wall }
    }

    fn starting() -> ServingTime {
        ServingTime::starting(at(5_000, 5_000))
    }

    #[test]
    fn time_passes_while_the_loop_looks_often() {
        let mut time = starting();
        for ms in (5_000..=6_000).step_by(100) {
            assert_eq!(time.look(at(ms, ms)).paused, None);
        }
        assert_eq!(time.now().time, Time(1_000));
        assert_eq!(time.monotonic_at(Time(1_500)), Duration::from_millis(6_500));
    }

    #[test]
    fn a_deadline_counts_from_the_end_of_a_millisecond_and_comes_at_its_beginning() {
        let mut time = starting();
        let reading = at(5_000, 5_000);
        let later = Reading { monotonic: reading.monotonic + Duration::from_micros(900), ..reading };
        time.look(later);
        assert_eq!((time.now().time, time.due().time), (Time(1), Time(0)));
        time.look(at(5_001, 5_001));
        assert_eq!((time.now().time, time.due().time), (Time(1), Time(1)));
    }

    #[test]
    fn a_pause_moves_every_deadline_by_its_length_and_some_grace() {
        let mut time = starting();
        assert_eq!(time.look(at(15_000, 15_000)).paused, Some(Duration::from_secs(10)));
        assert_eq!(time.now().time, Time(0));
        assert_eq!(time.monotonic_at(Time(50)), Duration::from_millis(15_150), "grace, then what was left");
        time.look(at(15_090, 15_090));
        assert_eq!(time.now().time, Time(0), "still in the grace");
        time.look(at(15_150, 15_150));
        assert_eq!(time.now().time, Time(50));
    }

    #[test]
    fn a_loop_that_is_always_slow_still_gets_on() {
        let mut time = starting();
        for round in 1..=100 {
            let ms = 5_000 + round * 400;
            time.look(at(ms, ms));
        }
        let served = time.now().time.0;
        assert!((10_000..=20_000).contains(&served), "40 s of slow rounds served {served} ms");
    }

    #[test]
    fn a_suspended_machine_is_noticed_and_expires_nothing() {
        let mut time = starting();
        let look = time.look(at(5_050, 3_605_050));
        assert!(look.suspended && look.paused.is_none());
        assert_eq!(look.now.time, Time(50));
        assert!(!time.look(at(5_100, 3_605_100)).suspended, "only the change counts");
    }
}
