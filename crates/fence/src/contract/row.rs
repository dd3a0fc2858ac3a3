//! What a fence keeps.

use leasehold_types::{FencingToken, ResourceName};

/// The state of a fence: one for the whole, or one for each permit.
///
/// 1. `highest` never goes down.
/// 2. `guard` never changes by a write; it is changed by an operator, by hand.
/// 3. `writes` counts the admitted writes of `highest` alone; a claim has made none yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    /// The lock that guards the thing.
    pub guard: ResourceName,
    /// The highest token admitted or claimed.
    pub highest: Option<FencingToken>,
    /// How many writes of it were admitted.
    pub writes: u64,
}

impl Row {
    /// Reads what a store kept as numbers, 0 standing for no token yet. `None` when this can be no row: whoever finds
    /// one admits nothing.
    pub fn from_numbers(guard: &str, highest: i64, writes: i64) -> Option<Self> {
        let guard = ResourceName::new(guard).ok()?;
        let highest = match u64::try_from(highest).ok()? {
            0 => None,
            number => Some(FencingToken::new(number).ok()?),
        };
        Some(Self { guard, highest, writes: u64::try_from(writes).ok()? })
    }

    /// The highest token as a number, 0 when there is none yet.
    pub fn highest_number(&self) -> i64 {
        self.highest.map_or(0, |token| i64::try_from(token.get()).expect("tokens are below 2^53"))
    }
}
