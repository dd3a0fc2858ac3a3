//! What must always be so, and what must at least be possible.

use stateright::Property;

use super::engine::Fact;
use super::liveness::gets_on;
use super::node::TTL;
use super::{Scope, System};

pub(crate) fn all() -> Vec<Property<Scope>> {
    vec![
        Property::always("S1 holds are disjoint", |_, system: &System| holds_are_disjoint(system)),
        Property::always("S2 tokens grow", |_, system: &System| tokens_grow(system)),
        Property::always("S7 one grant for each asking", |_, system: &System| granted_once(system)),
        Property::always("S8 one body for each slot", |_, system: &System| {
            is_whole(system, "S8 one body for each slot")
        }),
        Property::always("S9 no early expiry", |_, system: &System| is_whole(system, "S9 no early expiry")),
        Property::always("S10 beliefs do not overlap", |_, system: &System| beliefs_do_not_overlap(system)),
        Property::always("S17 the replaced are silent", |_, system: &System| {
            is_whole(system, "S17 the replaced are silent")
        }),
        Property::always("L2 what nobody renews ends", |scope, system: &System| {
            dead_holds_end(scope, system)
        }),
        // A mistake is to be caught by what it breaks.
        Property::always("L1 L2 L3 L5 what is alive gets on", |scope, system: &System| {
            scope.mistake.is_some() || gets_on(scope, system)
        }),
        Property::sometimes("the lock changes hands across a take-over", |_, system: &System| {
            changed_hands(system)
        }),
        Property::sometimes("an unknown outcome is resolved", |_, system: &System| {
            system.unknowns > 0 && system.clients.iter().any(|client| client.held.is_some())
        }),
        Property::sometimes("a renewal is answered", |_, system: &System| {
            system.clients.iter().any(|client| client.held.is_some_and(|(until, _)| until > TTL))
        }),
    ]
}

fn is_whole(system: &System, promise: &'static str) -> bool {
    system.broken != Some(promise)
}

fn holds_are_disjoint(system: &System) -> bool {
    let mut holder = None;
    system.engine.slots.iter().all(|entry| match entry.fact {
        Fact::Granted { token, .. } => holder.replace(token).is_none(),
        Fact::Released { token } | Fact::Expired { token } => holder.take() == Some(token),
    })
}

fn tokens_grow(system: &System) -> bool {
    let mut last = 0;
    system.engine.slots.iter().all(|entry| match entry.fact {
        Fact::Granted { token, .. } => std::mem::replace(&mut last, token) < token,
        _ => true,
    })
}

fn granted_once(system: &System) -> bool {
    let mut askings = Vec::new();
    system.engine.slots.iter().all(|entry| match entry.fact {
        Fact::Granted { client, ask, .. } => {
            let is_new = !askings.contains(&(client, ask));
            askings.push((client, ask));
            is_new
        }
        _ => true,
    })
}

fn beliefs_do_not_overlap(system: &System) -> bool {
    let believes = |index: usize| system.clients[index].held.is_some_and(|(until, _)| until > system.now);
    !(believes(0) && believes(1))
}

/// L2 in steps: time passes only when a node that can act has acted (see `step`), so that once nothing can go wrong any
/// more no hold outlives its deadline by a tick.
fn dead_holds_end(scope: &Scope, system: &System) -> bool {
    let calm = system.crashes == scope.crashes && system.pauses == scope.pauses;
    let serving = system.nodes.iter().find(|node| {
        node.active.as_ref().is_some_and(|active| active.epoch == system.engine.epoch) && !node.paused
    });
    let Some(active) = serving.and_then(|node| node.active.as_ref()).filter(|_| calm) else { return true };
    active.holder.is_none_or(|(_, _, deadline)| deadline + 1 >= system.now)
}

fn changed_hands(system: &System) -> bool {
    let grants: Vec<(u8, u8)> = system
        .engine
        .slots
        .iter()
        .filter_map(|entry| match entry.fact {
            Fact::Granted { client, .. } => Some((entry.epoch, client)),
            _ => None,
        })
        .collect();
    grants.windows(2).any(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1)
}
