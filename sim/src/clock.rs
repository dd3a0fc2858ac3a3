//! The clocks of one machine, each with a rate of its own, as functions of the one true time of the simulation.

use std::time::Duration;

use leasehold::deadline::Stamp;
use leasehold_node::Reading;
use leasehold_types::WallTime;

/// The one true time of a run, in microseconds.
pub(crate) type Micros = u64;

/// One second of it.
pub(crate) const SECOND: Micros = 1_000_000;
/// One millisecond of it.
pub(crate) const MS: Micros = 1_000;

/// The clocks of one machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineClock {
    /// Thousandths of the true rate.
    rate: u64,
    /// How long the machine was suspended so far: its monotonic clock stood still.
    suspended: Micros,
}

impl MachineClock {
    /// A clock of this rate in thousandths.
    pub(crate) fn new(rate: u64) -> Self {
        Self { rate, suspended: 0 }
    }

    /// The machine was suspended for so long.
    pub(crate) fn suspend(&mut self, length: Micros) {
        self.suspended += length;
    }

    /// A look at all clocks.
    pub(crate) fn read(&self, now: Micros) -> Reading {
        Reading {
            monotonic: self.scaled(now - self.suspended.min(now)),
            boottime: self.scaled(now),
            wall: WallTime(1_700_000_000_000 + now / MS),
        }
    }

    /// The clock by which a client counts.
    pub(crate) fn stamp(&self, now: Micros) -> Stamp {
        Stamp(self.scaled(now))
    }

    /// When the monotonic clock shows this, if the machine is not suspended until then; never earlier.
    pub(crate) fn when(&self, monotonic: Duration) -> Micros {
        self.truly(monotonic) + self.suspended
    }

    /// When the client's clock shows this; never earlier.
    pub(crate) fn when_stamp(&self, stamp: Stamp) -> Micros {
        self.truly(stamp.0)
    }

    fn scaled(&self, time: Micros) -> Duration {
        Duration::from_micros(time * self.rate / 1_000)
    }

    fn truly(&self, local: Duration) -> Micros {
        let local = u64::try_from(local.as_micros()).unwrap_or(u64::MAX / 2_000).min(u64::MAX / 2_000);
        (local * 1_000).div_ceil(self.rate)
    }
}
