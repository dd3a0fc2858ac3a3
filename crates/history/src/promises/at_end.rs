//! What can be said only when everything was seen.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Check, broken};
use crate::book::{Belief, Book};
use crate::lease::{Attempts, Ending, Lease, Mark};
use crate::promise::Promise;
use crate::record::{Id, Mode};

/// The promises of this kind.
pub(crate) const ALL: [Promise; 3] = [Promise::S6, Promise::S10, Promise::S14];

/// Asks the function of one promise.
pub(crate) fn check(promise: Promise, book: &Book) -> Check {
    match promise {
        Promise::S6 => failures_did_not_happen(book),
        Promise::S10 => beliefs_do_not_overlap(book),
        Promise::S14 => watchers_saw_the_same(book),
        _ => Ok(0),
    }
}

/// S6: if every attempt was told that nothing happened, nothing did.
fn failures_did_not_happen(book: &Book) -> Check {
    let mut looked = 0;
    let mut worst: Option<(Id, Mark, &Attempts, &str)> = None;
    for (id, lease) in &book.leases {
        let happened = [
            (lease.granted.map(|(_, mark)| mark), &lease.asked, "granted"),
            (released(lease), &lease.released, "given back"),
        ];
        for (mark, attempts, what) in happened {
            looked += u64::from(attempts.failed);
            let Some(mark) = mark.filter(|_| attempts.all_failed()) else { continue };
            if worst.is_none_or(|(_, first, ..)| mark.index < first.index) {
                worst = Some((*id, mark, attempts, what));
            }
        }
    }
    let Some((id, mark, attempts, what)) = worst else { return Ok(looked) };
    let detail = format!("{id} was {what}, although every attempt was told that nothing happened");
    let first = attempts.first.unwrap_or_default();
    Err(broken(Promise::S6, &[first, mark], attempts.last_failure.index, detail))
}

fn released(lease: &Lease) -> Option<Mark> {
    lease.ended.filter(|(ending, _)| *ending == Ending::Released).map(|(_, mark)| mark)
}

/// S10: of what excludes each other, no two clients believe to have it at the same time. What an operator takes away is
/// the operator's affair: from then on its holder's belief does not count.
fn beliefs_do_not_overlap(book: &Book) -> Check {
    let counted = |belief: &Belief| {
        let until = book.forced_at(belief).map_or(belief.until, |at| at.min(belief.until));
        Belief { until, ..belief.clone() }
    };
    let mut beliefs: Vec<Belief> = book.beliefs.iter().map(counted).collect();
    beliefs.retain(|belief| belief.from < belief.until);
    beliefs.sort_by(|a, b| (&a.resource, a.from, a.index).cmp(&(&b.resource, b.from, b.index)));
    // Of each kind, the one that lasts longest so far: whoever begins before its end overlaps with it.
    let mut longest: Vec<&Belief> = Vec::new();
    for belief in &beliefs {
        longest.retain(|other| other.resource == belief.resource && other.until > belief.from);
        if let Some(other) = longest.iter().find(|other| excludes(other, belief)) {
            let detail = format!(
                "{} believed to hold {} until {} µs under token {}, {} from {} µs under token {}",
                other.client,
                belief.resource,
                other.until,
                other.token,
                belief.client,
                belief.from,
                belief.token
            );
            let mark = Mark { at: 0, index: other.index };
            return Err(broken(Promise::S10, &[mark], belief.index, detail));
        }
        longest.push(belief);
    }
    Ok(beliefs.len() as u64)
}

/// S14 where no commits are shown: an event that one watcher was shown, and that lies between two that another was shown
/// one after the other, was missed by that one. Watchers of one history are taken to watch the same names.
fn watchers_saw_the_same(book: &Book) -> Check {
    if book.has_commits() {
        return Ok(0);
    }
    let mut known: Vec<((u64, u32), u64)> =
        book.shown.iter().filter_map(|shown| Some((shown.event?, shown.index))).collect();
    known.sort_unstable();
    known.dedup_by_key(|(event, _)| *event);
    let place = |event: &(u64, u32)| known.partition_point(|(other, _)| other < event);
    let mut last: HashMap<&Arc<str>, Option<(usize, u64)>> = HashMap::new();
    for shown in &book.shown {
        let here = shown.event.as_ref().map(|event| (place(event), shown.index));
        let before = last.insert(&shown.stream, here).flatten();
        let (Some((before, index)), Some((here, _))) = (before, here) else { continue };
        let (slot, n) = known[here].0;
        let detail = match here {
            _ if here == before + 1 => continue,
            _ if here <= before => format!("{} was shown event {slot}.{n} again, or too late", shown.stream),
            _ => {
                let (slot, n) = known[before + 1].0;
                format!("{} was never shown event {slot}.{n}, which another was", shown.stream)
            }
        };
        let marks = [index, known[(before + 1).min(here)].1].map(|index| Mark { at: 0, index });
        return Err(broken(Promise::S14, &marks, shown.index, detail));
    }
    Ok(book.shown.len() as u64)
}

fn excludes(one: &Belief, other: &Belief) -> bool {
    let clash = match (one.mode, other.mode) {
        (Mode::Shared, Mode::Shared) => false,
        (Mode::Semaphore, Mode::Semaphore) => one.permit == other.permit,
        _ => true,
    };
    clash && one.token != other.token
}
