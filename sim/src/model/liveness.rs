//! Liveness in a bounded number of steps: from where a run has come to, nothing goes wrong any more, everybody does what they
//! can, and clients ask nothing new. Then one node serves (L3), nobody's lock outlives its time (L2), and whoever waits is
//! granted (L1) and answered (L5).

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::client::Stage;
use super::node::Active;
use super::step::{self, Step};
use super::{Scope, System};

/// Of so many states one is followed: all that a part of them cannot show is where it takes longest.
const ONE_OF: u64 = 64;
/// More ticks than the present holder and everybody who waits can take, one after the other.
const TICKS: u8 = 6;
/// More steps than a grant, a take-over and an expiry of each need.
const STEPS: usize = 80;

/// Whether what is alive gets on from here. Most states are not followed: see [`ONE_OF`].
pub(crate) fn gets_on(scope: &Scope, system: &System) -> bool {
    let mut hasher = DefaultHasher::new();
    system.hash(&mut hasher);
    !hasher.finish().is_multiple_of(ONE_OF) || settled(scope, system).is_some_and(|system| is_well(&system))
}

/// What comes of it; `None` if there is no end to it.
fn settled(scope: &Scope, from: &System) -> Option<System> {
    let calm = Scope {
        ticks: from.now + TICKS,
        takeovers: from.takeovers + 2,
        crashes: from.crashes,
        pauses: from.pauses,
        unknowns: from.unknowns,
        compactions: from.compactions,
        asks: 0,
        ..*scope
    };
    let (mut system, mut steps) = (from.clone(), Vec::new());
    for _ in 0..STEPS {
        steps.clear();
        step::possible(&calm, &system, &mut steps);
        let Some(next) = steps.iter().filter(|step| is_done(&system, **step)).min_by_key(|step| rank(**step))
        else {
            return Some(system);
        };
        next.take(&calm, &mut system);
    }
    None
}

/// Who serves under the present epoch and does not stand still.
fn serving(system: &System) -> Option<&Active> {
    let owner = &system.nodes[usize::from(system.engine.owner)];
    owner.active.as_ref().filter(|active| active.epoch == system.engine.epoch && !owner.paused)
}

fn is_done(system: &System, step: Step) -> bool {
    match step {
        Step::Ask(_) | Step::Renew(_) | Step::Release(_) => false,
        Step::TakeOver(_) => serving(system).is_none(),
        _ => true,
    }
}

/// Whoever can do something does it before anybody takes over, and before time passes.
fn rank(step: Step) -> u8 {
    match step {
        Step::Resume(_) => 0,
        Step::TakeOver(_) => 2,
        Step::Tick => 3,
        _ => 1,
    }
}

fn is_well(system: &System) -> bool {
    let Some(active) = serving(system) else { return false };
    let waits = |client: u8| {
        let asking = &system.clients[usize::from(client)];
        matches!(asking.stage, Stage::Asking { .. }) && !step::ended(active, client, asking.asks)
    };
    active.holder.is_none() && !waits(0) && !waits(1)
}

#[cfg(test)]
mod tests {
    use stateright::Model as _;

    use super::*;

    /// The first client has asked, and the node has decided to grant it the lock.
    fn granted() -> System {
        let mut system = Scope::FLOOR.init_states().remove(0);
        for step in [Step::Ask(0), Step::Ask(1), Step::Take(0, 0)] {
            step.take(&Scope::FLOOR, &mut system);
        }
        system
    }

    fn is_well_in_the_end(system: &System) -> bool {
        settled(&Scope::FLOOR, system).is_some_and(|system| is_well(&system))
    }

    #[test]
    fn everybody_is_served_one_after_the_other_also_after_a_crash() {
        let mut system = granted();
        assert!(is_well_in_the_end(&system));
        Step::Send(0).take(&Scope::FLOOR, &mut system);
        Step::Crash(0).take(&Scope::FLOOR, &mut system);
        assert!(is_well_in_the_end(&system));
    }

    #[test]
    fn an_append_that_nobody_sends_again_is_noticed() {
        let mut system = granted();
        Step::Send(0).take(&Scope::FLOOR, &mut system);
        system.engine.flying.clear();
        assert!(!is_well_in_the_end(&system));
    }
}
