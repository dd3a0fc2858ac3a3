//! One resource: who holds it, which lock delays are open, how earlier leases ended; and the rule of who may join.

use std::collections::VecDeque;

use leasehold_types::{FencingToken, Permit, ResourceKey, limits};

use crate::arena::Ix;
use crate::command::Sharing;
use crate::lease::LeaseIx;
use crate::reply::Ending;

/// What is known of one resource, to look at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resource<'a> {
    /// One holder, and no past.
    HeldBy(LeaseIx),
    Full(&'a Full),
}

/// A resource with several holders or with a past.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub(crate) key: ResourceKey,
    /// The holder with the smallest token.
    pub(crate) first: Option<LeaseIx>,
    /// The other holders, in the order of their tokens.
    pub(crate) others: Vec<LeaseIx>,
    /// Newest last.
    pub(crate) endings: VecDeque<Ending>,
    pub(crate) delays: Vec<Delay>,
    /// When it was last used, in the count of endings; 0: its endings were never kept.
    pub(crate) used: u64,
    /// Its neighbours in the order of use.
    pub(crate) in_order: Links,
}

/// What was used right before and right after.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Links {
    pub(crate) older: Option<Ix<Full>>,
    pub(crate) newer: Option<Ix<Full>>,
}

/// A lock delay that is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delay {
    /// The token whose ending opened it.
    pub(crate) token: FencingToken,
    pub(crate) closes: Closes,
    pub(crate) ms: u64,
}

/// What a lock delay keeps closed (A11).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closes {
    /// Everything: the writer may still be writing.
    All,
    /// One permit; and everything that is not a semaphore grant.
    Permit(Permit),
    /// Everything but shared grants: a reader may still be reading.
    ButShared,
}

impl Closes {
    pub(crate) const fn after(sharing: Sharing, permit: Option<Permit>) -> Self {
        match (sharing, permit) {
            (Sharing::Shared, _) => Self::ButShared,
            (Sharing::Semaphore { .. }, Some(permit)) => Self::Permit(permit),
            (Sharing::Exclusive | Sharing::Semaphore { .. }, _) => Self::All,
        }
    }
}

/// What the present holders have in common, as [`place_for`] needs it.
pub(crate) enum Held {
    Free,
    Exclusively,
    Shared,
    /// Permits in use, in any order, and the smallest limit among their holders.
    BySemaphore {
        permits: Vec<u32>,
        limit: u32,
    },
}

/// There is a place, and for a semaphore this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) permit: Option<Permit>,
}

impl<'a> Resource<'a> {
    /// In the order of their tokens.
    pub(crate) fn holders(self) -> impl Iterator<Item = LeaseIx> + Clone + use<'a> {
        let (first, others) = match self {
            Self::HeldBy(ix) => (Some(ix), &[][..]),
            Self::Full(full) => (full.first, &full.others[..]),
        };
        first.into_iter().chain(others.iter().copied())
    }

    pub(crate) fn is_held(self) -> bool {
        match self {
            Self::HeldBy(_) => true,
            Self::Full(full) => full.first.is_some(),
        }
    }

    /// Newest last.
    pub(crate) fn endings(self) -> impl DoubleEndedIterator<Item = &'a Ending> + ExactSizeIterator {
        self.full().map_or(const { &VecDeque::new() }, |full| &full.endings).iter()
    }

    pub(crate) fn has_past(self) -> bool {
        self.full().is_some_and(Full::has_past)
    }

    pub(crate) fn used(self) -> u64 {
        self.full().map_or(0, |full| full.used)
    }

    pub(crate) fn delays(self) -> &'a [Delay] {
        self.full().map_or(&[], |full| &full.delays)
    }

    fn full(self) -> Option<&'a Full> {
        match self {
            Self::Full(full) => Some(full),
            Self::HeldBy(_) => None,
        }
    }
}

impl Full {
    pub(crate) fn new(key: ResourceKey, first: Option<LeaseIx>) -> Self {
        let (others, endings, delays) = (Vec::new(), VecDeque::new(), Vec::new());
        Self { key, first, others, endings, delays, used: 0, in_order: Links::default() }
    }

    /// One more holds, with the newest token.
    pub(crate) fn add_holder(&mut self, ix: LeaseIx) {
        match self.first {
            None => self.first = Some(ix),
            Some(_) => self.others.push(ix),
        }
    }

    pub(crate) fn remove_holder(&mut self, ix: LeaseIx) {
        if self.first == Some(ix) {
            self.first = (!self.others.is_empty()).then(|| self.others.remove(0));
        } else {
            self.others.retain(|holder| *holder != ix);
        }
    }

    /// Drops the oldest ending beyond the bound.
    pub(crate) fn add_ending(&mut self, ending: Ending) {
        if self.endings.len() >= limits::ENDINGS_PER_RESOURCE {
            self.endings.pop_front();
        }
        if self.endings.capacity() == 0 {
            // Most have one.
            self.endings.reserve_exact(1);
        }
        self.endings.push_back(ending);
    }

    pub(crate) fn has_past(&self) -> bool {
        !self.endings.is_empty() || !self.delays.is_empty()
    }
}

/// The place that somebody who wants to share like this could have now, beside the present holders and the open lock
/// delays. Knows nothing of the queue.
pub(crate) fn place_for(sharing: Sharing, held: &Held, delays: &[Delay]) -> Option<Place> {
    let plain = Place { permit: None };
    match (sharing, held) {
        (_, Held::Exclusively) | (Sharing::Exclusive, Held::Shared | Held::BySemaphore { .. }) => None,
        (Sharing::Shared, Held::BySemaphore { .. }) | (Sharing::Semaphore { .. }, Held::Shared) => None,
        (Sharing::Exclusive, Held::Free) => delays.is_empty().then_some(plain),
        (Sharing::Shared, Held::Free | Held::Shared) => {
            delays.iter().all(|delay| delay.closes == Closes::ButShared).then_some(plain)
        }
        (Sharing::Semaphore { limit }, Held::Free) => permit_for(limit, &[], delays),
        (Sharing::Semaphore { limit }, Held::BySemaphore { permits, limit: held_limit }) => {
            permit_for(limit.min(*held_limit), permits, delays)
        }
    }
}

/// The lowest permit that is neither held nor closed, while those together are fewer than the limit.
fn permit_for(limit: u32, held: &[u32], delays: &[Delay]) -> Option<Place> {
    if held.len() + delays.len() >= limit as usize {
        return None;
    }
    // Among one more places than are taken, one is free.
    let mut taken = vec![false; held.len() + delays.len() + 1];
    let mut take = |permit: u32| {
        if let Some(place) = taken.get_mut(permit as usize) {
            *place = true;
        }
    };
    for delay in delays {
        let Closes::Permit(permit) = delay.closes else { return None };
        take(permit.0);
    }
    held.iter().copied().for_each(&mut take);
    let lowest = taken.iter().position(|taken| !taken).expect("one more place than taken ones");
    Some(Place { permit: Some(Permit(u32::try_from(lowest).expect("below the limit, which is a u32"))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delay(closes: Closes) -> Delay {
        Delay { token: FencingToken::new(1).unwrap(), closes, ms: 10 }
    }

    fn semaphore(permits: &[u32], limit: u32) -> Held {
        Held::BySemaphore { permits: permits.to_vec(), limit }
    }

    fn permit(place: Option<Place>) -> Option<u32> {
        place.map(|place| place.permit.unwrap().0)
    }

    #[test]
    fn a_semaphore_gives_the_lowest_free_permit_below_every_limit() {
        let ask = |limit, held: &Held| permit(place_for(Sharing::Semaphore { limit }, held, &[]));
        assert_eq!(ask(3, &Held::Free), Some(0));
        assert_eq!(ask(3, &semaphore(&[0, 2], 3)), Some(1));
        assert_eq!(ask(5, &semaphore(&[0, 1], 2)), None, "a live holder accepted only two");
        assert_eq!(ask(2, &semaphore(&[0, 4], 5)), None, "this caller accepts only two");
        assert_eq!(ask(3, &semaphore(&[3, 4], 5)), Some(0));
    }

    #[test]
    fn a_lock_delay_closes_what_the_ended_lease_could_touch() {
        let ask = |sharing, closes| place_for(sharing, &Held::Free, &[delay(closes)]).is_some();
        let semaphore = Sharing::Semaphore { limit: 2 };
        for sharing in [Sharing::Exclusive, Sharing::Shared, semaphore] {
            assert!(!ask(sharing, Closes::All), "{sharing:?}");
        }
        assert!(ask(Sharing::Shared, Closes::ButShared));
        assert!(!ask(Sharing::Exclusive, Closes::ButShared));
        assert!(!ask(Sharing::Exclusive, Closes::Permit(Permit(0))));
        let place = place_for(semaphore, &Held::Free, &[delay(Closes::Permit(Permit(0)))]);
        assert_eq!(permit(place), Some(1));
        let place =
            place_for(Sharing::Semaphore { limit: 1 }, &Held::Free, &[delay(Closes::Permit(Permit(0)))]);
        assert_eq!(place, None);
    }
}
