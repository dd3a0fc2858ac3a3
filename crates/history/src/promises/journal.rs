//! Promises that a committed slot can break.

use std::sync::Arc;

use super::{Check, broken};
use crate::book::{Book, Position};
use crate::lease::{Holder, Mark};
use crate::promise::Promise;
use crate::record::{At, Change, Hash, Id, Mode};

fn count(changes: &[Change]) -> u64 {
    changes.len() as u64
}

/// S1: an exclusive holder is alone, permits are given once, modes do not mix. What ends in the same slot before a grant
/// makes room for it.
pub(super) fn holds_are_disjoint(book: &Book, index: u64, changes: &[Change]) -> Check {
    let mut ended: Vec<Id> = Vec::new();
    let mut sessions: Vec<Id> = Vec::new();
    let mut begun: Vec<(&Arc<str>, Holder)> = Vec::new();
    for change in changes {
        match change {
            Change::Released { lease } | Change::Expired { lease, .. } => ended.push(*lease),
            Change::Forced { leases } => ended.extend(leases),
            Change::SessionExpired { session } | Change::SessionClosed { session } => sessions.push(*session),
            Change::Granted { lease, life, resource, token, mode, permit } => {
                let (lease, token, mode, permit) = (*lease, *token, *mode, *permit);
                let new = Holder { lease, token, mode, permit, mark: Mark { at: 0, index } };
                let is_over =
                    |holder: &Holder| ended.contains(&holder.lease) || in_any(book, holder, &sessions);
                let before = book.resources.get(resource).into_iter().flat_map(|place| &place.holders);
                let here = begun.iter().filter(|(place, _)| *place == resource).map(|(_, holder)| holder);
                let clash = before.chain(here).find(|holder| !is_over(holder) && clashes(holder, &new));
                if let Some(clash) = clash {
                    let detail =
                        format!("{resource} is given to token {token} while token {} holds it", clash.token);
                    return Err(broken(Promise::S1, &[clash.mark], index, detail));
                }
                if !sessions.contains(life) {
                    begun.push((resource, new));
                }
            }
        }
    }
    Ok(count(changes))
}

fn in_any(book: &Book, holder: &Holder, sessions: &[Id]) -> bool {
    !sessions.is_empty() && sessions.contains(&book.life_of(holder.lease))
}

fn clashes(one: &Holder, other: &Holder) -> bool {
    match (one.mode, other.mode) {
        (Mode::Shared, Mode::Shared) => false,
        (Mode::Semaphore, Mode::Semaphore) => one.permit == other.permit,
        _ => true,
    }
}

/// S2: each grant's token is larger than all before it.
pub(super) fn tokens_grow(book: &Book, index: u64, changes: &[Change]) -> Check {
    let (mut last, mark) = book.last_token;
    for change in changes {
        let Change::Granted { token, .. } = change else { continue };
        if *token <= last {
            let detail = format!("token {token} was committed after token {last}");
            return Err(broken(Promise::S2, &[mark], index, detail));
        }
        last = *token;
    }
    Ok(count(changes))
}

/// S7: a lease id is granted once, ever.
pub(super) fn granted_once(book: &Book, index: u64, changes: &[Change]) -> Check {
    for change in changes {
        let Change::Granted { lease, token, .. } = change else { continue };
        if let Some((earlier, mark)) = book.leases.get(lease).and_then(|lease| lease.granted) {
            let detail = format!("lease {lease} was granted token {earlier}, and again token {token}");
            return Err(broken(Promise::S7, &[mark], index, detail));
        }
    }
    Ok(count(changes))
}

/// S8: slots follow each other without gaps, each on the hash of the one before; none is filled again, and none comes
/// from an epoch that was replaced.
pub(super) fn one_chain(book: &Book, index: u64, (slot, epoch, prev): (u64, u64, Hash)) -> Check {
    if let Some(last) = book.last_slot {
        let fault = if slot != last.slot + 1 {
            Some(format!("slot {slot} was committed after slot {}", last.slot))
        } else if prev != last.hash {
            Some(format!("slot {slot} follows {prev:?}, but slot {} has {:?}", last.slot, last.hash))
        } else if epoch < last.epoch {
            Some(format!("epoch {epoch} committed slot {slot} after epoch {}", last.epoch))
        } else {
            None
        };
        if let Some(detail) = fault {
            return Err(broken(Promise::S8, &[last.mark], index, detail));
        }
    }
    if let Some(claim) = book.replaced(epoch) {
        let detail = format!("epoch {epoch} committed slot {slot} after epoch {} was claimed", claim.epoch);
        return Err(broken(Promise::S8, &[claim.mark], index, detail));
    }
    Ok(1)
}

/// S9: no life is ended before the time that an acknowledged answer had promised.
pub(super) fn no_early_expiry(book: &Book, index: u64, at: At, changes: &[Change]) -> Check {
    let mut looked = 0;
    for change in changes {
        let life = match change {
            Change::Expired { lease, max_hold: false } => book.life_of(*lease),
            Change::SessionExpired { session } => *session,
            _ => continue,
        };
        looked += 1;
        let Some(promised) = book.lives.get(&life).map(|life| life.promised) else { continue };
        if at < promised.at {
            let early = promised.at - at;
            let detail = format!("{life} was ended {early} µs before the time that was promised");
            return Err(broken(Promise::S9, &[promised], index, detail));
        }
    }
    Ok(looked)
}

/// S12: a lease is given back only if somebody asked for it to be.
pub(super) fn releases_were_asked(book: &Book, index: u64, changes: &[Change]) -> Check {
    let mut looked = 0;
    for change in changes {
        let Change::Released { lease } = change else { continue };
        looked += 1;
        let Some(entry) = book.leases.get(lease).filter(|lease| lease.asked.made > 0) else { continue };
        if entry.released.made == 0 {
            let detail = format!("{lease} was given back although nobody asked for that");
            let marks: Vec<Mark> = entry.granted.map(|(_, mark)| mark).into_iter().collect();
            return Err(broken(Promise::S12, &marks, index, detail));
        }
    }
    Ok(looked)
}

/// S18: a node that has seen more than the journal shows does not commit on it.
pub(super) fn regression_is_noticed(book: &Book, index: u64, epoch: u64) -> Check {
    let Some(claim) = book.claims.last().filter(|claim| claim.epoch == epoch) else { return Ok(0) };
    let Some((slot, mark)) = book.seen.get(&claim.node).filter(|(_, mark)| mark.index < claim.mark.index)
    else {
        return Ok(0);
    };
    if claim.tail < *slot {
        let detail = format!(
            "{} serves a journal that ends at slot {}, and had seen slot {slot}",
            claim.node, claim.tail
        );
        return Err(broken(Promise::S18, &[*mark, claim.mark], index, detail));
    }
    Ok(1)
}

/// S14: a stream has every journaled event from where it began, in order, and none that is not committed.
pub(super) fn events_have_no_gap(book: &Book, index: u64, stream: &Arc<str>, (slot, n): (u64, u32)) -> Check {
    if !book.has_commits() {
        return Ok(0);
    }
    let Some((before, _)) = book.events.get(&slot).filter(|(_, count)| n < *count) else {
        let detail = format!("{stream} shows event {slot}.{n}, which is not committed");
        return Err(broken(Promise::S14, &[], index, detail));
    };
    let here = before + u64::from(n);
    let (expected, mark) = match book.streams.get(stream) {
        None => return Ok(0),
        Some(Position::After(count, mark)) => (*count, *mark),
        Some(Position::From(oldest, mark)) => {
            (book.events.get(oldest).map_or(here, |(before, _)| *before), *mark)
        }
    };
    if here != expected {
        let detail = format!("{stream} shows event number {here} where number {expected} was next");
        return Err(broken(Promise::S14, &[mark], index, detail));
    }
    Ok(1)
}
