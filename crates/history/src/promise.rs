//! The promises that a history can show, by their numbers.

use std::fmt;

/// A promise that a history can show.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Promise {
    /// Committed holds are disjoint.
    S1,
    /// Committed tokens only grow.
    S2,
    /// A grant acknowledged before another is asked for has the smaller token.
    S3,
    /// Writes that a fence admits never go down in token.
    S4,
    /// Nothing acknowledged is lost.
    S5,
    /// What was answered as failed has not happened.
    S6,
    /// One grant for each lease id.
    S7,
    /// One body for each slot, no gaps, the chain intact, no commit of an epoch after its successor's claim.
    S8,
    /// No lease ends before sending + the ttl of any acknowledged answer.
    S9,
    /// Two clients never believe at the same time that they hold the same lock.
    S10,
    /// Reads are linearizable; the epochs that one client sees never go down.
    S11,
    /// A release touches the lease it names and nothing else.
    S12,
    /// No lease comes back once it has ended.
    S13,
    /// Journaled events are gap-free, in order and committed.
    S14,
    /// A node that was replaced answers nothing that was asked of it afterwards.
    S17,
    /// A node does not go on upon a journal that is shorter than it has seen.
    S18,
    /// Audit entries are numbered in order, each once.
    S19,
}

impl Promise {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::S1,
        Self::S2,
        Self::S3,
        Self::S4,
        Self::S5,
        Self::S6,
        Self::S7,
        Self::S8,
        Self::S9,
        Self::S10,
        Self::S11,
        Self::S12,
        Self::S13,
        Self::S14,
        Self::S17,
        Self::S18,
        Self::S19,
    ];

    /// The promise of this number.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|promise| promise.to_string() == text)
    }
}

impl fmt::Display for Promise {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::S1 => "S1",
            Self::S2 => "S2",
            Self::S3 => "S3",
            Self::S4 => "S4",
            Self::S5 => "S5",
            Self::S6 => "S6",
            Self::S7 => "S7",
            Self::S8 => "S8",
            Self::S9 => "S9",
            Self::S10 => "S10",
            Self::S11 => "S11",
            Self::S12 => "S12",
            Self::S13 => "S13",
            Self::S14 => "S14",
            Self::S17 => "S17",
            Self::S18 => "S18",
            Self::S19 => "S19",
        })
    }
}

/// Which promises are checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Promises(u32);

impl Promises {
    /// Every one.
    pub const ALL: Self = Self(u32::MAX);

    /// All of these but one.
    #[must_use]
    pub const fn without(self, promise: Promise) -> Self {
        Self(self.0 & !(1 << promise as u32))
    }

    /// Whether it is checked.
    pub const fn has(self, promise: Promise) -> bool {
        self.0 & (1 << promise as u32) != 0
    }
}
