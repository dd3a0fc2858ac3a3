//! The network: how long a message takes, and whether it comes at all, once, or twice.

use crate::chance::Chance;
use crate::clock::{MS, Micros, SECOND};

/// How often messages meet with a fault, in thousandths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Mix {
    /// Lost.
    pub(crate) drop: u64,
    /// Delivered twice.
    pub(crate) duplicate: u64,
    /// Held up, and so overtaken by others.
    pub(crate) late: u64,
}

/// When the copies of one message arrive.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Arrivals {
    pub(crate) first: Option<Micros>,
    pub(crate) second: Option<Micros>,
    /// Faults that it met.
    pub(crate) faults: u64,
}

impl Mix {
    /// The fate of one message that is sent now.
    pub(crate) fn fate(&self, chance: &mut Chance, now: Micros) -> Arrivals {
        let usual = now + chance.within(80, 900);
        let draw = chance.below(1_000);
        if draw < self.drop {
            return Arrivals { faults: 1, ..Arrivals::default() };
        }
        if draw < self.drop + self.duplicate {
            let most = if chance.per_mille(150) { 3 * SECOND } else { 40 * MS };
            let second = usual + chance.within(1, most);
            return Arrivals { first: Some(usual), second: Some(second), faults: 1 };
        }
        if draw < self.drop + self.duplicate + self.late {
            let most = if chance.per_mille(200) { 4 * SECOND } else { 60 * MS };
            return Arrivals { first: Some(usual + chance.below(most)), second: None, faults: 1 };
        }
        Arrivals { first: Some(usual), second: None, faults: 0 }
    }
}
