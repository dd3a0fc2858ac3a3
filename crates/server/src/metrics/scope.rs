//! What is counted for each tenant and prefix. Prefixes are bounded: callers choose names, and a label for each of them
//! would fill the memory of everybody who scrapes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};

use leasehold_types::Mode;

use super::histogram::{CALL, HOLD, Histogram, WAIT};

/// Prefixes of one tenant that are told apart; later ones are counted as `other`.
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
pub(super) struct Scope {
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
}

/// The scopes that exist. The lock is held for a look-up, and for an insertion at most [`PREFIXES`] times a tenant.
#[derive(Debug, Default)]
pub(super) struct Scopes(RwLock<HashMap<Box<str>, Prefixes>>);

type Prefixes = HashMap<Box<str>, Arc<Scope>>;

impl Scopes {
    /// The scope of a tenant's prefix.
    pub(super) fn of(&self, tenant: &str, prefix: &str) -> Arc<Scope> {
        {
            let scopes = self.0.read().unwrap_or_else(PoisonError::into_inner);
            let found = scopes.get(tenant).and_then(|prefixes| {
                prefixes.get(prefix).or_else(|| prefixes.get(OTHER).filter(|_| prefixes.len() > PREFIXES))
            });
            if let Some(scope) = found {
                return Arc::clone(scope);
            }
        }
        let mut scopes = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let prefixes = scopes.entry(tenant.into()).or_default();
        let prefix =
            if prefixes.len() >= PREFIXES && !prefixes.contains_key(prefix) { OTHER } else { prefix };
        Arc::clone(prefixes.entry(prefix.into()).or_insert_with(|| Arc::new(Scope::new(tenant, prefix))))
    }

    /// Every scope, or those of one tenant, in the order of its labels.
    pub(super) fn all(&self, only: Option<&str>) -> Vec<Arc<Scope>> {
        let scopes = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let shown = scopes.iter().filter(|(tenant, _)| only.is_none_or(|only| only == &***tenant));
        let mut all: Vec<_> = shown.flat_map(|(_, prefixes)| prefixes.values()).cloned().collect();
        drop(scopes);
        all.sort_by(|a, b| a.labels.cmp(&b.labels));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_bounded_and_the_rest_is_other() {
        let scopes = Scopes::default();
        for n in 0..PREFIXES + 100 {
            scopes.of("default", &format!("p{n}")).attempts.add(Mode::Shared);
        }
        let all = scopes.all(None);
        assert!(scopes.all(Some("other")).is_empty());
        assert_eq!(all.len(), PREFIXES + 1);
        let other = all.iter().find(|scope| scope.labels.ends_with("prefix=\"other\"")).unwrap();
        assert_eq!(other.attempts.load(Mode::Shared), 100);
        assert_eq!(scopes.of("default", "p0").attempts.load(Mode::Shared), 1, "early ones keep their own");
    }
}
