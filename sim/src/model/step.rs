//! What can happen next in the model, and what it does.

use super::client::{Answer, Stage};
use super::engine::{Append, Fact, Outcome};
use super::node::{ARMED, Active, TTL};
use super::{Scope, System};
use crate::Mistake;

/// One thing that happens.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Step {
    /// Time passes.
    Tick,
    /// A client asks for the lock.
    Ask(u8),
    /// A client renews.
    Renew(u8),
    /// A client gives back.
    Release(u8),
    /// An answer reaches a client.
    Hear(u8),
    /// A node takes what a client asks.
    Take(u8, u8),
    /// A node ends the lease whose time has come.
    Expire(u8),
    /// A node sends its append, perhaps again.
    Send(u8),
    /// An append reaches the engine.
    Land(u8),
    /// An append is lost on its way.
    Lose(u8),
    /// The outcome reaches the node.
    Learn(u8),
    /// The outcome is lost.
    Forget(u8),
    /// A node's confirmation is answered.
    Confirm(u8),
    /// A node takes over.
    TakeOver(u8),
    /// A node crashes.
    Crash(u8),
    /// A node stands still.
    Pause(u8),
    /// It goes on.
    Resume(u8),
    /// The engine drops what a snapshot covers.
    Compact,
}

const BOTH: [u8; 2] = [0, 1];

/// Everything that can happen now.
pub(crate) fn possible(scope: &Scope, system: &System, steps: &mut Vec<Step>) {
    for node in BOTH {
        of_node(scope, system, node, steps);
    }
    for client in BOTH {
        of_client(scope, system, client, steps);
    }
    for place in 0..u8::try_from(system.engine.flying.len()).unwrap_or(u8::MAX) {
        steps.push(Step::Land(place));
        if system.unknowns < scope.unknowns {
            steps.push(Step::Lose(place));
        }
    }
    if system.compactions < scope.compactions && !system.engine.slots.is_empty() {
        steps.push(Step::Compact);
    }
    // Time waits for an expiry that a node can decide now: what takes long is a pause, and pauses are steps of their own.
    if system.now < scope.ticks && !BOTH.iter().any(|node| can_expire(system, *node)) {
        steps.push(Step::Tick);
    }
}

fn can_expire(system: &System, node: u8) -> bool {
    let node = &system.nodes[usize::from(node)];
    let Some(active) = node.active.as_ref().filter(|active| active.work.is_none() && !node.paused) else {
        return false;
    };
    active.holder.is_some_and(|(_, _, deadline)| deadline <= system.now)
}

fn of_node(scope: &Scope, system: &System, ix: u8, steps: &mut Vec<Step>) {
    let node = &system.nodes[usize::from(ix)];
    if node.paused {
        steps.push(Step::Resume(ix));
        return;
    }
    if system.pauses < scope.pauses {
        steps.push(Step::Pause(ix));
    }
    let Some(active) = &node.active else {
        if system.takeovers < scope.takeovers {
            steps.push(Step::TakeOver(ix));
        }
        return;
    };
    if system.crashes < scope.crashes {
        steps.push(Step::Crash(ix));
    }
    match &active.work {
        Some(work) if work.unsent => steps.push(Step::Send(ix)),
        Some(work) if work.outcome.is_some() => {
            steps.push(Step::Learn(ix));
            if system.unknowns < scope.unknowns {
                steps.push(Step::Forget(ix));
            }
        }
        Some(_) => {}
        None => {
            if can_expire(system, ix) {
                steps.push(Step::Expire(ix));
            }
            for client in BOTH {
                if takes(system, active, client) {
                    steps.push(Step::Take(ix, client));
                }
            }
        }
    }
    if !active.renewals.is_empty() {
        steps.push(Step::Confirm(ix));
    }
}

/// Whether a node has something to do about what this client asks.
fn takes(system: &System, active: &Active, client: u8) -> bool {
    let asking = &system.clients[usize::from(client)];
    let is_holder = active.holder.is_some_and(|(holder, token, _)| {
        holder == client && asking.held.is_none_or(|(_, own)| own == token)
    });
    let is_new = asking.answer.is_none() && !active.renewals.iter().any(|(other, _)| *other == client);
    match asking.stage {
        Stage::Idle => false,
        Stage::Asking { .. } => {
            is_new && (active.holder.is_none() || is_holder) && !ended(active, client, asking.asks)
        }
        Stage::Renewing { .. } => is_new && is_holder,
        Stage::Releasing => is_holder,
    }
}

/// Whether this asking was granted and has ended: it is not granted again.
pub(crate) fn ended(active: &Active, client: u8, ask: u8) -> bool {
    let granted = active.granted.iter().find(|(who, which, _)| (*who, *which) == (client, ask));
    granted.is_some_and(|(_, _, token)| active.holder.is_none_or(|(_, held, _)| held != *token))
}

fn of_client(scope: &Scope, system: &System, ix: u8, steps: &mut Vec<Step>) {
    let client = &system.clients[usize::from(ix)];
    if client.answer.is_some() {
        steps.push(Step::Hear(ix));
    }
    if client.stage != Stage::Idle {
        return;
    }
    match client.held {
        Some((until, _)) if until > system.now => {
            steps.push(Step::Release(ix));
            // A renewal that promises nothing new shows nothing new.
            if system.now + TTL > until {
                steps.push(Step::Renew(ix));
            }
        }
        Some(_) => {}
        // Clients are alike: the second begins after the first.
        None if client.asks < scope.asks && (ix == 0 || system.clients[0].asks > 0) => {
            steps.push(Step::Ask(ix))
        }
        None => {}
    }
}

impl Step {
    /// Does it.
    pub(crate) fn take(self, scope: &Scope, system: &mut System) {
        let now = system.now;
        match self {
            Self::Tick => system.now += 1,
            Self::Ask(client) => {
                let client = &mut system.clients[usize::from(client)];
                client.asks += 1;
                client.stage = Stage::Asking { sent: now };
            }
            Self::Renew(client) => system.clients[usize::from(client)].stage = Stage::Renewing { sent: now },
            Self::Release(client) => {
                let client = &mut system.clients[usize::from(client)];
                client.held = None;
                client.stage = Stage::Releasing;
            }
            Self::Hear(client) => hear(scope, system, client),
            Self::Take(node, client) => take(scope, system, node, client),
            Self::Expire(node) => {
                if let Some(active) = &mut system.nodes[usize::from(node)].active
                    && let Some((_, token, _)) = active.holder
                {
                    active.decide(Fact::Expired { token }, now);
                }
            }
            Self::Send(node) => send(scope, system, node),
            Self::Land(place) => land(scope, system, place),
            Self::Lose(place) => {
                let lost = system.engine.flying.remove(usize::from(place));
                system.unknowns += 1;
                if let Some(work) =
                    system.nodes[usize::from(lost.node)].active.as_mut().and_then(|a| a.work.as_mut())
                {
                    work.unsent = true;
                }
            }
            Self::Learn(node) => learn(system, node),
            Self::Forget(node) => {
                system.unknowns += 1;
                if let Some(work) =
                    system.nodes[usize::from(node)].active.as_mut().and_then(|a| a.work.as_mut())
                {
                    (work.outcome, work.unsent) = (None, true);
                }
                repropose(scope, system, node);
            }
            Self::Confirm(node) => confirm(scope, system, node),
            Self::TakeOver(node) => {
                system.takeovers += 1;
                system.engine.epoch += 1;
                system.engine.owner = node;
                let active = Active::new(system.engine.epoch, &system.engine.slots, now);
                system.nodes[usize::from(node)].active = Some(active);
            }
            Self::Crash(node) => {
                system.crashes += 1;
                system.nodes[usize::from(node)].active = None;
            }
            Self::Pause(node) => {
                system.pauses += 1;
                system.nodes[usize::from(node)].paused = true;
            }
            Self::Resume(node) => {
                let node = &mut system.nodes[usize::from(node)];
                node.paused = false;
                // A pause moves every deadline (N3); here, by starting it again.
                if let Some((_, _, deadline)) = node.active.as_mut().and_then(|active| active.holder.as_mut())
                {
                    *deadline = (*deadline).max(now + 1);
                }
            }
            Self::Compact => {
                system.compactions += 1;
                system.engine.low_water = u8::try_from(system.engine.slots.len()).unwrap_or(u8::MAX);
            }
        }
    }
}

fn take(scope: &Scope, system: &mut System, node: u8, client: u8) {
    let now = system.now;
    let asking = &mut system.clients[usize::from(client)];
    let Some(active) = &mut system.nodes[usize::from(node)].active else { return };
    match asking.stage {
        Stage::Idle => {}
        Stage::Asking { sent } => {
            let ask = asking.asks;
            let known = active.granted.iter().find(|(who, which, _)| (*who, *which) == (client, ask));
            match known.map(|(_, _, token)| *token) {
                // Granted to an earlier attempt, and live: told again once that is confirmed.
                Some(_) => active.renewals.push((client, sent)),
                None => {
                    let token = active.last_token + 1;
                    active.decide(Fact::Granted { client, ask, token }, now);
                }
            }
        }
        Stage::Renewing { sent } => {
            if let Some((_, _, deadline)) = &mut active.holder {
                *deadline = (*deadline).max(now + ARMED);
            }
            active.renewals.push((client, sent));
            if scope.mistake == Some(Mistake::RenewalsUnconfirmed) {
                confirmed(system, node);
            }
        }
        Stage::Releasing => {
            if let Some((_, token, _)) = active.holder {
                active.decide(Fact::Released { token }, now);
            }
        }
    }
}

fn send(_: &Scope, system: &mut System, node: u8) {
    let Some(active) = &mut system.nodes[usize::from(node)].active else { return };
    let epoch = active.epoch;
    let Some(work) = &mut active.work else { return };
    work.unsent = false;
    let append = Append { node, epoch, slot: work.slot, fact: work.fact, checked: false };
    system.engine.send(append);
}

/// After an unknown outcome the batch goes into whatever slot is next: a mistake.
fn repropose(scope: &Scope, system: &mut System, node: u8) {
    if scope.mistake != Some(Mistake::ReproposedAfterUnknown) {
        return;
    }
    let next = u8::try_from(system.engine.slots.len()).unwrap_or(u8::MAX) + 1;
    if let Some(work) = system.nodes[usize::from(node)].active.as_mut().and_then(|a| a.work.as_mut()) {
        work.slot = next;
    }
}

fn land(scope: &Scope, system: &mut System, place: u8) {
    let append = system.engine.flying.remove(usize::from(place));
    let outcome = system.engine.land(append, scope.mistake, &mut system.broken);
    let Some(active) = &mut system.nodes[usize::from(append.node)].active else { return };
    if active.epoch != append.epoch {
        return;
    }
    if let (Some(work), Some(outcome)) = (&mut active.work, outcome)
        && (work.slot, work.fact) == (append.slot, append.fact)
        && !work.unsent
    {
        work.outcome = Some(outcome);
    }
}

fn learn(system: &mut System, node: u8) {
    let Some(active) = &mut system.nodes[usize::from(node)].active else { return };
    let Some(work) = active.work.take() else { return };
    if work.outcome == Some(Outcome::Fenced) {
        system.nodes[usize::from(node)].active = None;
        return;
    }
    active.durable = work.slot;
    match work.fact {
        Fact::Granted { client, token, .. } => {
            let client = &mut system.clients[usize::from(client)];
            if let Stage::Asking { sent } = client.stage {
                client.answer = Some(Answer::Granted { token, sent });
            }
        }
        Fact::Released { .. } => {
            for client in &mut system.clients {
                if client.stage == Stage::Releasing {
                    client.answer = Some(Answer::Released);
                }
            }
        }
        Fact::Expired { .. } => {}
    }
}

fn confirm(scope: &Scope, system: &mut System, node: u8) {
    let epoch = system.nodes[usize::from(node)].active.as_ref().map_or(0, |active| active.epoch);
    let trusts_itself = scope.mistake == Some(Mistake::RenewalsUnconfirmed);
    if system.engine.is_current(node, epoch) || trusts_itself {
        confirmed(system, node);
    } else {
        system.nodes[usize::from(node)].active = None;
    }
}

/// What waited for the confirmation is told.
fn confirmed(system: &mut System, node: u8) {
    let Some(active) = &mut system.nodes[usize::from(node)].active else { return };
    let is_current = system.engine.is_current(node, active.epoch);
    let token = active.holder.map_or(0, |(_, token, _)| token);
    for (client, sent) in std::mem::take(&mut active.renewals) {
        if !is_current {
            system.broken = Some("S17 the replaced are silent");
        }
        let client = &mut system.clients[usize::from(client)];
        client.answer = Some(match client.stage {
            Stage::Asking { .. } => Answer::Granted { token, sent },
            _ => Answer::Renewed { sent },
        });
    }
}

fn hear(scope: &Scope, system: &mut System, client: u8) {
    let now = system.now;
    let client = &mut system.clients[usize::from(client)];
    let Some(answer) = client.answer.take() else { return };
    client.stage = Stage::Idle;
    match answer {
        Answer::Granted { token, sent } => {
            // A blocking acquire counts from sending, and so may be dead on arrival; whoever counts from now is wrong.
            let from = if scope.mistake == Some(Mistake::DeadOnArrival) { now } else { sent };
            client.held = Some((from + TTL, token));
        }
        Answer::Renewed { sent } => {
            if let Some((until, _)) = &mut client.held {
                *until = (*until).max(sent + TTL);
            }
        }
        Answer::Released => client.held = None,
    }
}
