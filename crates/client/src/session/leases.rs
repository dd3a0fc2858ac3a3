//! The leases of a session by their ids.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use leasehold_types::LeaseId;

use crate::guard::Held;

/// Leases of one session: so many that an opening, which names them all, fits into one frame.
const MOST: usize = 20_000;

/// See the module.
#[derive(Default)]
pub(super) struct Leases(Mutex<ById>);

type ById = HashMap<LeaseId, Weak<Held>, BuildHasherDefault<IdHasher>>;

impl Leases {
    pub(super) fn insert(&self, id: LeaseId, held: &Arc<Held>) {
        self.lock().insert(id, Arc::downgrade(held));
    }

    /// Takes a lease out; its guard may be gone already.
    pub(super) fn remove(&self, id: LeaseId) -> Option<Arc<Held>> {
        let held = self.lock().remove(&id);
        held.and_then(|held| held.upgrade())
    }

    /// Takes all leases out.
    pub(super) fn take(&self) -> impl Iterator<Item = Arc<Held>> + use<> {
        std::mem::take(&mut *self.lock()).into_values().filter_map(|held| held.upgrade())
    }

    /// Whether there is no room for one more.
    pub(super) fn is_full(&self) -> bool {
        self.lock().len() >= MOST
    }

    pub(super) fn ids(&self) -> Vec<LeaseId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, ById> {
        self.0.lock().expect("nothing panics while it holds the leases")
    }
}

/// These ids are drawn by this client, at random: eight bytes of one are as good as any hash of it.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, id: &[u8]) {
        let half = id.first_chunk().expect("an id has sixteen bytes");
        self.0 = u64::from_le_bytes(*half);
    }

    /// All ids have the same length.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use leasehold_types::ids;

    use super::*;

    #[test]
    fn ids_have_hashes_of_their_own() {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        let hashes: HashSet<_> =
            (0..1_000).map(|_| hasher.hash_one(LeaseId::from_bytes(ids::random()))).collect();
        assert_eq!(hashes.len(), 1_000);
        // A map takes a place by the low bits, and tells neighbours apart by the high ones.
        assert!(hashes.iter().map(|hash| hash & 0xff).collect::<HashSet<_>>().len() > 128);
        assert!(hashes.iter().map(|hash| hash >> 57).collect::<HashSet<_>>().len() > 64);
    }
}
