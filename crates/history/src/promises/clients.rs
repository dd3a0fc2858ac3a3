//! Promises that an answer, or a fence, can break.

use std::sync::Arc;

use super::{Check, broken};
use crate::book::{Book, Op};
use crate::checker::Violation;
use crate::lease::{Ending, Mark};
use crate::promise::Promise;
use crate::record::{Answer, At, Call};

/// S2: a token that was told for one lease is not told for another.
pub(super) fn tokens_are_of_one_lease(book: &Book, op: &Op, index: u64, answer: &Answer) -> Check {
    let (Answer::Granted { token, .. }, Call::Acquire { lease, .. }) = (answer, &op.call) else {
        return Ok(0);
    };
    match book.tokens.get(token) {
        Some((other, mark)) if other != lease => {
            let detail = format!("token {token} was told for lease {other}, and then for lease {lease}");
            Err(broken(Promise::S2, &[*mark, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S3: a grant is larger than every grant that was told before it was asked for.
pub(super) fn tokens_follow_asking(op: &Op, index: u64, answer: &Answer) -> Check {
    let (Answer::Granted { token, .. }, Call::Acquire { .. }) = (answer, &op.call) else { return Ok(0) };
    let (told, mark) = op.told_token;
    if *token <= told {
        let detail = format!("token {token} was given after token {told} had been told");
        return Err(broken(Promise::S3, &[mark, op.mark], index, detail));
    }
    Ok(1)
}

/// S4: a fence admits no token below one that it admitted before.
pub(super) fn fences_never_go_back(
    book: &Book,
    index: u64,
    fence: &Arc<str>,
    token: u64,
    admitted: bool,
) -> Check {
    let Some((newest, mark)) = book.fences.get(fence) else { return Ok(1) };
    if admitted && token < *newest {
        let detail = format!("{fence} admitted token {token} after token {newest}");
        return Err(broken(Promise::S4, &[*mark], index, detail));
    }
    Ok(1)
}

/// S5: what is told is committed; and, where commits are not shown, what was told and promised is still there when
/// somebody looks, and what was given back is not.
pub(super) fn nothing_told_is_lost(book: &Book, op: &Op, index: u64, at: At, answer: &Answer) -> Check {
    match (answer, &op.call) {
        (Answer::Granted { token, .. }, Call::Acquire { lease, .. }) if book.has_commits() => {
            let granted = book.leases.get(lease).and_then(|lease| lease.granted);
            if granted.map(|(token, _)| token) != Some(*token) {
                let detail = format!("token {token} was told, and is not committed");
                return Err(broken(Promise::S5, &[op.mark], index, detail));
            }
            Ok(1)
        }
        (Answer::Released { .. }, Call::Release { lease }) if book.has_commits() => {
            let ended = book.leases.get(lease).and_then(|lease| lease.ended);
            if ended.is_none() {
                let detail = format!("{lease} was told to be given back, which is not committed");
                return Err(broken(Promise::S5, &[op.mark], index, detail));
            }
            Ok(1)
        }
        (Answer::Holders { tokens }, Call::Read { resource }) if !book.has_commits() => {
            let Some(place) = book.resources.get(resource) else { return Ok(0) };
            still_held(book, op, index, tokens)?;
            for id in &place.told {
                let Some(lease) = book.leases.get(id) else { continue };
                let Some((token, told)) = lease.told.filter(|(_, told)| told.index < op.mark.index) else {
                    continue;
                };
                let promised = book.lives.get(&book.life_of(*id)).map_or(0, |life| life.promised.at);
                if lease.released.made == 0 && promised > at && !tokens.contains(&token) {
                    let detail = format!("{resource} was told to be held by token {token}, and is not");
                    return Err(broken(Promise::S5, &[told, op.mark], index, detail));
                }
            }
            Ok(1)
        }
        _ => Ok(0),
    }
}

/// What was acknowledged as given back before somebody looked is held by nobody.
fn still_held(book: &Book, op: &Op, index: u64, tokens: &[u64]) -> Result<(), Violation> {
    for token in tokens {
        let lease = book.tokens.get(token).and_then(|(lease, _)| book.leases.get(lease));
        let Some(given_back) = lease.and_then(|lease| lease.given_back) else { continue };
        if given_back.index < op.mark.index {
            let detail = format!("token {token} was told to be given back, and is still held");
            return Err(broken(Promise::S5, &[given_back, op.mark], index, detail));
        }
    }
    Ok(())
}

/// S7: whoever asks again under a lease id is told the same token.
pub(super) fn told_once(book: &Book, op: &Op, index: u64, answer: &Answer) -> Check {
    let (Answer::Granted { token, .. }, Call::Acquire { lease, .. }) = (answer, &op.call) else {
        return Ok(0);
    };
    match book.leases.get(lease).and_then(|lease| lease.told) {
        Some((earlier, mark)) if earlier != *token => {
            let detail = format!("lease {lease} was told token {earlier}, and then token {token}");
            Err(broken(Promise::S7, &[mark, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S9, the other way round: an answer that promises what was already ended.
pub(super) fn no_promise_after_expiry(book: &Book, op: &Op, index: u64, answer: &Answer) -> Check {
    let (Answer::Granted { ttl_ms, .. } | Answer::Renewed { ttl_ms }) = answer else { return Ok(0) };
    let Some(life) = book.promised_life(&op.call).and_then(|life| book.lives.get(&life)) else {
        return Ok(0);
    };
    match life.expired {
        Some(expired) if expired.at < op.mark.at + 1_000 * ttl_ms => {
            let early = op.mark.at + 1_000 * ttl_ms - expired.at;
            let detail = format!("the answer promises {early} µs more than there were");
            Err(broken(Promise::S9, &[expired, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S11: what a read shows was so at some moment between asking and answer; and no client is answered by an older epoch
/// than before.
pub(super) fn reads_are_current(
    book: &Book,
    op: &Op,
    index: u64,
    (at, epoch): (At, Option<u64>),
    answer: &Answer,
) -> Check {
    if let (Some(epoch), Some((newest, mark))) = (epoch, book.clients.get(&op.client))
        && epoch < *newest
    {
        let detail = format!("{} was answered by epoch {epoch} after epoch {newest}", op.client);
        return Err(broken(Promise::S11, &[*mark, op.mark], index, detail));
    }
    let (Answer::Holders { tokens }, Call::Read { resource }) = (answer, &op.call) else { return Ok(1) };
    if !book.has_commits() {
        return Ok(0);
    }
    let versions = book.resources.get(resource).map_or(&[][..], |place| &place.versions);
    let first = book.resources.get(resource).and_then(|place| place.version_at(op.mark.at));
    let nobody_first = first.is_none() && tokens.is_empty();
    let seen = versions[first.unwrap_or(0)..].iter().take_while(|(mark, _)| mark.at <= at);
    if nobody_first || seen.clone().any(|(_, version)| version == tokens) {
        return Ok(1);
    }
    let current = seen.last().map_or((Mark::default(), &[][..]), |(mark, tokens)| (*mark, tokens));
    let detail = format!("{resource} was read as held by {tokens:?}, but it was {:?}", current.1);
    Err(broken(Promise::S11, &[current.0, op.mark], index, detail))
}

/// S12: a release answers with the token of the lease that it named.
pub(super) fn released_token_is_its_own(book: &Book, op: &Op, index: u64, answer: &Answer) -> Check {
    let (Answer::Released { token }, Call::Release { lease }) = (answer, &op.call) else { return Ok(0) };
    let known = book.leases.get(lease).and_then(|lease| lease.granted.or(lease.told));
    match known {
        Some((own, mark)) if own != *token => {
            let detail = format!("{lease} has token {own}; its release gave token {token} back");
            Err(broken(Promise::S12, &[mark, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S13: what has ended is neither renewed nor granted to anybody who asks after that.
pub(super) fn nothing_comes_back(book: &Book, op: &Op, index: u64, answer: &Answer) -> Check {
    let ended = match (answer, &op.call) {
        (Answer::Granted { .. }, Call::Acquire { lease, .. }) => {
            book.leases.get(lease).and_then(|lease| lease.ended)
        }
        (Answer::Renewed { .. }, Call::Renew { life }) => {
            let lease = book.leases.get(life).and_then(|lease| lease.ended);
            let session = book.lives.get(life).and_then(|life| life.expired);
            lease.or(session.map(|mark| (Ending::Expired, mark)))
        }
        _ => return Ok(0),
    };
    match ended {
        Some((ending, mark)) if mark.at < op.mark.at => {
            let detail = format!("it was {ending:?} before it was asked for, and answered as live");
            Err(broken(Promise::S13, &[mark, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S17: whatever was asked after a node was replaced is not answered by it. That it was replaced is seen from the claim, or
/// from an answer of a newer epoch to anybody.
pub(super) fn replaced_nodes_are_silent(
    book: &Book,
    op: &Op,
    index: u64,
    epoch: Option<u64>,
    answer: &Answer,
) -> Check {
    // Whoever has just been replaced may say so.
    let Some(epoch) = epoch.filter(|_| !answer.is_error()) else { return Ok(0) };
    let (newer, mark) = op.told_epoch;
    if epoch < newer {
        let detail = format!("epoch {epoch} answered what was asked after epoch {newer} had answered");
        return Err(broken(Promise::S17, &[mark, op.mark], index, detail));
    }
    match book.replaced(epoch) {
        Some(claim) if claim.mark.at < op.mark.at => {
            let detail = format!("epoch {epoch} answered what was asked after epoch {} began", claim.epoch);
            Err(broken(Promise::S17, &[claim.mark, op.mark], index, detail))
        }
        _ => Ok(1),
    }
}

/// S19: an audit entry has a larger number than every one that was told before it was asked for.
pub(super) fn audit_numbers_grow(op: &Op, index: u64, answer: &Answer) -> Check {
    let Answer::Forced { audit_seq } = answer else { return Ok(0) };
    let (told, mark) = op.told_audit;
    if *audit_seq <= told {
        let detail = format!("audit entry {audit_seq} was told after entry {told}");
        return Err(broken(Promise::S19, &[mark, op.mark], index, detail));
    }
    Ok(1)
}
