//! The drill itself: a holder falls behind, another takes over, and the first one's write comes late.

use std::time::Duration;

use rustix::process::Signal;

use super::crew::{Environment, Worker};
use super::network::Network;
use super::protected::{Place, Protected, Written};
use super::timeline::{Timeline, Who};
use super::worker::{Order, WorkerPlan};
use crate::duration::{ms, shown};
use crate::failure::Failure;

/// What worker B leaves, and must find again.
const SUCCESSOR: &str = "written by worker B";
/// The write on its way must be seen in the network after this, whatever the machine is busy with.
const HELD: Duration = Duration::from_secs(60);
/// A machine so busy that a ttl passes between a grant and the next line is busy with something else; once is enough.
const ATTEMPTS: usize = 5;

/// How the holder falls behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lag {
    /// It is stopped just before it writes.
    Paused,
    /// Its write, and whatever else it sends, is held in the network.
    Delayed,
}

impl Lag {
    /// The word in reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "pause",
            Self::Delayed => "delayed-write",
        }
    }
}

/// Where the drill takes place.
pub(super) struct Scene {
    pub(super) servers: Vec<String>,
    /// How workers prove there who they are.
    pub(super) access: Environment,
    pub(super) ttl: Duration,
    pub(super) place: Place,
    pub(super) lag: Lag,
}

/// How it ended.
pub(super) struct Verdict {
    /// What came of the late write, where it was seen.
    pub(super) late: Option<Written>,
    /// What stands there in the end, where it can be read.
    pub(super) found: Option<String>,
    /// Whether that is what the successor left, where it can be told.
    pub(super) intact: Option<bool>,
}

impl Verdict {
    /// Whether the fence held.
    pub(super) fn passed(&self) -> bool {
        match self.late {
            Some(Written::Refused(_)) => self.intact != Some(false),
            Some(Written::Accepted) => false,
            None => self.intact == Some(true),
        }
    }
}

/// Plays it.
pub(super) async fn play(
    scene: &Scene,
    protected: &mut dyn Protected,
    timeline: &mut Timeline<'_>,
) -> Result<Verdict, Failure> {
    let ways = Ways::new(scene).await?;
    let (mut a, token) = holder(scene, &ways, timeline).await?;
    let late = Order::Write("written by worker A, too late".into());
    match scene.lag {
        Lag::Paused => stop(&mut a, &late, timeline).await?,
        Lag::Delayed => ways.hold(&mut a, &late, token, scene, timeline).await?,
    }

    let mut b = scene.start(Who::WorkerB, &scene.servers, &scene.place)?;
    let newer = acquired(&mut b, Who::WorkerB, scene, timeline).await?;
    writes(&mut b, Who::WorkerB, newer, SUCCESSOR, timeline).await?;

    match scene.lag {
        Lag::Paused => {
            a.signal(Signal::CONT)?;
            timeline.add(Who::Drill, "woken", "SIGCONT: worker A goes on where it was")?;
        }
        Lag::Delayed => {
            a.has_no_answer().await?;
            ways.deliver();
            timeline.add(Who::Drill, "delivered", "the network delivers what worker A had sent")?;
        }
    }
    let late = a.wrote().await?;
    let told = told(&late, "LATE WRITE ACCEPTED");
    timeline.with_token(Who::WorkerA, word(&late), token, format!("writes with token {token}: {told}"))?;
    let found = protected.read().await?;
    if let Some(found) = &found {
        timeline.add(Who::Drill, "read", format!("reads what is there: {found:?}"))?;
    }
    b.release().await?;
    let intact = found.as_deref().map(|found| found == SUCCESSOR);
    Ok(Verdict { late: Some(late), found, intact })
}

/// Worker A, holding the lock, with one accepted write and the next one to come.
async fn holder(scene: &Scene, ways: &Ways, timeline: &mut Timeline<'_>) -> Result<(Worker, u64), Failure> {
    for _ in 0..ATTEMPTS {
        let mut a = scene.start(Who::WorkerA, &ways.servers, &ways.place)?;
        let token = acquired(&mut a, Who::WorkerA, scene, timeline).await?;
        writes(&mut a, Who::WorkerA, token, "written by worker A", timeline).await?;
        if a.check().await? {
            let told = "checks its lease: held. Its next write comes next";
            timeline.with_token(Who::WorkerA, "checked", token, told)?;
            return Ok((a, token));
        }
        timeline.add(Who::WorkerA, "lost", "lost its lease before it was stopped: starts once more")?;
    }
    Err(Failure::Fence("worker A cannot keep its lease on this machine; try a longer --ttl".into()))
}

impl Scene {
    pub(super) fn start(&self, who: Who, servers: &[String], place: &Place) -> Result<Worker, Failure> {
        let name = if who == Who::WorkerA { "worker A" } else { "worker B" };
        let plan = WorkerPlan::Holder {
            servers: servers.to_vec(),
            owner: format!("drill {name}"),
            resource: place.resource.to_string(),
            ttl_ms: ms(self.ttl),
            place: place.clone(),
        };
        Worker::start(name, &plan, &self.access, self.ttl)
    }
}

/// How worker A reaches the lock service and what it writes: straight, or by networks that can hold what it sends.
struct Ways {
    servers: Vec<String>,
    place: Place,
    to_fence: Option<Network>,
    to_servers: Vec<Network>,
    /// Writes for the workers, where there is no network.
    _relay: Option<Worker>,
}

impl Ways {
    async fn new(scene: &Scene) -> Result<Self, Failure> {
        let straight = (scene.servers.clone(), scene.place.clone());
        if scene.lag == Lag::Paused {
            let (servers, place) = straight;
            return Ok(Self { servers, place, to_fence: None, to_servers: Vec::new(), _relay: None });
        }
        let mut to_servers = Vec::new();
        for server in &scene.servers {
            to_servers.push(Network::to(server.trim_start_matches("http://").to_owned()).await?);
        }
        let servers = to_servers.iter().map(|way| format!("http://{}", way.address())).collect();
        let (target, relay) = match scene.place.address.host() {
            Some(host) => (host, None),
            None => {
                let plan = WorkerPlan::Relay { place: scene.place.clone() };
                let mut relay = Worker::start("the writer", &plan, &scene.access, scene.ttl)?;
                (relay.serves().await?.to_string(), Some(relay))
            }
        };
        let to_fence = Network::to(target).await?;
        let place = scene.place.through(to_fence.address());
        Ok(Self { servers, place, to_fence: Some(to_fence), to_servers, _relay: relay })
    }

    async fn hold(
        &self,
        a: &mut Worker,
        late: &Order,
        token: u64,
        scene: &Scene,
        timeline: &mut Timeline<'_>,
    ) -> Result<(), Failure> {
        let to_fence = self.to_fence.as_ref().expect("a delayed write has a network to be held in");
        to_fence.hold_after(scene.place.requests_before_write());
        self.to_servers.iter().for_each(|way| way.hold_after(0));
        a.order(late).await?;
        let held = tokio::time::timeout(HELD, to_fence.held()).await;
        held.map_err(|_| Failure::Fence("the late write was never seen in the network".into()))?;
        let told = format!("writes with token {token}: sent, and no answer yet");
        timeline.with_token(Who::WorkerA, "sent", token, told)?;
        timeline.add(Who::Drill, "held", "the network holds that write, and every renewal of worker A")
    }

    fn deliver(&self) {
        self.to_servers.iter().chain(&self.to_fence).for_each(Network::deliver);
    }
}

/// Waits until it holds the lock, and says so.
pub(super) async fn acquired(
    worker: &mut Worker,
    who: Who,
    scene: &Scene,
    timeline: &mut Timeline<'_>,
) -> Result<u64, Failure> {
    if who == Who::WorkerB {
        timeline.add(who, "waits", format!("waits for {}", scene.place.resource))?;
    }
    let token = worker.acquired().await?;
    let ttl = shown(ms(scene.ttl));
    let told = match who {
        Who::WorkerB => format!("holds the lock with token {token}: the lease of worker A has ended"),
        _ => format!("holds the lock {} with token {token}, ttl {ttl}", scene.place.resource),
    };
    timeline.with_token(who, "acquired", token, told)?;
    Ok(token)
}

/// A write of the rightful holder, which the fence must admit.
async fn writes(
    worker: &mut Worker,
    who: Who,
    token: u64,
    text: &str,
    timeline: &mut Timeline<'_>,
) -> Result<(), Failure> {
    worker.order(&Order::Write(text.into())).await?;
    let written = worker.wrote().await?;
    timeline.with_token(
        who,
        word(&written),
        token,
        format!("writes with token {token}: {}", told(&written, "accepted")),
    )?;
    match written {
        Written::Accepted => Ok(()),
        Written::Refused(why) => Err(Failure::Fence(format!(
            "the fence refused the rightful holder: {why}; if it has seen tokens of another server, name that one with \
             --server; if another lock guards it, name that one with --resource"
        ))),
    }
}

async fn stop(a: &mut Worker, late: &Order, timeline: &mut Timeline<'_>) -> Result<(), Failure> {
    a.signal(Signal::STOP)?;
    let pid = a.pid().map_or_else(String::new, |pid| pid.as_raw_nonzero().to_string());
    timeline.add(Who::Drill, "stopped", format!("SIGSTOP: worker A, process {pid}, stands still"))?;
    // It finds this when it wakes, as a thread finds its next instruction.
    a.order(late).await
}

fn word(written: &Written) -> &'static str {
    match written {
        Written::Accepted => "accepted",
        Written::Refused(_) => "refused",
    }
}

fn told(written: &Written, accepted: &str) -> String {
    match written {
        Written::Accepted => accepted.into(),
        Written::Refused(why) => format!("REFUSED: {why}"),
    }
}
