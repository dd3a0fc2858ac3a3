//! What is counted for each tenant and prefix. Prefixes are bounded: callers choose names, and a label for each of them
//! would fill the memory of everybody who scrapes. Those that a policy declares are chosen by the operator, and have their
//! label whatever callers do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use leasehold_core::{Event, EventKind};
use leasehold_types::{EndReason, Mode, prefix_of};

use super::histogram::{CALL, HOLD, Histogram, WAIT};
use crate::config::Policies;

/// Prefixes of one tenant that are told apart though nobody declared them; later ones are counted as `other`.
const PREFIXES: usize = 200;
const OTHER: &str = "other";

/// A counter for each mode.
#[derive(Debug, Default)]
pub(super) struct ByMode([AtomicU64; 3]);

impl ByMode {
    /// Counts one.
    pub(super) fn add(&self, mode: Mode) {
        self.0[mode as usize].fetch_add(1, Relaxed);
    }

    /// What was counted.
    pub(super) fn load(&self, mode: Mode) -> u64 {
        self.0[mode as usize].load(Relaxed)
    }
}

/// What is counted for one tenant and prefix.
#[derive(Debug)]
pub(crate) struct Scope {
    tenant: Box<str>,
    /// As its label says.
    prefix: Box<str>,
    /// `tenant="…",prefix="…"`.
    pub(super) labels: String,
    pub(super) attempts: ByMode,
    pub(super) granted: ByMode,
    pub(super) contended: ByMode,
    pub(super) renewals: AtomicU64,
    pub(super) expired: AtomicU64,
    pub(super) forced: AtomicU64,
    pub(super) dual_owner_suspected: AtomicU64,
    pub(super) latency: Histogram,
    pub(super) waited: Histogram,
    pub(super) held: Histogram,
}

impl Scope {
    fn new(tenant: &str, prefix: &str) -> Self {
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        Self {
            tenant: tenant.into(),
            prefix: prefix.into(),
            labels: format!("tenant=\"{}\",prefix=\"{}\"", escaped(tenant), escaped(prefix)),
            attempts: ByMode::default(),
            granted: ByMode::default(),
            contended: ByMode::default(),
            renewals: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            forced: AtomicU64::new(0),
            dual_owner_suspected: AtomicU64::new(0),
            latency: Histogram::new(&CALL),
            waited: Histogram::new(&WAIT),
            held: Histogram::new(&HOLD),
        }
    }

    /// Whether it is what [`Scopes::of`] would find.
    fn is_of(&self, tenant: &str, prefix: Prefix<'_>) -> bool {
        *self.tenant == *tenant && *self.prefix == *prefix.text()
    }

    /// Counts what happened under it.
    pub(super) fn count(&self, event: &Event) {
        match event.kind {
            EventKind::Granted { waited_ms } => {
                self.granted.add(event.mode);
                if waited_ms > 0 {
                    self.waited.observe(waited_ms);
                }
            }
            EventKind::Ended { reason, held_ms, .. } => {
                self.held.observe(held_ms);
                match reason {
                    EndReason::Expired => drop(self.expired.fetch_add(1, Relaxed)),
                    EndReason::Forced => drop(self.forced.fetch_add(1, Relaxed)),
                    EndReason::Released | EndReason::SessionEnded | EndReason::Unknown => {}
                }
            }
            EventKind::Proclaimed => {}
            EventKind::Queued => self.contended.add(event.mode),
            EventKind::Renewed { .. } => drop(self.renewals.fetch_add(1, Relaxed)),
        }
    }
}

/// Which prefix a name is counted under.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Prefix<'a> {
    /// That of the policy for it.
    Declared(&'a str),
    /// Its own beginning.
    Own(&'a str),
}

impl<'a> Prefix<'a> {
    /// That of this name.
    pub(super) fn of(name: &'a str, policies: &'a Policies) -> Self {
        policies.prefix_of(name).map_or_else(|| Self::Own(prefix_of(name)), Self::Declared)
    }

    fn text(self) -> &'a str {
        match self {
            Self::Own(text) | Self::Declared(text) => text,
        }
    }
}

/// The scopes of one tenant.
#[derive(Debug, Default)]
struct Prefixes {
    scopes: BTreeMap<Box<str>, Arc<Scope>>,
    /// How many of them nobody declared.
    own: usize,
}

impl Prefixes {
    /// What the label says.
    fn label<'a>(&self, prefix: Prefix<'a>) -> &'a str {
        match prefix {
            Prefix::Own(text) if self.own >= PREFIXES && !self.scopes.contains_key(text) => OTHER,
            _ => prefix.text(),
        }
    }

    fn find(&self, prefix: Prefix<'_>) -> Option<&Arc<Scope>> {
        self.scopes.get(self.label(prefix))
    }

    fn find_or_make(&mut self, tenant: &str, prefix: Prefix<'_>) -> Arc<Scope> {
        if let Some(scope) = self.find(prefix) {
            return Arc::clone(scope);
        }
        let label = self.label(prefix);
        self.own += usize::from(matches!(prefix, Prefix::Own(_)));
        let scope = Arc::new(Scope::new(tenant, label));
        self.scopes.insert(label.into(), Arc::clone(&scope));
        scope
    }
}

/// The scopes that exist. The lock is held for a look-up, and for an insertion at most [`PREFIXES`] times a tenant and once
/// for each that is declared.
#[derive(Debug, Default)]
pub(super) struct Scopes(RwLock<BTreeMap<Box<str>, Prefixes>>);

impl Scopes {
    /// The scope of a tenant's prefix.
    pub(super) fn of(&self, tenant: &str, prefix: Prefix<'_>) -> Arc<Scope> {
        {
            let tenants = self.0.read().unwrap_or_else(PoisonError::into_inner);
            if let Some(scope) = tenants.get(tenant).and_then(|prefixes| prefixes.find(prefix)) {
                return Arc::clone(scope);
            }
        }
        let mut tenants = self.0.write().unwrap_or_else(PoisonError::into_inner);
        tenants.entry(tenant.into()).or_default().find_or_make(tenant, prefix)
    }

    /// The same for one of many that are asked for shortly after each other: nearly always it is the one before.
    pub(super) fn of_many<'a>(
        &self,
        last: &'a mut Option<Arc<Scope>>,
        tenant: &str,
        prefix: Prefix<'_>,
    ) -> &'a Arc<Scope> {
        let same = last.take().filter(|last| last.is_of(tenant, prefix));
        last.insert(same.unwrap_or_else(|| self.of(tenant, prefix)))
    }

    /// Every scope, or those of one tenant, by tenant and prefix.
    pub(super) fn all(&self, only: Option<&str>) -> Vec<Arc<Scope>> {
        let scopes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let shown = scopes.iter().filter(|(tenant, _)| only.is_none_or(|only| only == &***tenant));
        shown.flat_map(|(_, prefixes)| prefixes.scopes.values()).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scopes: &Scopes) -> Vec<String> {
        scopes.all(None).iter().map(|scope| scope.labels.clone()).collect()
    }

    #[test]
    fn prefixes_are_bounded_and_the_rest_is_other() {
        let scopes = Scopes::default();
        for n in 0..PREFIXES + 100 {
            scopes.of("default", Prefix::Own(&format!("p{n}"))).attempts.add(Mode::Shared);
        }
        let all = scopes.all(None);
        assert!(scopes.all(Some("other")).is_empty());
        assert_eq!(all.len(), PREFIXES + 1);
        let other = all.iter().find(|scope| scope.labels.ends_with("prefix=\"other\"")).unwrap();
        assert_eq!(other.attempts.load(Mode::Shared), 100);
        let early = scopes.of("default", Prefix::Own("p0"));
        assert_eq!(early.attempts.load(Mode::Shared), 1, "early ones keep their own");
    }

    #[test]
    fn declared_prefixes_are_told_apart_whatever_callers_do() {
        let scopes = Scopes::default();
        for n in 0..PREFIXES + 1 {
            scopes.of("default", Prefix::Own(&format!("p{n}")));
        }
        scopes.of("default", Prefix::Declared("billing/"));
        let declared = "tenant=\"default\",prefix=\"billing/\"".to_owned();
        assert!(labels(&scopes).contains(&declared), "{:?}", labels(&scopes));
        assert_eq!(labels(&scopes).len(), PREFIXES + 2);
        let scopes = Scopes::default();
        for n in 0..PREFIXES {
            scopes.of("default", Prefix::Declared(&format!("rule{n}/")));
        }
        scopes.of("default", Prefix::Own("orders"));
        assert_eq!(labels(&scopes).len(), PREFIXES + 1, "they take nobody's place");
        assert!(!labels(&scopes).iter().any(|label| label.ends_with("prefix=\"other\"")));
    }
}
