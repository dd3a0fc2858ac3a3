//! The three hashes of one cluster. The name is in braces, so that a sharded Redis keeps them together.

use leasehold_types::Slot;

use crate::txn::{Field, Table};

/// What the journal is: format and cluster id.
pub(crate) const IDENTITY: &str = "identity";
/// Who may append. Compared by every write.
pub(crate) const EPOCH: &str = "epoch";
/// The last slot and its hash. Compared and set by every append.
pub(crate) const TAIL: &str = "tail";
/// Counts beats.
pub(crate) const BEAT: &str = "beat";
/// The low-water mark: slots up to it are gone.
pub(crate) const LOW: &str = "low";
/// The pointer to the current snapshot.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// The keys of one cluster.
#[derive(Clone)]
pub(crate) struct Keys {
    prefix: String,
    pub(crate) head: String,
    pub(crate) slots: String,
    pub(crate) chunks: String,
}

impl Keys {
    pub(crate) fn new(name: &str) -> Self {
        Self::below(format!("leasehold:{{{name}}}:"))
    }

    /// Keys for the start-up probe.
    pub(crate) fn scratch(&self, id: &[u8; 16]) -> Self {
        Self::below(format!("{}scratch:{:032x}:", self.prefix, u128::from_be_bytes(*id)))
    }

    fn below(prefix: String) -> Self {
        let key = |name: &str| format!("{prefix}{name}");
        Self { head: key("head"), slots: key("slots"), chunks: key("chunks"), prefix }
    }

    pub(crate) fn all(&self) -> [&str; 3] {
        [&self.head, &self.slots, &self.chunks]
    }
}

/// The field of a slot.
pub(crate) fn slot(slot: Slot) -> Field {
    Field(Table::Slots, slot.to_string())
}

/// The field of a chunk. Of fixed width, so that their order is that of the slots.
pub(crate) fn chunk(slot: Slot, id: &[u8; 16], index: u32) -> Field {
    Field(Table::Chunks, format!("{}{index:08x}", chunks_of(slot, id)))
}

/// What the fields of all chunks of one snapshot begin with.
pub(crate) fn chunks_of(slot: Slot, id: &[u8; 16]) -> String {
    format!("{:016x}/{:032x}/", slot.0, u128::from_be_bytes(*id))
}
