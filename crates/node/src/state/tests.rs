//! The guarantees of the state, each driven step by step.

use leasehold_core::{Journaled, codec};

use super::*;
use crate::testing::{ROOMY, acquire, at, release, renew, show, state, word};

/// What may be told now, as ticket and word.
fn told(state: &mut State) -> Vec<(u64, &'static str)> {
    std::iter::from_fn(|| state.delivery())
        .filter_map(|delivery| match delivery {
            Delivery::Reply(ticket, reply) => Some((ticket.0, word(reply.get()))),
            Delivery::Live(..) => None,
        })
        .collect()
}

fn batch(state: &mut State) -> Chained {
    match state.next_work() {
        Some(Work::Append(batch)) => batch,
        other => panic!("an append was expected, not {other:?}"),
    }
}

fn commit(state: &mut State) -> CommittedBatch {
    batch(state);
    committed(state)
}

fn committed(state: &mut State) -> CommittedBatch {
    match state.appended(Outcome::Committed) {
        Next::Committed(batch) => batch,
        other => panic!("{other:?}"),
    }
}

fn confirm(state: &mut State) {
    assert_eq!(state.next_work(), Some(Work::Confirm));
    assert!(matches!(state.confirmed(Confirmation::Current), Next::Confirmed));
}

#[test]
fn nothing_is_told_before_it_is_durable_nor_is_a_refusal_or_a_read_that_saw_it() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    batch(&mut state);
    state.take(Ticket(2), acquire("r", 2, 0), at(1));
    state.take(Ticket(3), show(1), at(2));
    assert_eq!(told(&mut state), []);
    assert_eq!(state.next_work(), None, "one piece of work at a time");
    committed(&mut state);
    assert_eq!(
        told(&mut state),
        [(1, "granted")],
        "the others were taken after the append began: not confirmed yet"
    );
    confirm(&mut state);
    assert_eq!(told(&mut state), [(2, "not granted"), (3, "lease")]);
    assert!(state.is_idle());
}

#[test]
fn what_comes_while_a_batch_is_in_flight_makes_one_next_batch() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("a", 1, 0), at(0));
    batch(&mut state);
    state.take(Ticket(2), acquire("b", 2, 0), at(1));
    state.take(Ticket(3), acquire("c", 3, 0), at(1));
    state.take(Ticket(4), renew(1), at(1));
    assert_eq!(committed(&mut state).slot, Slot(1));
    let second = commit(&mut state);
    assert_eq!((second.slot, second.facts, second.events.len()), (Slot(2), 2, 2));
    let all = [(1, "granted"), (2, "granted"), (3, "granted"), (4, "renewed")];
    assert_eq!(told(&mut state), all, "the append confirmed the renewal too");
}

#[test]
fn a_renewal_needs_a_round_that_began_after_it() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    commit(&mut state);
    assert_eq!(told(&mut state), [(1, "granted")]);
    state.take(Ticket(2), renew(1), at(1));
    assert_eq!(told(&mut state), []);
    assert_eq!(state.next_work(), Some(Work::Confirm));
    state.take(Ticket(3), renew(1), at(2));
    assert!(matches!(state.confirmed(Confirmation::Current), Next::Confirmed));
    assert_eq!(told(&mut state), [(2, "renewed")], "the third came after the question was asked");
    confirm(&mut state);
    assert_eq!(told(&mut state), [(3, "renewed")]);
    assert_eq!(state.next_work(), None);
}

#[test]
fn an_unknown_outcome_is_tried_again_with_the_same_bytes_and_grants_once() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    batch(&mut state);
    assert!(matches!(state.appended(Outcome::Unknown("reset".to_owned())), Next::Again(_)));
    assert_eq!(told(&mut state), []);
    assert_eq!(state.next_work(), None, "it is still the one in flight");
    assert_eq!(committed(&mut state).slot, Slot(1));
    assert_eq!(told(&mut state), [(1, "granted")]);
    assert_eq!(state.tail().slot, Slot(1));
}

#[test]
fn after_distrust_nothing_leaves_before_a_new_confirmation() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    batch(&mut state);
    state.distrust();
    committed(&mut state);
    assert_eq!(told(&mut state), [], "that append began before the doubt");
    confirm(&mut state);
    assert_eq!(told(&mut state), [(1, "granted")]);
}

#[test]
fn a_fenced_append_tells_nobody_anything_but_that_nothing_happened() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    batch(&mut state);
    state.take(Ticket(2), acquire("s", 2, 0), at(0));
    assert!(matches!(state.appended(Outcome::Fenced), Next::Stop(StopReason::Fenced)));
    assert_eq!(told(&mut state), []);
    let verdicts = state.stop(&StopReason::Fenced);
    assert_eq!(verdicts, [(Ticket(1), SubmitError::NotActive), (Ticket(2), SubmitError::NotActive)]);
}

#[test]
fn what_may_be_in_the_journal_is_in_doubt_and_what_cannot_be_is_not() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    batch(&mut state);
    state.take(Ticket(2), acquire("r", 1, 0), at(0)); // The same lease id: a retry that saw the grant.
    state.take(Ticket(3), acquire("s", 3, 0), at(0));
    assert!(matches!(state.appended(Outcome::Unknown("cut".to_owned())), Next::Again(_)));
    assert!(matches!(state.appended(Outcome::Fenced), Next::Stop(StopReason::Fenced)));
    let verdicts = state.stop(&StopReason::Fenced);
    assert!(matches!(&verdicts[0], (Ticket(1), SubmitError::OutcomeUnknown(_))), "{verdicts:?}");
    assert!(matches!(&verdicts[1], (Ticket(2), SubmitError::OutcomeUnknown(_))), "{verdicts:?}");
    assert_eq!(verdicts[2], (Ticket(3), SubmitError::NotActive));
}

#[test]
fn a_body_is_split_at_any_fact_and_a_reply_waits_for_its_last() {
    let mut state = state(Limits { body_bytes: 1, ..ROOMY });
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    commit(&mut state);
    state.take(Ticket(2), acquire("r", 2, 1_000), at(0));
    told(&mut state);
    state.take(Ticket(3), release(1), at(1));
    let first = commit(&mut state);
    assert_eq!((first.slot, first.facts), (Slot(2), 1));
    assert_eq!(told(&mut state), [], "the hand-over is not durable yet");
    let second = commit(&mut state);
    assert_eq!((second.slot, second.facts), (Slot(3), 1));
    assert_eq!(told(&mut state), [(3, "released"), (2, "granted")]);
}

#[test]
fn a_released_lock_whose_hand_over_was_cut_off_is_in_doubt() {
    let mut state = state(Limits { body_bytes: 1, ..ROOMY });
    state.take(Ticket(1), acquire("r", 1, 0), at(0));
    commit(&mut state);
    state.take(Ticket(2), acquire("r", 2, 1_000), at(0));
    told(&mut state);
    state.take(Ticket(3), release(1), at(1));
    commit(&mut state);
    batch(&mut state);
    assert!(matches!(state.appended(Outcome::Fenced), Next::Stop(_)));
    let verdicts = state.stop(&StopReason::Fenced);
    assert!(
        verdicts.iter().all(|(_, verdict)| matches!(verdict, SubmitError::OutcomeUnknown(_))),
        "{verdicts:?}"
    );
}

#[test]
fn the_journal_replays_to_the_live_state_and_events() {
    let mut state = state(Limits { body_bytes: 100, ..ROOMY });
    for n in 1..=20 {
        let call = if n % 3 == 0 { release(n - 1) } else { acquire(&format!("r{}", n % 5), n, 5_000) };
        state.take(Ticket(n.into()), call, at(u64::from(n)));
    }
    state.tick(at(60_000), 1_000);
    let (mut replayed, mut events, mut live) = (Journaled::new(), Vec::new(), Vec::new());
    while let Some(Work::Append(batch)) = state.next_work() {
        for fact in codec::decode_body(&batch.body).unwrap() {
            replayed.replay(&fact, &mut events);
        }
        live.extend(committed(&mut state).events);
    }
    assert_eq!(events.len(), live.len());
    for (replayed, (_, live)) in events.iter().zip(&live) {
        assert_eq!((&replayed.resource, replayed.token), (&live.resource, live.token));
    }
    assert_eq!(snapshot(&replayed), snapshot(state.table().journaled()));
}

fn snapshot(state: &Journaled) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut sink = |chunk: bytes::Bytes| -> Result<(), std::convert::Infallible> {
        bytes.extend_from_slice(&chunk);
        Ok(())
    };
    codec::encode_snapshot(state, 1 << 20, &mut sink).unwrap();
    bytes
}

#[test]
fn batch_ids_differ_by_slot_and_stay_the_same_for_a_slot() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("a", 1, 0), at(0));
    let first = batch(&mut state);
    committed(&mut state);
    state.take(Ticket(2), acquire("b", 2, 0), at(0));
    let second = batch(&mut state);
    assert_ne!(first.id, second.id);
    assert_eq!(second.prev_hash, first.hash());
}

#[test]
fn a_resignation_is_the_last_fact() {
    let mut state = state(ROOMY);
    state.take(Ticket(1), acquire("a", 1, 0), at(0));
    state.resign();
    let facts = codec::decode_body(&batch(&mut state).body).unwrap();
    assert_eq!(facts.last(), Some(&Fact::Resigned));
}
