//! What a history shows of one lease, one life, one resource.

use crate::record::{At, Id, Mode};

/// A record that something was learnt from: its time and its place in the history.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Mark {
    pub(crate) at: At,
    pub(crate) index: u64,
}

/// One lease, as far as it was seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lease {
    /// What keeps it alive; itself unless it has a session.
    pub(crate) life: Option<Id>,
    pub(crate) asked: Attempts,
    pub(crate) released: Attempts,
    /// The committed grant.
    pub(crate) granted: Option<(u64, Mark)>,
    /// The committed end.
    pub(crate) ended: Option<(Ending, Mark)>,
    /// The largest token that anybody had been told when it was first asked for.
    pub(crate) told_before: Option<(u64, Mark)>,
    /// The first acknowledged grant.
    pub(crate) told: Option<(u64, Mark)>,
    /// The first acknowledged release.
    pub(crate) given_back: Option<Mark>,
}

/// How a lease ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Released,
    Expired,
    MaxHold,
    Forced,
    SessionClosed,
}

/// Attempts at one thing: how many were made, and how many are known to have come to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempts {
    pub(crate) made: u32,
    pub(crate) failed: u32,
    pub(crate) first: Option<Mark>,
    pub(crate) last_failure: Mark,
}

impl Attempts {
    pub(crate) fn made(&mut self, mark: Mark) {
        self.made += 1;
        self.first.get_or_insert(mark);
    }

    pub(crate) fn failed(&mut self, mark: Mark) {
        self.failed += 1;
        self.last_failure = mark;
    }

    /// Whether every attempt was told that nothing happened.
    pub(crate) fn all_failed(&self) -> bool {
        self.made > 0 && self.failed == self.made
    }
}

/// What has a deadline: a lease without a session, or a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Life {
    /// Until then, at least, some acknowledged answer promised it.
    pub(crate) promised: Mark,
    /// It was committed that its time is over.
    pub(crate) expired: Option<Mark>,
    /// Leases that live with it.
    pub(crate) leases: Vec<Id>,
}

/// One resource, as committed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Resource {
    pub(crate) holders: Vec<Holder>,
    /// Who held it from which time on, in order.
    pub(crate) versions: Vec<(Mark, Vec<u64>)>,
    /// Leases that were acknowledged here; for histories without commits.
    pub(crate) told: Vec<Id>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) lease: Id,
    pub(crate) token: u64,
    pub(crate) mode: Mode,
    pub(crate) permit: Option<u32>,
    pub(crate) mark: Mark,
}

impl Resource {
    pub(crate) fn changed(&mut self, mark: Mark) {
        let mut tokens: Vec<u64> = self.holders.iter().map(|holder| holder.token).collect();
        tokens.sort_unstable();
        self.versions.push((mark, tokens));
    }

    /// The index of the version that was current at `at`; versions begin with "nobody".
    pub(crate) fn version_at(&self, at: At) -> Option<usize> {
        self.versions.partition_point(|(mark, _)| mark.at < at).checked_sub(1)
    }
}
