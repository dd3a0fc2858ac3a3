//! The keys of one cluster, all below `/leasehold/NAME/`. Their values are those of [`leasehold_journal::remote::record`].

use bytes::Bytes;
use leasehold_types::Slot;

/// The keys of one cluster.
#[derive(Clone)]
pub(crate) struct Keys {
    prefix: String,
    /// What the journal is: format and cluster id.
    pub(crate) identity: Bytes,
    /// Who may append. Compared by every write.
    pub(crate) epoch: Bytes,
    /// The last slot and its hash. Compared and set by every append.
    pub(crate) tail: Bytes,
    /// Counts beats.
    pub(crate) beat: Bytes,
    /// The low-water mark: slots up to it are gone.
    pub(crate) low: Bytes,
    /// The pointer to the current snapshot.
    pub(crate) snapshot: Bytes,
}

impl Keys {
    pub(crate) fn new(name: &str) -> Self {
        Self::below(format!("/leasehold/{name}/"))
    }

    /// Keys for the start-up probe, below our own: no wider permission is needed for it.
    pub(crate) fn scratch(&self, id: &[u8; 16]) -> Self {
        Self::below(format!("{}scratch/{:032x}/", self.prefix, u128::from_be_bytes(*id)))
    }

    fn below(prefix: String) -> Self {
        let key = |name: &str| Bytes::from(format!("{prefix}{name}"));
        Self {
            identity: key("identity"),
            epoch: key("epoch"),
            tail: key("tail"),
            beat: key("beat"),
            low: key("low"),
            snapshot: key("snapshot"),
            prefix,
        }
    }

    /// Everything of this cluster: from this key to [`Keys::end`].
    pub(crate) fn start(&self) -> Bytes {
        Bytes::from(self.prefix.clone())
    }

    /// The first key after everything of this cluster: `0` comes after `/`.
    pub(crate) fn end(&self) -> Bytes {
        Bytes::from(format!("{}0", self.prefix.trim_end_matches('/')))
    }

    /// A slot. Hexadecimal of fixed width, so that the order of keys is the order of slots.
    pub(crate) fn slot(&self, slot: Slot) -> Bytes {
        Bytes::from(format!("{}slots/{:016x}", self.prefix, slot.0))
    }

    /// The first key after all slots.
    pub(crate) fn slots_end(&self) -> Bytes {
        Bytes::from(format!("{}slots0", self.prefix))
    }

    /// The number in the key of a slot.
    pub(crate) fn slot_of(&self, key: &[u8]) -> Option<Slot> {
        let digits = key.strip_prefix(self.prefix.as_bytes())?.strip_prefix(b"slots/")?;
        u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().map(Slot)
    }

    /// A chunk of a snapshot.
    pub(crate) fn chunk(&self, slot: Slot, id: &[u8; 16], index: u32) -> Bytes {
        Bytes::from(format!("{}{index:08x}", self.chunks(slot, id)))
    }

    /// The chunks of snapshots before this one: from here to the key of this one's first chunk.
    pub(crate) fn chunks_start(&self) -> Bytes {
        Bytes::from(format!("{}chunks/", self.prefix))
    }

    /// The first key after the chunks of this snapshot.
    pub(crate) fn chunks_after(&self, slot: Slot, id: &[u8; 16]) -> Bytes {
        Bytes::from(format!("{}0", self.chunks(slot, id).trim_end_matches('/')))
    }

    /// The first key after the chunks of all snapshots of this slot.
    pub(crate) fn chunks_end(&self, slot: Slot) -> Bytes {
        Bytes::from(format!("{}chunks/{:016x}0", self.prefix, slot.0))
    }

    fn chunks(&self, slot: Slot, id: &[u8; 16]) -> String {
        format!("{}chunks/{:016x}/{:032x}/", self.prefix, slot.0, u128::from_be_bytes(*id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_keys_is_the_order_of_slots() {
        let keys = Keys::new("main");
        let slots = [1, 9, 10, 255, 256, 1 << 40, u64::MAX].map(Slot);
        for pair in slots.windows(2) {
            assert!(keys.slot(pair[0]) < keys.slot(pair[1]));
        }
        assert!(keys.slot(Slot(u64::MAX)) < keys.slots_end());
        assert_eq!(keys.slot_of(&keys.slot(Slot(77))), Some(Slot(77)));
        assert_eq!(keys.slot_of(&keys.tail), None);
    }

    #[test]
    fn no_cluster_reaches_into_another() {
        let (short, long) = (Keys::new("a"), Keys::new("a-b"));
        assert!(!(short.start()..short.end()).contains(&long.tail));
        assert!((short.start()..short.end()).contains(&short.slot(Slot(u64::MAX))));
    }

    #[test]
    fn chunks_of_other_snapshots_are_around_the_current_one() {
        let keys = Keys::new("main");
        let (slot, id) = (Slot(5), [7; 16]);
        let current = keys.chunk(slot, &id, 0)..keys.chunks_after(slot, &id);
        assert!(current.contains(&keys.chunk(slot, &id, u32::MAX)));
        assert!(!current.contains(&keys.chunk(slot, &[8; 16], 0)));
        let before = keys.chunks_start()..keys.chunk(slot, &id, 0);
        assert!(
            before.contains(&keys.chunk(Slot(4), &[255; 16], 3))
                && before.contains(&keys.chunk(slot, &[6; 16], 3))
        );
        let after = keys.chunks_after(slot, &id)..keys.chunks_end(slot);
        assert!(
            after.contains(&keys.chunk(slot, &[8; 16], 0))
                && !after.contains(&keys.chunk(Slot(6), &[1; 16], 0))
        );
    }
}
