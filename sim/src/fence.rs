//! The protected side: the real decision of a fence, one row for each resource.

use std::sync::Arc;

use leasehold_fence::{Fence, Grant, Row, Verdict, decide};
use leasehold_history::Record;
use leasehold_types::{FencingToken, ResourceName};

use crate::event::ClientIx;
use crate::mistake::Mistake;
use crate::world::World;

/// Every fence with what it has seen.
pub(crate) struct Fences(Vec<(Fence, ResourceName, Option<Row>)>);

impl Fences {
    pub(crate) fn new(names: &[ResourceName]) -> Self {
        Self(names.iter().map(|name| (Fence::of(name), name.clone(), None)).collect())
    }

    /// Whether a write under this token goes through.
    fn admits(&mut self, resource: usize, token: u64) -> bool {
        let (fence, name, row) = &mut self.0[resource];
        let Ok(token) = FencingToken::new(token) else { return false };
        let ask = Grant::exclusive(name.clone(), token).write();
        match decide(fence, row.as_ref(), Some(&ask)) {
            Verdict::Admitted(changed) => {
                if let Some(changed) = changed {
                    *row = Some(changed);
                }
                true
            }
            Verdict::Rejected(_) => false,
        }
    }
}

impl World {
    /// A write has come, perhaps long after it was sent.
    pub(crate) fn fence_asked(&mut self, _client: ClientIx, resource: usize, token: u64) {
        let admitted = self.fences.admits(resource, token) || self.mistake == Some(Mistake::FenceAdmitsAll);
        let fence = Arc::clone(&self.resources[resource]);
        self.record(Record::Fence { at: self.now, fence, token, admitted });
    }
}
