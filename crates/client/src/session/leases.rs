//! The leases of a session by their ids: those that are held, and those that are asked for.
//!
//! The end of a lease can be told before its caller has taken the grant: the two come to the stream by different ways, and
//! a caller runs later than the session hears. So a loss is kept for whoever still asks for that lease.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use leasehold_types::LeaseId;

use crate::error::LostReason;
use crate::guard::Held;

/// Leases of one session: so many that an opening, which names them all, fits into one frame.
const MOST: usize = 20_000;

/// See the module.
#[derive(Default)]
pub(super) struct Leases(Mutex<Known>);

type ById<T> = HashMap<LeaseId, T, BuildHasherDefault<IdHasher>>;

/// Under one lock, so that a loss finds a lease in one of the two.
#[derive(Default)]
struct Known {
    held: ById<Weak<Held>>,
    /// Not held yet, and why they never will be if they are lost already.
    asked: ById<Option<LostReason>>,
}

impl Leases {
    /// Asked for from now on, until it is held or removed.
    pub(super) fn ask(&self, id: LeaseId) {
        self.lock().asked.insert(id, None);
    }

    /// Held from now on, unless it was lost meanwhile: then why.
    pub(super) fn hold(&self, id: LeaseId, held: &Arc<Held>) -> Result<(), LostReason> {
        let mut known = self.lock();
        match known.asked.remove(&id).flatten() {
            Some(reason) => Err(reason),
            None => {
                known.held.insert(id, Arc::downgrade(held));
                Ok(())
            }
        }
    }

    /// A lease has ended; gives it if it was held here, and its guard is not gone already.
    pub(super) fn lose(&self, id: LeaseId, reason: LostReason) -> Option<Arc<Held>> {
        let mut known = self.lock();
        if let Some(lost) = known.asked.get_mut(&id) {
            lost.get_or_insert(reason);
        }
        let held = known.held.remove(&id);
        drop(known);
        held.and_then(|held| held.upgrade())
    }

    pub(super) fn remove(&self, id: LeaseId) {
        let mut known = self.lock();
        known.asked.remove(&id);
        known.held.remove(&id);
    }

    /// Takes all that are held out.
    pub(super) fn take(&self) -> impl Iterator<Item = Arc<Held>> + use<> {
        std::mem::take(&mut self.lock().held).into_values().filter_map(|held| held.upgrade())
    }

    /// Whether there is no room for one more.
    pub(super) fn is_full(&self) -> bool {
        self.lock().held.len() >= MOST
    }

    /// Those that are held.
    pub(super) fn ids(&self) -> Vec<LeaseId> {
        self.lock().held.keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
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
