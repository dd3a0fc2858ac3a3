use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use leasehold_types::FencingToken;

use super::*;
use crate::Grant;

static NOW: AtomicU64 = AtomicU64::new(1_000);

fn clock() -> WallTime {
    WallTime(NOW.load(Ordering::Relaxed))
}

fn name(text: &str) -> ResourceName {
    ResourceName::new(text).unwrap()
}

fn stale() -> Rejection {
    let token = |number| FencingToken::new(number).unwrap();
    Rejection::Stale { presented: token(5), highest: token(9) }
}

/// Whether a write under this lock goes on, given the fence's answer.
fn goes_on(rollout: &Rollout, lock: &str, rejection: Option<Rejection>) -> bool {
    let outcome: Result<(), FenceError<()>> =
        rejection.map_or(Ok(()), |rejection| Err(FenceError::Rejected(rejection)));
    let ask = Grant::exclusive(name(lock), FencingToken::new(5).unwrap()).write();
    rollout.settle(&Fence::of(&name(lock)), Some(&ask), outcome).is_ok()
}

#[test]
fn each_stage_stops_what_it_says() {
    let hundred = Stage::Canary(Percent::new(100).unwrap());
    let table = [
        (Stage::Count, [true, true, false]),
        (Stage::Shadow, [true, true, false]),
        (hundred, [false, true, false]),
        (Stage::Enforce, [false, true, false]),
        (Stage::Require, [false, false, false]),
    ];
    for (stage, expected) in table {
        let rollout = Rollout::new(stage, (), clock);
        let applied = Rejection::AlreadyApplied {
            token: FencingToken::new(5).unwrap(),
            step: std::num::NonZeroU64::MIN,
        };
        let found =
            [stale(), Rejection::MissingToken, applied].map(|why| goes_on(&rollout, "a/1", Some(why)));
        assert_eq!(found, expected, "{stage}");
        assert!(goes_on(&rollout, "a/1", None));
    }
}

#[test]
fn a_store_out_of_reach_stops_writes_where_a_stale_token_would() {
    for (stage, goes_on) in
        [(Stage::Count, true), (Stage::Shadow, true), (Stage::Enforce, false), (Stage::Require, false)]
    {
        let rollout = Rollout::new(stage, (), clock);
        let outcome = rollout.settle(&Fence::of(&name("a/1")), None, Err(FenceError::Store("gone")));
        assert_eq!(outcome.is_ok(), goes_on, "{stage}");
    }
}

#[test]
fn the_longest_declared_prefix_counts_and_is_switched_at_run_time() {
    let rollout = Rollout::new(Stage::Count, (), clock);
    rollout.switch("orders/", Stage::Shadow);
    rollout.switch("orders/eu/", Stage::Enforce);
    assert!(goes_on(&rollout, "orders/us/1", Some(stale())));
    assert!(!goes_on(&rollout, "orders/eu/1", Some(stale())));
    rollout.switch("orders/", Stage::Enforce);
    assert!(!goes_on(&rollout, "orders/us/1", Some(stale())));
    assert!(goes_on(&rollout, "mail/1", Some(stale())));
    let stages: Vec<_> = rollout.status().into_iter().map(|status| (status.prefix, status.stage)).collect();
    let expected = [("mail", Stage::Count), ("orders/", Stage::Enforce), ("orders/eu/", Stage::Enforce)];
    assert_eq!(stages, expected.map(|(prefix, stage)| (prefix.to_owned(), stage)));
}

#[test]
fn the_next_stage_is_safe_when_nothing_would_be_stopped() {
    let rollout = Rollout::new(Stage::Count, (), clock);
    let safe = |rollout: &Rollout| rollout.status()[0].next_stage_is_safe();
    rollout.switch("a", Stage::Shadow);
    assert!(!safe(&rollout), "nothing seen is no evidence");
    goes_on(&rollout, "a/1", None);
    assert!(safe(&rollout));
    goes_on(&rollout, "a/1", Some(stale()));
    assert!(!safe(&rollout));
    rollout.switch("a", Stage::Enforce);
    goes_on(&rollout, "a/1", None);
    goes_on(&rollout, "a/1", Some(stale()));
    assert!(safe(&rollout), "a stale write that was stopped is the fence at work");
    goes_on(&rollout, "a/1", Some(Rejection::MissingToken));
    assert!(!safe(&rollout), "`require` would stop the write without a token");
}

#[test]
fn an_override_lets_through_and_ends_by_itself() {
    assert!(
        Override::new("", "why", WallTime(0)).is_err() && Override::new("who", " ", WallTime(0)).is_err()
    );
    let rollout = Rollout::new(Stage::Require, (), || WallTime(1_000));
    rollout.set_override("a", Override::new("ada", "incident 7", WallTime(1_001)).unwrap());
    assert!(goes_on(&rollout, "a/1", Some(stale())));
    assert!(!rollout.status()[0].next_stage_is_safe());
    let applied =
        Rejection::AlreadyApplied { token: FencingToken::new(5).unwrap(), step: std::num::NonZeroU64::MIN };
    assert!(!goes_on(&rollout, "a/1", Some(applied)), "a step is not applied twice even then");
    rollout.set_override("a", Override::new("ada", "incident 7", WallTime(1_000)).unwrap());
    assert!(!goes_on(&rollout, "a/1", Some(stale())), "it has ended");
    rollout.set_override("a", Override::new("ada", "incident 7", WallTime(9_000)).unwrap());
    rollout.end_override("a");
    assert!(!goes_on(&rollout, "a/1", Some(stale())));
}

/// Keeps what it hears.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Observer for Heard {
    fn decided(&self, prefix: &str, stage: Stage, _: &Fence, _: Option<&Ask>, decision: Decision<'_>) {
        self.0.lock().unwrap().push(format!("{prefix} {stage} {decision:?}"));
    }

    fn switched(&self, prefix: &str, from: Stage, to: Stage) {
        self.0.lock().unwrap().push(format!("{prefix} {from} -> {to}"));
    }
}

#[test]
fn the_observer_hears_every_decision_once_and_counters_agree() {
    let heard = Heard::default();
    let rollout = Rollout::new(Stage::Shadow, heard.clone(), clock);
    std::thread::scope(|scope| {
        for n in 0..8 {
            let rollout = &rollout;
            scope.spawn(move || (0..100).for_each(|m| _ = goes_on(rollout, "a/1", (m % 4 == 0).then(stale))));
            if n == 4 {
                rollout.switch("a", Stage::Enforce);
            }
        }
    });
    let heard = heard.0.lock().unwrap();
    let of = |text: &str| heard.iter().filter(|line| line.contains(text)).count() as u64;
    assert_eq!(heard.len(), 801);
    assert_eq!((of("Accepted"), of("Stale")), (600, 200));
    // The switch starts the counters anew: what came after it is all `enforce`.
    let counters = rollout.status()[0].counters;
    assert_eq!((counters.rejected, counters.would_reject), (of("a enforce Rejected"), 0));
    assert_eq!(counters.accepted, of("a enforce Accepted"));
}

#[test]
fn no_stream_of_names_fills_the_memory() {
    let rollout = Rollout::new(Stage::Shadow, (), clock);
    for n in 0..3_000 {
        goes_on(&rollout, &format!("p{n}/x"), None);
    }
    assert!(rollout.status().len() <= PREFIXES + 1);
}
