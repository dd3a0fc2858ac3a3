//! What a fence counts, as Prometheus reads it, and a log line for each decision.
//!
//! [`FenceMetrics`] is an [`Observer`]: give it to a [`Rollout`](crate::rollout::Rollout) and serve [`FenceMetrics::page`]
//! wherever the program serves its metrics. Labels are prefixes, never names of resources: their number is bounded by
//! the roll-out.

mod histogram;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use histogram::Histogram;

use crate::rollout::{Decision, Observer, Override, Stage};
use crate::{Ask, Fence, Rejection};

/// From a script on this machine to a fence behind a slow network.
const SECONDS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0];
/// How far behind a refused token was: one grant, a few, a restore.
const GAPS: &[f64] = &[0.0, 1.0, 2.0, 5.0, 10.0, 100.0, 1_000.0, 1_000_000.0, 1_099_511_627_776.0];

/// The counters of a fence for each prefix.
#[derive(Debug, Default)]
pub struct FenceMetrics(Mutex<BTreeMap<String, Prefix>>);

/// Name, help, and where its value is.
type Series<'a, T> = (&'static str, &'static str, fn(&'a Prefix) -> T);

#[derive(Debug)]
struct Prefix {
    accepted: u64,
    rejected: BTreeMap<&'static str, u64>,
    would_reject: BTreeMap<&'static str, u64>,
    overridden: u64,
    wrong_scope: u64,
    without_token: u64,
    gap: Histogram,
    check: Histogram,
}

impl Default for Prefix {
    fn default() -> Self {
        Self {
            accepted: 0,
            rejected: BTreeMap::new(),
            would_reject: BTreeMap::new(),
            overridden: 0,
            wrong_scope: 0,
            without_token: 0,
            gap: Histogram::new(GAPS),
            check: Histogram::new(SECONDS),
        }
    }
}

impl Prefix {
    fn add(&mut self, decision: Decision<'_>) {
        match decision {
            Decision::Accepted => self.accepted += 1,
            Decision::WithoutToken => self.without_token += 1,
            Decision::Rejected(why) => *self.rejected.entry(why.as_str()).or_default() += 1,
            Decision::WouldReject(why) => *self.would_reject.entry(why.as_str()).or_default() += 1,
            Decision::Overridden(_) => self.overridden += 1,
        }
        match decision.rejection() {
            Some(Rejection::WrongScope { .. }) => self.wrong_scope += 1,
            Some(Rejection::MissingToken) => self.without_token += 1,
            Some(Rejection::Stale { presented, highest }) => {
                #[expect(clippy::cast_precision_loss, reason = "a gap beyond 2^53 does not exist")]
                self.gap.add((highest.get() - presented.get()) as f64);
            }
            _ => {}
        }
    }
}

impl FenceMetrics {
    /// The page, in the text format of Prometheus.
    pub fn page(&self) -> String {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut page = String::new();
        let plain: [Series<'_, u64>; 4] = [
            ("fencing_accept_total", "writes that the fence admitted", |seen| seen.accepted),
            ("fencing_wrong_scope_total", "writes with the token of another lock", |seen| seen.wrong_scope),
            ("critical_write_without_token_total", "writes without a token", |seen| seen.without_token),
            ("fencing_override_total", "rejected writes that an override let through", |seen| {
                seen.overridden
            }),
        ];
        for (name, help, value) in plain {
            page += &head(name, "counter", help);
            all.iter()
                .for_each(|(prefix, seen)| page += &format!("{name}{{{}}} {}\n", label(prefix), value(seen)));
        }
        let by_result: [Series<'_, &BTreeMap<&'static str, u64>>; 2] = [
            ("fencing_reject_total", "writes that were stopped", |seen| &seen.rejected),
            ("fencing_shadow_reject_total", "writes that a later stage would stop", |seen| {
                &seen.would_reject
            }),
        ];
        for (name, help, values) in by_result {
            page += &head(name, "counter", help);
            for (prefix, seen) in all.iter() {
                for (result, value) in values(seen) {
                    page += &format!("{name}{{{},result=\"{result}\"}} {value}\n", label(prefix));
                }
            }
        }
        let sizes: [Series<'_, &Histogram>; 2] = [
            ("fencing_token_gap", "how far a stale token was behind the highest", |seen| &seen.gap),
            ("fencing_check_seconds", "how long the check took", |seen| &seen.check),
        ];
        for (name, help, histogram) in sizes {
            page += &head(name, "histogram", help);
            all.iter().for_each(|(prefix, seen)| page += &histogram(seen).lines(name, &label(prefix)));
        }
        page
    }

    fn with(&self, prefix: &str, act: impl FnOnce(&mut Prefix)) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // No allocation on the path of a write but the first of its prefix.
        match all.get_mut(prefix) {
            Some(seen) => act(seen),
            None => act(all.entry(prefix.to_owned()).or_default()),
        }
    }
}

fn head(name: &str, kind: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} {kind}\n")
}

/// A prefix as the value of a label. Names have no control characters.
fn label(prefix: &str) -> String {
    format!("prefix=\"{}\"", prefix.replace('\\', "\\\\").replace('"', "\\\""))
}

impl Observer for FenceMetrics {
    fn decided(&self, prefix: &str, stage: Stage, fence: &Fence, ask: Option<&Ask>, decision: Decision<'_>) {
        self.with(prefix, |seen| seen.add(decision));
        let (resource, token) = (fence.guard().as_str(), ask.map(|ask| ask.token().get()));
        let (word, why) = (decision.as_str(), decision.rejection().map(tracing::field::display));
        if decision.rejection().is_some() {
            tracing::warn!(event = "fence_decided", decision = word, resource, token, %stage, why);
        } else {
            tracing::debug!(event = "fence_decided", decision = word, resource, token, %stage);
        }
    }

    fn checked(&self, prefix: &str, took: Duration) {
        self.with(prefix, |seen| seen.check.add(took.as_secs_f64()));
    }

    fn switched(&self, prefix: &str, from: Stage, to: Stage) {
        tracing::info!(event = "fence_stage_switched", prefix, %from, %to);
    }

    fn overridden(&self, prefix: &str, made: &Override) {
        let (actor, reason, ends_at) = (made.actor(), made.reason(), made.ends_at().0);
        tracing::warn!(event = "fence_override", prefix, actor, reason, ends_at);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use leasehold_types::{FencingToken, ResourceName, WallTime};

    use super::*;
    use crate::rollout::Rollout;
    use crate::{FenceError, Grant};

    #[test]
    fn the_page_agrees_with_what_happened() {
        let metrics = Arc::new(FenceMetrics::default());
        let rollout = Rollout::new(Stage::Enforce, metrics.clone(), || WallTime(0));
        let fence = Fence::of(&ResourceName::new("a\"b/c").unwrap());
        let token = |number| FencingToken::new(number).unwrap();
        let ask = Grant::exclusive(fence.guard().clone(), token(5)).write();
        let settle = |ask: Option<&Ask>, outcome: Result<(), Rejection>| {
            let _ = rollout.settle::<()>(&fence, ask, outcome.map_err(FenceError::Rejected));
        };
        settle(Some(&ask), Ok(()));
        settle(Some(&ask), Err(Rejection::Stale { presented: token(5), highest: token(9) }));
        settle(None, Err(Rejection::MissingToken));
        rollout.checked(fence.guard(), Duration::from_micros(300));
        let page = metrics.page();
        for line in [
            "fencing_accept_total{prefix=\"a\\\"b\"} 1",
            "fencing_reject_total{prefix=\"a\\\"b\",result=\"stale\"} 1",
            "critical_write_without_token_total{prefix=\"a\\\"b\"} 1",
            "fencing_token_gap_bucket{prefix=\"a\\\"b\",le=\"2\"} 0",
            "fencing_token_gap_bucket{prefix=\"a\\\"b\",le=\"5\"} 1",
            "fencing_check_seconds_bucket{prefix=\"a\\\"b\",le=\"0.0005\"} 1",
            "fencing_check_seconds_count{prefix=\"a\\\"b\"} 1",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} is not in\n{page}");
        }
    }
}
