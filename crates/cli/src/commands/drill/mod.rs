//! `drill`: shows on a real store, with real processes, that the write of a holder whose lease has ended is refused.
//!
//! Workers are processes of their own ([`worker`]), since a process is what can be stopped; the lock service is one that
//! is given, or one of the drill's own. Exit codes: 0 the late write was refused, 1 it was accepted, 64 and 69 the drill
//! could not be held.

mod args;
mod crew;
mod network;
mod own;
mod plan;
mod private_server;
mod program;
mod protected;
mod relay;
mod story;
mod timeline;
mod worker;

pub(crate) use args::DrillArgs;
pub(crate) use plan::DrillPlan;
pub(crate) use worker::work;

use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::client::{Call, Client};
use crate::commands::fence::rollout::note_drill;
use crate::duration::ms;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Out;
use own::Own;
use private_server::PrivateServer;
use protected::{Protected, Written};
use story::{Lag, Scene, Verdict};
use timeline::{Timeline, Who};

/// Holds it.
pub(crate) async fn drill(out: &mut Out, plan: DrillPlan) -> Result<Exit, Failure> {
    let own = match &plan.servers {
        Some(servers) => {
            // Told at once, and not by a worker after a while.
            Client::new(servers.clone()).call(&Call::get("/v1/status")).await?;
            None
        }
        None => Some(PrivateServer::start().await?),
    };
    let servers = match (&plan.servers, &own) {
        (Some(servers), _) => servers.iter().map(ToString::to_string).collect(),
        (None, own) => own.iter().map(PrivateServer::url).collect(),
    };
    let held = hold(out, plan, servers, own.is_some()).await;
    // Whatever came of it: dropped, it would still write into the directory that is removed under it.
    if let Some(own) = own {
        own.stop().await;
    }
    held
}

/// Holds it at these servers.
async fn hold(
    out: &mut Out,
    plan: DrillPlan,
    servers: Vec<String>,
    own_server: bool,
) -> Result<Exit, Failure> {
    // Removed with the end of the drill, if it is ours.
    let _scratch = plan.scratch;
    let own_part = plan.own;
    let scene = Scene { servers, access: plan.access, ttl: plan.ttl, place: plan.place, lag: plan.lag };
    let mut protected = protected::open(&scene.place).await?;
    let mut timeline = Timeline::begin(out, &heading(&scene))?;
    let played = tokio::select! {
        played = begin(&scene, own_server, own_part.as_ref(), protected.as_mut(), &mut timeline) => played,
        stopped = interrupted() => stopped,
    };
    let removed = protected.remove().await;
    let verdict = played?;
    // What happens without a fence says nothing about it.
    if let Some(store) = plan.rollout.as_deref().filter(|_| scene.place.fenced) {
        let prefix = note_drill(store, &scene.place.resource, verdict.passed()).await?;
        timeline.add(Who::Drill, "noted", format!("notes the outcome for {prefix}"))?;
    }
    timeline.end(closing(&verdict), report(&scene, &verdict))?;
    removed?;
    Ok(if verdict.passed() { Exit::Done } else { Exit::Failed })
}

async fn begin(
    scene: &Scene,
    own_server: bool,
    own: Option<&Own>,
    protected: &mut dyn Protected,
    timeline: &mut Timeline<'_>,
) -> Result<Verdict, Failure> {
    if own_server {
        timeline.add(Who::Drill, "server", format!("has started a lock service on {}", scene.servers[0]))?;
    }
    if let Some(own) = own {
        return own::play(scene, own, timeline).await;
    }
    protected.make().await?;
    story::play(scene, protected, timeline).await
}

/// Whoever interrupts the drill still finds everything removed.
async fn interrupted() -> Result<Verdict, Failure> {
    let io = |error| Failure::Io { what: "cannot listen for signals".into(), error };
    let mut terminate = signal(SignalKind::terminate()).map_err(io)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io)?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Err(Failure::Failed("interrupted; nothing was shown".into()))
}

fn heading(scene: &Scene) -> String {
    let what = match scene.lag {
        Lag::Paused => "a holder is stopped past its ttl, and then writes",
        Lag::Delayed => "a holder's write is held in the network until another has taken over",
    };
    let fence = if scene.place.fenced { "" } else { ", WITHOUT A FENCE" };
    format!("drill: {what}\non: {}{fence}", scene.place)
}

fn closing(verdict: &Verdict) -> &'static str {
    match (&verdict.late, verdict.intact) {
        (Some(Written::Refused(_)), Some(true) | None) => "passed: the late write was refused",
        (None, Some(true)) => "passed: the late write, if there was one, changed nothing",
        (Some(Written::Accepted), Some(false)) => {
            "failed: the late write was accepted, and what worker B wrote is lost"
        }
        (Some(Written::Accepted), _) => "failed: the late write was accepted",
        (_, Some(false)) => "failed: what worker B wrote is lost",
        (None, None) => "failed: nothing was seen",
    }
}

fn report(scene: &Scene, verdict: &Verdict) -> Value {
    let (late, reason) = match &verdict.late {
        Some(Written::Accepted) => (Some("accepted"), None),
        Some(Written::Refused(why)) => (Some("refused"), Some(why)),
        None => (None, None),
    };
    json!({
        "passed": verdict.passed(),
        "drill": scene.lag.as_str(),
        "fence": scene.place.address.kind(),
        "place": scene.place.to_string(),
        "withoutFence": !scene.place.fenced,
        "resource": scene.place.resource.as_str(),
        "ttlMs": ms(scene.ttl),
        "lateWrite": late,
        "reason": reason,
        "found": verdict.found,
        "intact": verdict.intact,
    })
}
