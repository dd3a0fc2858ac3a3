//! Which lease has an id: in the order of ids, without a second copy of them. An entry has the first four bytes of its
//! id, which decide nearly every comparison, and the place of its lease, which decides the rest.

use std::cmp::Ordering;

use leasehold_types::LeaseId;

use crate::arena::Arena;
use crate::block_map::BlockMap;
use crate::lease::{Lease, LeaseIx};

/// See the module. Every lease that is in it must be in the arena that is given, while it is in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct LeaseIds(BlockMap<u32, LeaseIx>);

impl LeaseIds {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn get(&self, id: LeaseId, leases: &Arena<Lease>) -> Option<LeaseIx> {
        self.0.get_by(order(id, leases)).copied()
    }

    /// False if the id is there already.
    pub(crate) fn insert(&mut self, ix: LeaseIx, leases: &Arena<Lease>) -> bool {
        let id = leases.get(ix).id;
        self.0.insert_by(order(id, leases), head(id), ix)
    }

    pub(crate) fn remove(&mut self, id: LeaseId, leases: &Arena<Lease>) -> Option<LeaseIx> {
        self.0.remove_by(order(id, leases))
    }

    /// All of them, in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = LeaseIx> {
        self.0.iter().map(|(_, ix)| *ix)
    }
}

/// The first bytes of an id, in the order of ids.
fn head(id: LeaseId) -> u32 {
    u32::from_be_bytes(*id.as_bytes().first_chunk().expect("an id has 16 bytes"))
}

/// How an entry stands to an id.
fn order(id: LeaseId, leases: &Arena<Lease>) -> impl Fn(&u32, &LeaseIx) -> Ordering {
    let sought = head(id);
    move |head, ix| head.cmp(&sought).then_with(|| leases.get(*ix).id.cmp(&id))
}

#[cfg(test)]
mod tests {
    use leasehold_types::{
        Class, FencingToken, Labels, OwnerId, ResourceKey, ResourceName, TenantName, Ttl, WallTime,
    };

    use super::*;
    use crate::command::Sharing;
    use crate::fact::Granted;

    fn lease(id: [u8; 16]) -> Lease {
        let name = ResourceName::new("r").unwrap();
        let granted = Granted {
            lease_id: LeaseId::from_bytes(id),
            resource: ResourceKey::new(&TenantName::default_tenant(), &name),
            owner: OwnerId::new("o").unwrap(),
            session: None,
            sharing: Sharing::Exclusive,
            permit: None,
            class: Class::Correctness,
            ttl: Ttl::from_journal(1_000).unwrap(),
            max_hold_ms: None,
            lock_delay_ms: 0,
            labels: Labels::default(),
            value: None,
            token: FencingToken::new(1).unwrap(),
            at: WallTime(0),
            key: None,
            principal: None,
        };
        Lease::new(&granted, None)
    }

    /// Ids that a caller has chosen to look alike: four heads, and the rest in the last byte.
    #[test]
    fn ids_with_the_same_first_bytes_are_told_apart() {
        let (mut leases, mut ids) = (Arena::default(), LeaseIds::default());
        let id = |number: u8| {
            let mut bytes = [number % 4; 16];
            bytes[15] = number;
            bytes
        };
        for number in (0..=255).rev() {
            let ix = leases.insert(lease(id(number)));
            assert!(ids.insert(ix, &leases));
            assert!(!ids.insert(ix, &leases), "an id is there once");
        }
        let in_order: Vec<_> = ids.iter().map(|ix| leases.get(ix).id).collect();
        assert!(in_order.is_sorted() && in_order.len() == 256);
        for number in (0..=255).filter(|number| number % 3 == 0) {
            let ix = ids.remove(LeaseId::from_bytes(id(number)), &leases).unwrap();
            leases.remove(ix);
        }
        for number in 0..=255 {
            let found = ids.get(LeaseId::from_bytes(id(number)), &leases);
            assert_eq!(found.map(|ix| leases.get(ix).id.as_bytes()[15]), (number % 3 != 0).then_some(number));
        }
    }
}
