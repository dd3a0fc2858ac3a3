//! What must happen once nothing goes wrong any more (L2, L3, L5, L6, L8).

use leasehold_core::{Command, LockTable, Query, Reply, Request, Ticket};
use leasehold_history::{Change, Id};
use leasehold_types::{LeaseId, Now, TenantName};

use crate::clock::{MS, Micros, SECOND};
use crate::node::{Node, Role};
use crate::world::{Phase, World};

/// A new active node needs this long at most after the last fault.
const RECOVERY: Micros = 8 * SECOND;

impl World {
    /// Whether enough time has passed since the last fault for everything to be well again.
    pub(crate) fn is_well(&self) -> bool {
        self.phase == Phase::Healed && self.now > self.healed_at + RECOVERY + 2 * SECOND
    }

    /// L3: one node serves by now.
    pub(crate) fn judge_recovery(&mut self) {
        if self.phase == Phase::Healed {
            let serving = self.nodes.iter().filter(|node| node.is_active()).count();
            self.must_be("L3", serving == 1, || format!("{serving} nodes serve 8 s after the last fault"));
        }
    }

    /// L6: nobody who lives and renews is ended.
    pub(crate) fn judge_expiries(&mut self, changes: &[Change]) {
        if !self.is_well() || self.now < self.healed_at + RECOVERY + 6 * SECOND {
            return;
        }
        for change in changes {
            let life = match change {
                Change::Expired { lease, max_hold: false } => *lease,
                Change::SessionExpired { session } => *session,
                _ => continue,
            };
            let since = self.healed_at + RECOVERY;
            let alive = self.clients.iter().find(|client| client.keeps_alive(life, since));
            let name = alive.map(|client| client.name.clone());
            self.must_be("L6", name.is_none(), || format!("{name:?} lives and renews, and was ended"));
        }
    }

    /// L5: a request was not answered although nothing is wrong.
    pub(crate) fn judge_timeout(&mut self, sent: Micros) {
        if self.is_well() && sent > self.healed_at + RECOVERY {
            self.must_be("L5", false, || "a request was not answered in time".to_owned());
        }
    }

    /// What must be so at the end of a run.
    pub(crate) fn judge_end(&mut self) {
        if self.phase != Phase::Healed {
            return;
        }
        let active = self.nodes.iter().position(Node::is_active);
        self.must_be("L3", active.is_some(), || "no node serves at the end".to_owned());
        let Some(active) = active else { return };
        self.check_table(active);
        let is_served =
            |node: Option<(usize, u64)>| node.is_some_and(|(node, life)| self.nodes[node].serves_in(life));
        let follows = self.watchers.iter().all(|watcher| is_served(watcher.node));
        self.must_be("L8", follows, || "a watcher was left behind".to_owned());
        self.judge_orphans(active);
    }

    /// L2: what dead clients held is free.
    fn judge_orphans(&mut self, active: usize) {
        let now = self.now;
        let Role::Active(active) = &self.nodes[active].role else { return };
        let mut table = active.state.table().clone();
        for (lease, by) in std::mem::take(&mut self.orphans).into_iter().filter(|(_, by)| *by < now) {
            let held = is_held(&mut table, lease);
            self.must_be("L2", !held, || {
                format!("{lease} of a dead client is held {} ms too long", (now - by) / MS)
            });
        }
    }

    /// A client that held this is dead from now on.
    pub(crate) fn orphaned(&mut self, lease: Id, ttl_ms: u64) {
        // Every take-over begins the ttl anew, so that time counts from the last that there can be, when nothing goes wrong
        // any more; what the dead client had still asked for is granted by then, too. From there on: the armed ttl with the
        // spread of N4, by a clock that is a tenth slow, and some commits.
        let from = self.now.max(self.end - (crate::options::Options::HEAL_SECONDS * SECOND)) + RECOVERY;
        self.orphans.push((lease, from + (ttl_ms * 125 / 100) * MS + 3 * SECOND));
    }
}

/// Whether a lease is live in this table; to ask changes nothing.
fn is_held(table: &mut LockTable, lease: Id) -> bool {
    let request = Request {
        ticket: Ticket(u64::MAX),
        tenant: TenantName::default_tenant(),
        identity: None,
        key: None,
        command: Command::Query(Query::Lease(LeaseId::from_bytes(lease.0))),
    };
    let decision = table.decide(request, Now::default());
    decision.replies.iter().any(|(_, reply)| matches!(reply, Reply::Lease(_)))
}
