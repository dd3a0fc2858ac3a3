//! The resources with endings in the order of their last use: a list through their records, so that using one again
//! costs the same however many there are.

use crate::arena::{Arena, Ix};
use crate::resource::{Full, Links};

/// See the module. Its own methods alone change the links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recent {
    oldest: Option<Ix<Full>>,
    newest: Option<Ix<Full>>,
    len: usize,
}

impl Recent {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Oldest first.
    pub(crate) fn iter<'a>(&self, full: &'a Arena<Full>) -> impl Iterator<Item = &'a Full> {
        let first = self.oldest.map(|ix| full.get(ix));
        std::iter::successors(first, |before| before.in_order.newer.map(|ix| full.get(ix)))
    }

    /// Makes a resource the newest, whether it is in the order already or not.
    pub(crate) fn touch(&mut self, ix: Ix<Full>, is_in_order: bool, full: &mut Arena<Full>) {
        if is_in_order {
            self.unlink(ix, full);
        }
        let older = self.newest.replace(ix);
        full.get_mut(ix).in_order = Links { older, newer: None };
        match older {
            Some(older) => full.get_mut(older).in_order.newer = Some(ix),
            None => self.oldest = Some(ix),
        }
        self.len += 1;
    }

    /// Takes the oldest out of the order.
    pub(crate) fn pop_oldest(&mut self, full: &mut Arena<Full>) -> Option<Ix<Full>> {
        let oldest = self.oldest?;
        self.unlink(oldest, full);
        Some(oldest)
    }

    fn unlink(&mut self, ix: Ix<Full>, full: &mut Arena<Full>) {
        let Links { older, newer } = std::mem::take(&mut full.get_mut(ix).in_order);
        match older {
            Some(older) => full.get_mut(older).in_order.newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => full.get_mut(newer).in_order.older = older,
            None => self.newest = older,
        }
        self.len -= 1;
    }
}
