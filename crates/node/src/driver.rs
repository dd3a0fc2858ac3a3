//! Drives the state: takes, decides, commits, answers, until something says stop.
//!
//! It runs on a thread of its own (see `running.rs`). An append may block that thread, as the embedded journal's does,
//! or wait, as a remote engine's does: then commands are taken and decided meanwhile, and make up the next batch. That
//! one goes to the engine first, and everybody is told of the last while it is under way.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use leasehold_journal::{Confirmation, Outcome, Room, Writer};

use crate::StopReason;
use crate::beside::Places;
use crate::config::{BEAT, MANY, RESOLVE_EVERY, STALL, TAKE_MOST};
use crate::desk::Desk;
use crate::keepers::Keepers;
use crate::shared::Message;
use crate::state::{Next, Work};

/// Serves until the node is shut down, fenced, or its journal fails. The caller then stops the desk.
///
/// This is one life as the active node. With `beats` it shows standbys that it lives, also when nothing happens (J15).
pub(crate) async fn serve(
    desk: &mut Desk,
    writer: &mut dyn Writer,
    keepers: &mut Keepers,
    beats: bool,
    places: &Places,
) -> StopReason {
    let mut first = None;
    let mut next = None;
    // Where a confirmation costs nothing the journal is this machine's, and an append blocks the loop.
    let is_engine = !writer.limits().confirm_is_free;
    let mut next_beat = desk.monotonic() + BEAT;
    loop {
        desk.set_room(writer.room() == Room::Plenty);
        if next.is_none() {
            if is_engine {
                desk.half_round(first.take());
            } else {
                take_all(desk, places, first.take()).await;
            }
            desk.tell();
            next = desk.state.next_work();
        }
        keepers.tell(desk);
        match next.take() {
            Some(work) => {
                desk.begin_batch();
                // A confirmation is not seen by standbys.
                let is_append = matches!(work, Work::Append(_));
                if let Err(reason) = complete(desk, writer, keepers, work).await {
                    return reason;
                }
                if is_append {
                    next_beat = desk.monotonic() + BEAT;
                }
                // An engine need not stand still while everybody is told: what was decided meanwhile goes first.
                next = if is_engine { desk.state.next_work() } else { None };
                if next.is_none() {
                    desk.tell();
                }
                if !is_engine {
                    // Whoever is beside the loop has had no turn since the last append: that did not wait, it blocked.
                    tokio::task::yield_now().await;
                }
            }
            None if desk.is_closing() => return StopReason::Shutdown,
            None if beats && desk.monotonic() >= next_beat => {
                if let Err(reason) = beat(desk, writer).await {
                    return reason;
                }
                next_beat = desk.monotonic() + BEAT;
            }
            None => {
                desk.begin_batch();
                first = desk.wait().await;
            }
        }
    }
}

/// Takes what waits before an append that blocks, which holds everybody beside the loop up. One call alone would be an append
/// of its own, while the answers of the last are yet to be written and the next calls to be read: so those who are there
/// have their turns first. And to decide many takes so long that more have come meanwhile. All of that belongs to this
/// batch, since a durable write takes as long for many as for one; nobody waits for what is not there.
async fn take_all(desk: &mut Desk, places: &Places, first: Option<Message>) {
    let mut taken = desk.round(first);
    let mut left = TAKE_MOST;
    if taken > 0 && taken < MANY {
        for _ in 0..places.turns(desk.lanes_told()) {
            tokio::task::yield_now().await;
        }
        if desk.has_mail() {
            left -= taken;
            taken = desk.round(None);
        }
    }
    while taken >= MANY && taken < left {
        left -= taken;
        // Once to hear of what has come, and once for those who read it.
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        if !desk.has_mail() {
            return;
        }
        taken = desk.round(None);
    }
}

/// Does one piece of work until its outcome is known (J3), or gives up.
async fn complete(
    desk: &mut Desk,
    writer: &mut dyn Writer,
    keepers: &mut Keepers,
    work: Work,
) -> Result<(), StopReason> {
    let began = desk.monotonic();
    desk.shared.busy(began);
    let mut give_up_at = None;
    loop {
        match attempt(desk, writer, &work, give_up_at).await {
            Next::Committed(batch) => {
                keepers.committed(batch.bytes);
                let ended = desk.monotonic();
                desk.settle(Some(batch.slot), began, ended);
                desk.committed(batch, ended.saturating_sub(began));
                break;
            }
            Next::Confirmed => {
                desk.settle(None, began, desk.monotonic());
                break;
            }
            Next::Again(detail) => {
                desk.shared.observer.unknown_outcome();
                let now = desk.monotonic();
                if now >= *give_up_at.get_or_insert(now + STALL) {
                    return Err(StopReason::Unresolved(detail));
                }
                let pause = desk.pause(RESOLVE_EVERY);
                during(desk, pause, None).await;
            }
            Next::Stop(reason) => return Err(reason),
        }
    }
    desk.shared.idle();
    Ok(())
}

/// Writes one beat, until its outcome is known as that of any other work.
async fn beat(desk: &mut Desk, writer: &mut dyn Writer) -> Result<(), StopReason> {
    desk.shared.busy(desk.monotonic());
    let mut give_up_at = None;
    loop {
        let detail = match during(desk, writer.beat(), give_up_at).await {
            Some(Outcome::Committed) => break,
            Some(Outcome::Fenced) => return Err(StopReason::Fenced),
            Some(Outcome::Conflict(found)) => return Err(StopReason::Conflict(found)),
            Some(Outcome::Failed(detail)) => return Err(StopReason::JournalFailed(detail)),
            Some(Outcome::Regressed(detail)) => return Err(StopReason::Halted(detail)),
            Some(Outcome::Unknown(detail)) => detail,
            None => "no answer in time".to_owned(),
        };
        desk.shared.observer.unknown_outcome();
        let now = desk.monotonic();
        if now >= *give_up_at.get_or_insert(now + STALL) {
            return Err(StopReason::Unresolved(detail));
        }
        let pause = desk.pause(RESOLVE_EVERY);
        during(desk, pause, None).await;
    }
    desk.shared.idle();
    Ok(())
}

async fn attempt(
    desk: &mut Desk,
    writer: &mut dyn Writer,
    work: &Work,
    give_up_at: Option<Duration>,
) -> Next {
    let no_answer = || "no answer in time".to_owned();
    match work {
        Work::Append(batch) => {
            let outcome = during(desk, writer.append(batch), give_up_at).await;
            desk.state.appended(outcome.unwrap_or_else(|| Outcome::Unknown(no_answer())))
        }
        Work::Confirm => {
            let confirmation = during(desk, writer.confirm(), give_up_at).await;
            desk.state.confirmed(confirmation.unwrap_or_else(|| Confirmation::Unknown(no_answer())))
        }
    }
}

/// Takes and decides commands until `work` is done, or `None` at the time to give it up.
async fn during<T>(
    desk: &mut Desk,
    work: impl Future<Output = T>,
    give_up_at: Option<Duration>,
) -> Option<T> {
    let mut work = pin!(work);
    if desk.has_news() {
        // Polled once, and then its connection, so that it is on its way before anybody is told of the last.
        let done = tokio::select! {
            biased;
            done = &mut work => Some(done),
            () = tokio::task::yield_now() => None,
        };
        desk.tell();
        if done.is_some() {
            return done;
        }
    }
    loop {
        let woken = tokio::select! {
            biased;
            done = &mut work => return Some(done),
            woken = desk.wait() => woken,
        };
        desk.round(woken);
        if give_up_at.is_some_and(|at| desk.monotonic() >= at) {
            return None;
        }
    }
}
