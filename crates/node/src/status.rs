//! What a node says of itself.

use std::sync::Arc;

use leasehold_core::Counts;
use leasehold_types::{ClusterId, Durability, Epoch, FencingToken, Generation, Slot};

/// Whether this node may append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// It decides and commits.
    Active,
    /// It has stopped, or waits for its turn.
    Standby,
}

impl Role {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Standby => "standby",
        }
    }
}

/// The active node of a journal that several nodes share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Active {
    /// The epoch it claimed.
    pub epoch: Epoch,
    /// Its name.
    pub node: Arc<str>,
    /// Where it is reached.
    pub url: Arc<str>,
    /// Whether it is this node.
    pub here: bool,
}

/// A node as it is now, as far as can be told without asking the loop.
#[derive(Clone, Debug)]
pub struct Status {
    /// The id of the journal.
    pub cluster: ClusterId,
    /// The life of the journal between two lossy recoveries.
    pub generation: Generation,
    /// The node's name.
    pub node: Arc<str>,
    /// Whether it may append.
    pub role: Role,
    /// The epoch in which it serves, or served last.
    pub epoch: Epoch,
    /// The kind of journal.
    pub journal: &'static str,
    /// What an acknowledged commit survives, as the journal tells whoever asks.
    pub durability: Durability,
    /// The last committed slot.
    pub tail: Slot,
    /// Sizes of the table.
    pub counts: Counts,
    /// No commit has made progress for 2 s although work waits: renewals are refused (N5).
    pub stalled: bool,
    /// Whether the journal has room for grants.
    pub room: bool,
    /// Committed slots that a standby has not replayed yet.
    pub lag: u64,
    /// Who is the active node, where several nodes share a journal and it is known.
    pub active: Option<Active>,
    /// Why a standby cannot read the journal.
    pub trouble: Option<Arc<str>>,
    /// The format of facts that the journal has (N10).
    pub format: u8,
    /// The newest format of facts that this node knows.
    pub known_format: u8,
    /// Commands that wait to be taken by the loop.
    pub queued: usize,
}

impl Status {
    /// The generation in which this token was given; `None` where it is an earlier one, which is not known any more.
    pub fn generation_of(&self, token: FencingToken) -> Option<Generation> {
        (token.get() > self.counts.recovered_above).then_some(self.generation)
    }
}
