//! The drill with the user's own program as the zombie.

use rustix::process::Signal;

use super::program::{self, Program, Running};
use super::protected::Written;
use super::story::{Scene, Verdict, acquired};
use super::timeline::{Timeline, Who};
use crate::failure::Failure;

/// Who is stopped.
pub(crate) enum Zombie {
    /// A program that is started for the drill, by this line.
    Started(String),
    /// One that runs already.
    Running {
        /// Its process id.
        pid: i32,
        /// The line that starts its successor.
        successor: String,
        /// How long it may take to write after it was woken.
        settle: std::time::Duration,
    },
}

/// The user's part.
pub(crate) struct Own {
    pub(crate) zombie: Zombie,
    /// Says whether the data is as the successor left it.
    pub(crate) check: Option<String>,
}

/// Plays it.
pub(super) async fn play(scene: &Scene, own: &Own, timeline: &mut Timeline<'_>) -> Result<Verdict, Failure> {
    let late = match &own.zombie {
        Zombie::Started(line) => Some(started(scene, line, timeline).await?),
        Zombie::Running { pid, successor, settle } => {
            let stopped = Running::stop(*pid)?;
            timeline.add(Who::Drill, "stopped", format!("SIGSTOP: worker A, process {pid}, stands still"))?;
            succeed(scene, successor, timeline).await?;
            stopped.wake();
            timeline.add(Who::Drill, "woken", "SIGCONT: worker A goes on where it was")?;
            tokio::time::sleep(*settle).await;
            None
        }
    };
    let intact = match &own.check {
        Some(line) => Some(program::check(line).await?),
        None => None,
    };
    if let Some(intact) = intact {
        let told =
            if intact { "the check finds what worker B left" } else { "the check finds something else" };
        timeline.add(Who::Drill, "checked", told)?;
    }
    Ok(Verdict { late, found: None, intact })
}

async fn started(scene: &Scene, line: &str, timeline: &mut Timeline<'_>) -> Result<Written, Failure> {
    let resource = scene.place.resource.as_str();
    let mut holder = scene.start(Who::WorkerA, &scene.servers, &scene.place)?;
    let token = acquired(&mut holder, Who::WorkerA, scene, timeline).await?;
    let mut program = Program::start(line, "worker A", resource, token)?;
    let printed = program.first_line().await;
    // Its lock goes with it, as when a whole machine stands still.
    holder.signal(Signal::STOP)?;
    program.signal(Signal::STOP)?;
    if !printed || program.has_ended() {
        let what = "it is stopped at its first line of output, which must come before it writes";
        return Err(Failure::Fence(format!("the program ended before it could be stopped: {what}")));
    }
    let told = format!("SIGSTOP: the program of worker A, process {}, stands still", program.pid());
    timeline.add(Who::Drill, "stopped", told)?;
    succeed(scene, line, timeline).await?;
    program.signal(Signal::CONT)?;
    holder.signal(Signal::CONT)?;
    timeline.add(Who::Drill, "woken", "SIGCONT: worker A goes on where it was")?;
    let (written, event, told) = match program.ended().await? {
        Ok(()) => (Written::Accepted, "accepted", "ended with 0: its LATE WRITE WAS ACCEPTED".to_owned()),
        Err(why) => (Written::Refused(why.clone()), "refused", format!("REFUSED: {why}")),
    };
    timeline.with_token(Who::WorkerA, event, token, told)?;
    Ok(written)
}

/// Worker B takes over and does its work.
async fn succeed(scene: &Scene, line: &str, timeline: &mut Timeline<'_>) -> Result<(), Failure> {
    let mut holder = scene.start(Who::WorkerB, &scene.servers, &scene.place)?;
    let token = acquired(&mut holder, Who::WorkerB, scene, timeline).await?;
    let mut program = Program::start(line, "worker B", scene.place.resource.as_str(), token)?;
    program.first_line().await;
    if let Err(why) = program.ended().await? {
        let what = "the successor must end with 0 for the drill to mean anything";
        return Err(Failure::Fence(format!("worker B: {why}; {what}")));
    }
    timeline.with_token(
        Who::WorkerB,
        "accepted",
        token,
        format!("did its work with token {token} and ended with 0"),
    )?;
    holder.release().await
}
