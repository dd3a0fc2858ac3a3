//! Which fences are known, and what they have rejected: declared by a policy, or reported by themselves.
//!
//! Reports live in the memory of the active node: after a take-over or restart a prefix is `lease_only` again until its
//! fence reports, which it does every minute. Nothing is decided from this; it is what answers say.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use leasehold_api::{FenceReportRequest, KnownFence};
use leasehold_core::{LeaseView, Reply};
use leasehold_node::Clock;
use leasehold_types::{Guarantee, TenantName};

use crate::config::{Policies, PolicyBook};

/// How long a report counts: five times what a fence lets pass between two.
pub(crate) const COUNTS_FOR: Duration = Duration::from_secs(300);
/// Prefixes of one tenant that may be reported; more are not taken note of.
const PREFIXES: usize = 200;
/// Resources whose rejections are counted, over all tenants; the ones that came first make room.
const RESOURCES: usize = 10_000;

/// What is known of fences.
pub(crate) struct Fences {
    clock: Arc<dyn Clock>,
    policies: PolicyBook,
    /// Whether anything was ever reported: grants are many, and most servers know no fence.
    any_reported: AtomicBool,
    reports: RwLock<Reports>,
}

#[derive(Default)]
struct Reports {
    /// The last report of each prefix of a tenant.
    prefixes: HashMap<TenantName, BTreeMap<String, Reported>>,
    rejections: HashMap<(TenantName, String), u64>,
    order: VecDeque<(TenantName, String)>,
}

/// What a fence said of itself, and when.
#[derive(Clone, Copy)]
struct Reported {
    at: Duration,
    enforces: bool,
}

impl Fences {
    pub(crate) fn new(clock: Arc<dyn Clock>, policies: PolicyBook) -> Self {
        Self { clock, policies, any_reported: AtomicBool::new(false), reports: RwLock::default() }
    }

    /// Takes note of a report. Whether it makes grants under its prefix say `fenced`.
    pub(crate) fn report(&self, tenant: &TenantName, report: &FenceReportRequest) -> bool {
        let now = self.now();
        let mut reports = self.reports.write().unwrap_or_else(PoisonError::into_inner);
        for rejection in &report.rejections {
            reports.reject(tenant, rejection.resource.as_str());
        }
        let prefixes = reports.prefixes.entry(tenant.clone()).or_default();
        prefixes.retain(|_, last| now.saturating_sub(last.at) < COUNTS_FOR);
        let room = prefixes.len() < PREFIXES || prefixes.contains_key(&report.prefix);
        if room {
            prefixes.insert(report.prefix.clone(), Reported { at: now, enforces: report.enforces });
            self.any_reported.store(true, Relaxed);
        }
        room && report.enforces
    }

    /// Every fence that is declared, or has reported of late to this node.
    pub(crate) fn known(&self, tenant: &TenantName) -> Vec<KnownFence> {
        let now = self.now();
        let unknown = |prefix: &str| KnownFence {
            prefix: prefix.to_owned(),
            declared: None,
            enforces: None,
            reported_ms_ago: None,
            rejections: 0,
        };
        let mut known = BTreeMap::new();
        for (prefix, kind) in self.policies.now().fences() {
            let fence = KnownFence { declared: Some(kind.to_owned()), ..unknown(prefix) };
            known.insert(prefix.to_owned(), fence);
        }
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        for (prefix, last) in reports.prefixes.get(tenant).into_iter().flatten() {
            let ago = now.saturating_sub(last.at);
            if ago < COUNTS_FOR {
                let fence = known.entry(prefix.clone()).or_insert_with(|| unknown(prefix));
                fence.enforces = Some(last.enforces);
                fence.reported_ms_ago = Some(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
            }
        }
        for ((of, name), count) in &reports.rejections {
            let longest = known.values_mut().rev().filter(|fence| name.starts_with(&fence.prefix));
            if of == tenant
                && let Some(fence) = longest.max_by_key(|fence| fence.prefix.len())
            {
                fence.rejections += count;
            }
        }
        known.into_values().collect()
    }

    /// How many rejections of stale tokens of this resource were reported to this node.
    pub(crate) fn rejections(&self, tenant: &TenantName, name: &str) -> u64 {
        let reports = self.reports.read().unwrap_or_else(PoisonError::into_inner);
        reports.rejections.get(&(tenant.clone(), name.to_owned())).copied().unwrap_or(0)
    }

    /// Says `fenced` in a reply where a durable grant has a fence.
    pub(crate) fn tell(&self, tenant: &TenantName, reply: &mut Reply) {
        let each = |views: &mut [LeaseView]| {
            views.iter_mut().for_each(|view| self.raise(tenant, view.resource.as_str(), &mut view.guarantee));
        };
        match reply {
            Reply::Granted(grant) => self.raise(tenant, grant.resource.as_str(), &mut grant.guarantee),
            Reply::Lease(view) => self.raise(tenant, view.resource.as_str(), &mut view.guarantee),
            Reply::Locks(page) => each(&mut page.locks),
            Reply::Explained(explained) => each(&mut explained.holders),
            _ => {}
        }
    }

    /// A grant that can be lost with its journal stays `best_effort`, fence or not.
    fn raise(&self, tenant: &TenantName, name: &str, guarantee: &mut Guarantee) {
        if *guarantee == Guarantee::LeaseOnly && self.knows_any() && self.is_fenced(tenant, name) {
            *guarantee = Guarantee::Fenced;
        }
    }

    fn knows_any(&self) -> bool {
        self.any_reported.load(Relaxed) || !self.policies.with(Policies::is_empty)
    }

    fn is_fenced(&self, tenant: &TenantName, name: &str) -> bool {
        if self.policies.with(|policies| policies.of(name).is_some_and(|policy| policy.fence.is_some())) {
            return true;
        }
        let (now, reports) = (self.now(), self.reports.read().unwrap_or_else(PoisonError::into_inner));
        let Some(prefixes) = reports.prefixes.get(tenant) else { return false };
        let fits = |(prefix, last): (&String, &Reported)| {
            last.enforces && begins(name, prefix) && now.saturating_sub(last.at) < COUNTS_FOR
        };
        prefixes.iter().any(fits)
    }

    /// The clock that goes on while the machine sleeps: a report does not get younger by that.
    fn now(&self) -> Duration {
        self.clock.read().boottime
    }
}

/// Whether a name begins with these whole parts: `books` is the beginning of `books/2026`, and not of `bookshelf`.
fn begins(name: &str, prefix: &str) -> bool {
    let whole = prefix.is_empty() || prefix.ends_with(['/', ':']);
    name.strip_prefix(prefix).is_some_and(|rest| whole || rest.is_empty() || rest.starts_with(['/', ':']))
}

impl Reports {
    fn reject(&mut self, tenant: &TenantName, name: &str) {
        let key = (tenant.clone(), name.to_owned());
        if let Some(count) = self.rejections.get_mut(&key) {
            *count += 1;
            return;
        }
        self.rejections.insert(key.clone(), 1);
        self.order.push_back(key);
        if self.order.len() > RESOURCES
            && let Some(oldest) = self.order.pop_front()
        {
            self.rejections.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::begins;

    #[test]
    fn a_prefix_ends_where_a_part_of_a_name_ends() {
        for (prefix, name) in
            [("", "a"), ("books", "books"), ("books", "books/1"), ("books/", "books/1"), ("a", "a:b")]
        {
            assert!(begins(name, prefix), "{prefix} {name}");
        }
        for (prefix, name) in
            [("books", "bookshelf"), ("books/", "books"), ("books/1", "books/12"), ("b", "a")]
        {
            assert!(!begins(name, prefix), "{prefix} {name}");
        }
    }
}
