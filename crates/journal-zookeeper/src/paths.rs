//! The nodes of one cluster, all below `/leasehold/NAME`. Their data are those of [`leasehold_journal::remote::record`].

use leasehold_types::{Nonce, Slot};

/// Slots of one bucket: ZooKeeper sends all names of a parent's children at once, so no parent may have too many.
pub(crate) const SLOTS_PER_BUCKET: u64 = 1_000;

/// The paths of one cluster.
#[derive(Clone)]
pub(crate) struct Paths {
    /// The parent of everything.
    pub(crate) root: String,
    /// What the journal is: format and cluster id.
    pub(crate) identity: String,
    /// Who may append. Its child, named by the nonce, is what every write checks.
    pub(crate) epoch: String,
    /// The last slot and its hash. Its version is compared and set by every append.
    pub(crate) tail: String,
    /// Counts beats.
    pub(crate) beat: String,
    /// The low-water mark: slots up to it are gone.
    pub(crate) low: String,
    /// The pointer to the current snapshot; empty when there is none.
    pub(crate) snapshot: String,
    /// The parent of the buckets of slots.
    pub(crate) slots: String,
    /// The parent of the chunks of snapshots.
    pub(crate) chunks: String,
}

impl Paths {
    pub(crate) fn new(name: &str) -> Self {
        Self::below(format!("/leasehold/{name}"))
    }

    /// Paths for the start-up probe, beside the clusters: `scratch:` is no lawful name.
    pub(crate) fn scratch(id: &[u8; 16]) -> Self {
        Self::below(format!("/leasehold/scratch:{:032x}", u128::from_be_bytes(*id)))
    }

    fn below(root: String) -> Self {
        let path = |name: &str| format!("{root}/{name}");
        Self {
            identity: path("identity"),
            epoch: path("epoch"),
            tail: path("tail"),
            beat: path("beat"),
            low: path("low"),
            snapshot: path("snapshot"),
            slots: path("slots"),
            chunks: path("chunks"),
            root,
        }
    }

    /// The node that is there while this nonce's claim is the current one.
    pub(crate) fn holder(&self, nonce: Nonce) -> String {
        format!("{}/{nonce}", self.epoch)
    }

    pub(crate) fn bucket(&self, slot: Slot) -> String {
        format!("{}/{:016x}", self.slots, slot.0 / SLOTS_PER_BUCKET)
    }

    /// The bucket of this slot, if it is not that of the slot before, whose bucket is always there.
    pub(crate) fn new_bucket(&self, slot: Slot) -> Option<String> {
        slot.0.is_multiple_of(SLOTS_PER_BUCKET).then(|| self.bucket(slot))
    }

    pub(crate) fn slot(&self, slot: Slot) -> String {
        format!("{}/{:016x}", self.bucket(slot), slot.0)
    }

    /// The parent of the chunks of one snapshot. Of fixed width, so that their order is that of the slots.
    pub(crate) fn chunks_of(&self, slot: Slot, id: &[u8; 16]) -> String {
        format!("{}/{:016x}-{:032x}", self.chunks, slot.0, u128::from_be_bytes(*id))
    }

    pub(crate) fn chunk(&self, slot: Slot, id: &[u8; 16], index: u32) -> String {
        format!("{}/{index:08x}", self.chunks_of(slot, id))
    }
}
