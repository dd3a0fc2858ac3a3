//! Time as the core sees it: numbers given from outside, never read from a clock here.

use std::fmt;
use std::time::Duration;

use crate::limits;

/// Milliseconds of the node's serving time: monotonic, and standing still while the node was paused. Only differences
/// within one life of one node mean anything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(pub u64);

impl Time {
    /// This much later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Milliseconds from `earlier` to this, or 0.
    pub const fn ms_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// Milliseconds since 1970 by the wall clock: shown to people, and no decision is ever made from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WallTime(pub u64);

impl WallTime {
    /// This much later.
    #[must_use]
    pub const fn plus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// This much earlier.
    #[must_use]
    pub const fn minus_ms(self, ms: u64) -> Self {
        Self(self.0.saturating_sub(ms))
    }
}

/// The two times that the node stamps on each batch of commands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// Decides.
    pub time: Time,
    /// Is shown.
    pub wall: WallTime,
}

/// How long a lease lives without a renewal. Whole milliseconds, more than 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ttl(u32);

/// The ttl bounds of a server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TtlBounds {
    /// Shortest.
    pub min_ms: u64,
    /// Longest.
    pub max_ms: u64,
}

impl Default for TtlBounds {
    fn default() -> Self {
        Self { min_ms: limits::TTL_MIN_MS, max_ms: limits::TTL_MAX_MS }
    }
}

/// Milliseconds as a person writes them: in the largest unit that leaves no fraction.
struct Written(u64);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s")];
        let (length, unit) = units
            .into_iter()
            .find(|(length, _)| self.0 > 0 && self.0.is_multiple_of(*length))
            .unwrap_or((1, "ms"));
        write!(f, "{}{unit}", self.0 / length)
    }
}

/// The ttl is outside the bounds of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("ttl of {} is outside {} to {}", Written(*ms), Written(*min_ms), Written(*max_ms))]
pub struct InvalidTtl {
    /// What was asked.
    pub ms: u64,
    /// Shortest allowed.
    pub min_ms: u64,
    /// Longest allowed.
    pub max_ms: u64,
}

impl Ttl {
    /// Checks against the bounds of the server.
    ///
    /// # Errors
    /// Outside the bounds; the caller's mistake.
    pub fn new(ms: u64, bounds: TtlBounds) -> Result<Self, InvalidTtl> {
        let invalid = InvalidTtl { ms, min_ms: bounds.min_ms, max_ms: bounds.max_ms };
        if ms < bounds.min_ms.max(1) || ms > bounds.max_ms {
            return Err(invalid);
        }
        u32::try_from(ms).map(Self).map_err(|_| invalid)
    }

    /// A ttl read back from a journal: it was checked when it was granted, under the bounds of that time.
    pub fn from_journal(ms: u64) -> Option<Self> {
        u32::try_from(ms).ok().filter(|&ms| ms > 0).map(Self)
    }

    /// Milliseconds.
    pub const fn ms(self) -> u64 {
        self.0 as u64
    }

    /// What the server waits before it ends the lease: the ttl and the drift that clocks may have.
    pub const fn armed_ms(self) -> u64 {
        armed_ms(self.0 as u64)
    }
}

/// `ms` stretched by the permitted clock drift, rounded up: what a server waits when it promised `ms`.
pub const fn armed_ms(ms: u64) -> u64 {
    ms + (ms * limits::CLOCK_DRIFT_PERCENT).div_ceil(100)
}

impl fmt::Debug for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl From<Ttl> for Duration {
    fn from(ttl: Ttl) -> Self {
        Self::from_millis(ttl.ms())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_within_bounds_and_armed_late() {
        let bounds = TtlBounds::default();
        assert!(Ttl::new(0, bounds).is_err());
        assert!(Ttl::new(999, bounds).is_err());
        assert!(Ttl::new(3_600_001, bounds).is_err());
        assert!(Ttl::new(u64::MAX, TtlBounds { min_ms: 0, max_ms: u64::MAX }).is_err());
        assert_eq!(Ttl::new(1_001, bounds).unwrap().armed_ms(), 1_012);
    }

    #[test]
    fn a_ttl_out_of_bounds_is_told_in_the_units_that_people_write() {
        let told = |ms| Ttl::new(ms, TtlBounds::default()).unwrap_err().to_string();
        assert_eq!(told(36_000_000), "ttl of 10h is outside 1s to 1h");
        assert_eq!(told(5_400_000), "ttl of 90m is outside 1s to 1h");
        assert_eq!(told(3_601_000), "ttl of 3601s is outside 1s to 1h");
        assert_eq!(told(500), "ttl of 500ms is outside 1s to 1h");
        assert_eq!(told(0), "ttl of 0ms is outside 1s to 1h");
    }
}
