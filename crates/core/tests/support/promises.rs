//! S9: nothing expires before what any answer has promised, restarts included.

use std::collections::BTreeMap;

use leasehold_core::{Decision, Fact, Reply, SessionEnd};
use leasehold_types::{LeaseId, SessionId};

/// Until when clients may count on what they were told, in real time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Promises {
    leases: BTreeMap<LeaseId, u64>,
    sessions: BTreeMap<SessionId, u64>,
    session_of: BTreeMap<LeaseId, SessionId>,
}

impl Promises {
    /// Checks the endings of a decision against what was told before it, then remembers what it tells.
    pub(crate) fn hold(&mut self, decision: &Decision, now_ms: u64) {
        for fact in &decision.facts {
            self.check(fact, now_ms);
        }
        for (_, reply) in &decision.replies {
            self.remember(reply, now_ms);
        }
    }

    fn check(&mut self, fact: &Fact, now_ms: u64) {
        match fact {
            Fact::Granted(granted) => {
                if let Some(session) = granted.session {
                    self.session_of.insert(granted.lease_id, session);
                }
            }
            Fact::Expired { lease_id, .. } => {
                let promised = self.leases.get(lease_id).copied().unwrap_or(0);
                assert!(now_ms >= promised, "S9: {lease_id} expired at {now_ms}, promised until {promised}");
            }
            Fact::SessionEnded { session_id, cause: SessionEnd::Expired, .. } => {
                let of_leases = self.session_of.iter().filter(|(_, session)| *session == session_id);
                let of_leases = of_leases.filter_map(|(lease, _)| self.leases.get(lease)).copied();
                let promised = of_leases.chain(self.sessions.get(session_id).copied()).max().unwrap_or(0);
                assert!(
                    now_ms >= promised,
                    "S9: {session_id} expired at {now_ms}, promised until {promised}"
                );
            }
            _ => {}
        }
        let (Fact::Released { lease_id, .. } | Fact::Expired { lease_id, .. }) = fact else { return };
        self.leases.remove(lease_id);
        self.session_of.remove(lease_id);
    }

    fn remember(&mut self, reply: &Reply, now_ms: u64) {
        let (until, ttl_ms) = match reply {
            Reply::Granted(grant) => (self.leases.entry(grant.lease_id).or_default(), grant.ttl_ms),
            Reply::Renewed(renewed) => (self.leases.entry(renewed.lease_id).or_default(), renewed.ttl_ms),
            Reply::SessionOpened(opened) => {
                (self.sessions.entry(opened.session_id).or_default(), opened.ttl_ms)
            }
            Reply::SessionRenewed(renewed) => {
                (self.sessions.entry(renewed.session_id).or_default(), renewed.ttl_ms)
            }
            _ => return,
        };
        *until = (*until).max(now_ms + ttl_ms);
    }
}
