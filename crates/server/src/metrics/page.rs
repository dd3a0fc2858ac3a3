//! The text format of Prometheus.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leasehold_api::ErrorCode;
use leasehold_types::Mode;

use super::histogram::Histogram;
use super::scope::Scope;
use super::trouble::ByCode;

/// A page of metrics that is being written.
pub(super) struct Page(pub(super) String);

impl Page {
    pub(super) fn head(&mut self, name: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP {name} {help}.\n# TYPE {name} {kind}").expect("a string takes everything");
    }

    pub(super) fn line(&mut self, name: &str, labels: &str, value: f64) {
        let braced = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        writeln!(self.0, "{name}{braced} {value}").expect("a string takes everything");
    }

    pub(super) fn one(&mut self, name: &str, kind: &str, help: &str, value: f64) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }

    pub(super) fn count(&mut self, name: &str, help: &str, value: &AtomicU64) {
        self.one(name, "counter", help, value.load(Relaxed) as f64);
    }

    pub(super) fn counters(
        &mut self,
        scopes: &[Arc<Scope>],
        name: &str,
        help: &str,
        of: impl Fn(&Scope) -> &AtomicU64,
    ) {
        self.head(name, "counter", help);
        for scope in scopes {
            self.line(name, &scope.labels, of(scope).load(Relaxed) as f64);
        }
    }

    pub(super) fn by_mode(
        &mut self,
        scopes: &[Arc<Scope>],
        name: &str,
        help: &str,
        of: impl Fn(&Scope, Mode) -> u64,
    ) {
        self.head(name, "counter", help);
        for scope in scopes {
            for &mode in Mode::ALL {
                let count = of(scope, mode);
                if count > 0 {
                    self.line(name, &format!("{},mode=\"{mode}\"", scope.labels), count as f64);
                }
            }
        }
    }

    pub(super) fn by_code(&mut self, name: &str, help: &str, counts: &ByCode) {
        self.head(name, "counter", help);
        for (code, count) in ErrorCode::ALL.iter().zip(&counts.0) {
            let count = count.load(Relaxed);
            if count > 0 {
                self.line(name, &format!("result=\"{code}\""), count as f64);
            }
        }
    }

    pub(super) fn histograms(
        &mut self,
        scopes: &[Arc<Scope>],
        name: &str,
        help: &str,
        of: impl Fn(&Scope) -> &Histogram,
    ) {
        self.head(name, "histogram", help);
        for scope in scopes {
            of(scope).render(&mut self.0, name, &scope.labels);
        }
    }
}
