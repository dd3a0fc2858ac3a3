//! A held lease, as its guard and its session both know it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use leasehold_proto::v1 as pb;
use leasehold_types::{FencingToken, LeaseId, ResourceName};
use tokio::sync::Notify;

use super::holder;
use crate::clock;
use crate::deadline::{Life, Phase, Stamp, margin};
use crate::error::{Holder, Lost, LostReason};
use crate::session::Shared;

/// What a guard and its session both know of a lease.
pub(crate) struct Held {
    pub(super) resource: ResourceName,
    pub(super) lease_id: LeaseId,
    pub(super) token: FencingToken,
    pub(super) grant: pb::StreamGrant,
    /// Where a max hold can end the lease before its session.
    own: Option<Mutex<Life>>,
    lost: OnceLock<Lost>,
    /// Who holds the resource after the loss.
    holder: OnceLock<Holder>,
    /// The guard is gone, in order or not.
    pub(super) done: AtomicBool,
    pub(super) poke: Notify,
}

impl Held {
    pub(crate) fn new(
        resource: ResourceName,
        lease_id: LeaseId,
        token: FencingToken,
        grant: pb::StreamGrant,
        own: Option<Life>,
    ) -> Self {
        Self {
            resource,
            lease_id,
            token,
            grant,
            own: own.map(Mutex::new),
            lost: OnceLock::new(),
            holder: OnceLock::new(),
            done: AtomicBool::new(false),
            poke: Notify::new(),
        }
    }

    /// The lease is lost; the first reason stays. Who holds the resource now is looked up afterwards.
    pub(crate) fn lose(self: &Arc<Self>, shared: &Shared, reason: LostReason) {
        let lost = self.why(shared, reason);
        if self.lost.set(lost).is_ok() && !self.done.load(Relaxed) {
            shared.lost_while_executing(reason);
            holder::look_up(self, shared);
        }
        self.poke.notify_waiters();
    }

    /// The loss as it would be told now, for this reason.
    pub(crate) fn why(&self, shared: &Shared, reason: LostReason) -> Lost {
        let now = clock::now();
        let deadline = deadline_of(self, shared);
        let life = shared.life();
        Lost {
            resource: self.resource.to_string(),
            token: self.token,
            reason,
            last_renewal_ago: life.confirmed().map_or(Duration::ZERO, |sent| now.since(sent)),
            missed: life.missed(),
            expired_ago: now.since(deadline),
            holder: None,
        }
    }

    /// The loss, with whatever has been learned since.
    pub(super) fn lost(&self) -> Option<Lost> {
        self.lost.get().map(|lost| Lost { holder: self.holder.get().cloned(), ..lost.clone() })
    }

    /// Somebody else holds the resource.
    pub(super) fn taken_by(&self, holder: Holder) {
        // The first one found is the one that the loss is about.
        let _ = self.holder.set(holder);
    }

    fn own(&self) -> Option<MutexGuard<'_, Life>> {
        self.own.as_ref().map(|own| own.lock().expect("nothing panics while it holds a life"))
    }

    /// A renewal of this lease alone was confirmed.
    pub(crate) fn confirm_own(&self, sent: Stamp, ttl_ms: u64) {
        if let Some(mut own) = self.own() {
            own.confirm(sent, Duration::from_millis(ttl_ms));
        }
    }

    pub(super) fn finish(&self) {
        self.done.store(true, Relaxed);
        self.poke.notify_waiters();
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done.load(Relaxed) || self.is_lost()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.get().is_some()
    }
}

/// When the lease can end at the earliest: its own deadline, or its session's.
pub(super) fn deadline_of(held: &Held, shared: &Shared) -> Stamp {
    let of_session = shared.life().deadline();
    held.own().map_or(of_session, |own| own.deadline().min(of_session))
}

/// The worse of the lease's own life and its session's. A lease whose deadline has passed is lost from then on.
pub(super) fn phase_of(held: &Arc<Held>, shared: &Shared, now: Stamp) -> Phase {
    if held.is_lost() {
        return Phase::Lost;
    }
    if shared.is_over() {
        held.lose(shared, LostReason::SessionEnded);
        return Phase::Lost;
    }
    let of_session = shared.life().phase(now);
    let phase = held.own().map_or(of_session, |own| own.phase(now).max(of_session));
    if phase == Phase::Lost {
        held.lose(shared, LostReason::NotRenewed);
    }
    phase
}

/// Waits until the lease is in this phase or worse, or its guard is gone.
pub(super) async fn until(held: &Arc<Held>, shared: &Shared, phase: Phase) {
    let mut changed = shared.subscribe();
    loop {
        let mut poked = std::pin::pin!(held.poke.notified());
        poked.as_mut().enable();
        let now = clock::now();
        if held.done.load(Relaxed) || phase_of(held, shared, now) >= phase {
            return;
        }
        let deadline = deadline_of(held, shared);
        let at = match phase {
            Phase::Lost => deadline,
            _ => Stamp(deadline.0.saturating_sub(margin(shared.ttl))),
        };
        tokio::select! {
            _ = changed.changed() => {}
            () = poked => {}
            () = tokio::time::sleep(at.since(now).min(clock::LOOK)) => {}
        }
    }
}
