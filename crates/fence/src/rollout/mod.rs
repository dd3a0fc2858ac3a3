//! Switching a fence on step by step, per prefix, while the program runs.
//!
//! [`Rollout`] stands between a fence's verdict and its effect: at an early [`Stage`] a rejection is counted and the
//! write goes on, at a late one it stops. Every decision is told to an [`Observer`], which makes metrics and log lines
//! of it. In an emergency an [`Override`] lets everything through for a while, with actor and reason.
//!
//! What it does not do: a write that a fence would reject and that goes on is not protected. Until `enforce`, nothing is.

mod counters;
mod overrides;
#[cfg(feature = "shared-rollout")]
pub mod shared;
mod stage;
#[cfg(any(feature = "_sql", feature = "conformance", feature = "http"))]
mod timer;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

pub use counters::Counters;
use leasehold_types::{ResourceName, WallTime};
pub use overrides::{InvalidOverride, Override};
pub use stage::{Percent, Stage};
#[cfg(any(feature = "_sql", feature = "conformance", feature = "http"))]
pub(crate) use timer::Timer;

use crate::{Ask, Fence, FenceError, Rejection};

/// Prefixes that are counted apart; more come together under `other`, so that no stream of names fills the memory.
const PREFIXES: usize = 1_000;

/// What came of a write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decision<'a> {
    /// The fence admitted it.
    Accepted,
    /// It came without a token and went on.
    WithoutToken,
    /// The fence rejected it, and it was stopped.
    Rejected(&'a Rejection),
    /// The fence rejected it, and it went on: the stage does not stop it.
    WouldReject(&'a Rejection),
    /// The fence rejected it, and it went on: an override is in force.
    Overridden(&'a Rejection),
}

impl<'a> Decision<'a> {
    /// The word for it in log lines.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::WithoutToken => "without_token",
            Self::Rejected(_) => "rejected",
            Self::WouldReject(_) => "would_reject",
            Self::Overridden(_) => "overridden",
        }
    }

    /// What the fence had against it, stopped or not.
    pub const fn rejection(self) -> Option<&'a Rejection> {
        match self {
            Self::Accepted | Self::WithoutToken => None,
            Self::Rejected(why) | Self::WouldReject(why) | Self::Overridden(why) => Some(why),
        }
    }
}

/// Hears every decision: the place for metrics and log lines. Called on the path of the write; must not block.
pub trait Observer: Send + Sync {
    /// A write was decided.
    fn decided(&self, prefix: &str, stage: Stage, fence: &Fence, ask: Option<&Ask>, decision: Decision<'_>);

    /// A check of a write took this long, whatever came of it.
    fn checked(&self, prefix: &str, took: Duration) {
        let _ = (prefix, took);
    }

    /// A stage was switched; for the audit log.
    fn switched(&self, prefix: &str, from: Stage, to: Stage) {
        let _ = (prefix, from, to);
    }

    /// An override was made; for the audit log.
    fn overridden(&self, prefix: &str, made: &Override) {
        let _ = (prefix, made);
    }
}

/// Hears nothing.
impl Observer for () {
    fn decided(&self, _: &str, _: Stage, _: &Fence, _: Option<&Ask>, _: Decision<'_>) {}
}

impl<O: Observer + ?Sized> Observer for Arc<O> {
    fn decided(&self, prefix: &str, stage: Stage, fence: &Fence, ask: Option<&Ask>, decision: Decision<'_>) {
        self.as_ref().decided(prefix, stage, fence, ask, decision);
    }

    fn checked(&self, prefix: &str, took: Duration) {
        self.as_ref().checked(prefix, took);
    }

    fn switched(&self, prefix: &str, from: Stage, to: Stage) {
        self.as_ref().switched(prefix, from, to);
    }

    fn overridden(&self, prefix: &str, made: &Override) {
        self.as_ref().overridden(prefix, made);
    }
}

/// The state of one prefix.
#[derive(Clone, PartialEq, Debug)]
pub struct Status {
    /// The prefix.
    pub prefix: String,
    /// How far it is switched on.
    pub stage: Stage,
    /// What happened since it was switched to that stage.
    pub counters: Counters,
    /// The override in force, if there is one.
    pub in_force: Option<Override>,
}

impl Status {
    /// Whether nothing has been seen that the next stage would stop.
    pub fn next_stage_is_safe(&self) -> bool {
        let seen = &self.counters;
        let quiet = self.in_force.is_none() && seen.overridden == 0;
        match self.stage {
            Stage::Count => true,
            Stage::Shadow | Stage::Canary(_) => quiet && seen.accepted > 0 && seen.would_reject == 0,
            Stage::Enforce => quiet && seen.accepted > 0 && seen.without_token == 0,
            Stage::Require => quiet,
        }
    }
}

#[derive(Debug, Default)]
struct Prefix {
    stage: Stage,
    counters: Counters,
    in_force: Option<Override>,
}

#[derive(Debug, Default)]
struct State {
    default: Stage,
    rules: BTreeMap<String, Prefix>,
    undeclared: BTreeMap<String, Prefix>,
}

/// The stages of all prefixes, and what has been seen at each.
pub struct Rollout {
    state: RwLock<State>,
    observer: Box<dyn Observer>,
    clock: fn() -> WallTime,
}

impl fmt::Debug for Rollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rollout").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Rollout {
    /// Starts every prefix at this stage. The clock tells when an override ends.
    pub fn new(default: Stage, observer: impl Observer + 'static, clock: fn() -> WallTime) -> Self {
        let state = RwLock::new(State { default, ..State::default() });
        Self { state, observer: Box::new(observer), clock }
    }

    /// Switches a prefix of lock names to a stage, from the next decision on. Its counters start anew.
    pub fn switch(&self, prefix: &str, stage: Stage) {
        let mut state = self.write();
        let default = state.default;
        let before = state.rules.remove(prefix).or_else(|| state.undeclared.remove(prefix));
        let (from, in_force) = before.map_or((default, None), |before| (before.stage, before.in_force));
        state.rules.insert(prefix.to_owned(), Prefix { stage, in_force, ..Prefix::default() });
        drop(state);
        self.observer.switched(prefix, from, stage);
    }

    /// Lets everything under a prefix through until the override ends, except steps that are already applied or whose
    /// turn has not come.
    pub fn set_override(&self, prefix: &str, made: Override) {
        let mut state = self.write();
        let default = state.default;
        let entry = state.rules.entry(prefix.to_owned());
        entry.or_insert_with(|| Prefix { stage: default, ..Prefix::default() }).in_force = Some(made.clone());
        drop(state);
        self.observer.overridden(prefix, &made);
    }

    /// Ends an override before its time.
    pub fn end_override(&self, prefix: &str) {
        if let Some(entry) = self.write().rules.get_mut(prefix) {
            entry.in_force = None;
        }
    }

    /// The stage under which a lock's writes are decided.
    pub fn stage(&self, guard: &ResourceName) -> Stage {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.rule(guard.as_str()).map_or(state.default, |prefix| state.rules[prefix].stage)
    }

    /// Every prefix that was declared or seen, in order.
    pub fn status(&self) -> Vec<Status> {
        let (now, state) = ((self.clock)(), self.write());
        let both = state.rules.iter().chain(&state.undeclared);
        let one = |(prefix, seen): (&String, &Prefix)| Status {
            prefix: prefix.clone(),
            stage: seen.stage,
            counters: seen.counters,
            in_force: seen.in_force.clone().filter(|made| made.ends_at() > now),
        };
        let mut all: Vec<_> = both.map(one).collect();
        all.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        all
    }

    /// Tells the observer how long a check of a write under this lock took.
    pub fn checked(&self, guard: &ResourceName, took: Duration) {
        let prefix = self.write().prefix(guard).0;
        self.observer.checked(&prefix, took);
    }

    /// Makes of the fence's answer what the stage makes of it, counts it, and tells the observer.
    ///
    /// # Errors
    /// The fence's answer, where the stage lets it stop the write. A store that gave no answer stops it exactly where a
    /// stale token would.
    pub fn settle<E>(
        &self,
        fence: &Fence,
        ask: Option<&Ask>,
        outcome: Result<(), FenceError<E>>,
    ) -> Result<(), FenceError<E>> {
        match outcome {
            Ok(()) => {
                self.decide(fence, ask, None);
                Ok(())
            }
            Err(FenceError::Rejected(rejection)) => match self.decide(fence, ask, Some(&rejection)) {
                true => Err(FenceError::Rejected(rejection)),
                false => Ok(()),
            },
            Err(error) if self.stage(fence.guard()).enforces(fence.guard()) => Err(error),
            Err(_) => Ok(()),
        }
    }

    /// As [`Rollout::settle`], for a fence in the database of the write itself: where it gives no answer, the write
    /// cannot go on either.
    #[cfg(feature = "_sql")]
    pub(crate) fn settle_inside<E>(
        &self,
        fence: &Fence,
        ask: &Ask,
        outcome: Result<(), FenceError<E>>,
    ) -> Result<(), FenceError<E>> {
        match outcome {
            Err(error) if error.rejection().is_none() => Err(error),
            other => self.settle(fence, Some(ask), other),
        }
    }

    /// Whether the write is stopped.
    fn decide(&self, fence: &Fence, ask: Option<&Ask>, rejection: Option<&Rejection>) -> bool {
        let (now, guard) = ((self.clock)(), fence.guard());
        let mut state = self.write();
        let (prefix, seen) = state.prefix(guard);
        let stage = seen.stage;
        let overridden = seen.in_force.as_ref().is_some_and(|made| made.ends_at() > now);
        let decision = match rejection {
            None => Decision::Accepted,
            Some(rejection) if overridden && !Stage::Count.stops(guard, rejection) => {
                Decision::Overridden(rejection)
            }
            Some(rejection) if stage.stops(guard, rejection) => Decision::Rejected(rejection),
            Some(Rejection::MissingToken) => Decision::WithoutToken,
            Some(rejection) => Decision::WouldReject(rejection),
        };
        seen.counters.add(decision);
        drop(state);
        self.observer.decided(&prefix, stage, fence, ask, decision);
        matches!(decision, Decision::Rejected(_))
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// The longest declared prefix of a name.
    fn rule(&self, name: &str) -> Option<&str> {
        let fits = self.rules.keys().filter(|prefix| name.starts_with(prefix.as_str()));
        fits.max_by_key(|prefix| prefix.len()).map(String::as_str)
    }

    fn prefix(&mut self, guard: &ResourceName) -> (String, &mut Prefix) {
        if let Some(prefix) = self.rule(guard.as_str()).map(str::to_owned) {
            let seen = self.rules.get_mut(&prefix).expect("it was found just now");
            return (prefix, seen);
        }
        let full = self.undeclared.len() >= PREFIXES && !self.undeclared.contains_key(guard.prefix());
        let prefix = if full { "other" } else { guard.prefix() }.to_owned();
        let default = self.default;
        let fresh = || Prefix { stage: default, ..Prefix::default() };
        let seen = self.undeclared.entry(prefix.clone()).or_insert_with(fresh);
        (prefix, seen)
    }
}

#[cfg(test)]
mod tests;
