//! Histories as a user would write them: one that is right, and for each promise one that breaks it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use leasehold_history::{Checker, FileVerdict, Promise, Promises, check_lines};

fn judged(lines: &[String]) -> FileVerdict {
    judged_by(lines, Promises::ALL)
}

fn judged_by(lines: &[String], promises: Promises) -> FileVerdict {
    check_lines(lines.join("\n").as_bytes(), Checker::new(promises)).expect("the lines are records")
}

fn broken(lines: &[String]) -> (String, Vec<usize>) {
    match judged(lines) {
        FileVerdict::Broken { violation, excerpt } => {
            (violation.promise.to_string(), excerpt.into_iter().map(|(line, _)| line).collect())
        }
        FileVerdict::Held(verdict) => panic!("nothing is broken: {verdict:?}"),
    }
}

fn id(n: u8) -> String {
    format!("{:032x}", n)
}

fn acquire(at: u64, op: u64, client: &str, lease: u8) -> String {
    let call = format!(r#"{{"kind":"acquire","resource":"r","lease":"{}"}}"#, id(lease));
    format!(r#"{{"record":"invoke","at":{at},"op":{op},"client":"{client}","call":{call}}}"#)
}

fn call(at: u64, op: u64, client: &str, call: &str) -> String {
    format!(r#"{{"record":"invoke","at":{at},"op":{op},"client":"{client}","call":{call}}}"#)
}

fn answer(at: u64, op: u64, answer: &str) -> String {
    format!(r#"{{"record":"answer","at":{at},"op":{op},"answer":{answer}}}"#)
}

fn answer_of(epoch: u64, at: u64, op: u64, answer: &str) -> String {
    format!(r#"{{"record":"answer","at":{at},"op":{op},"epoch":{epoch},"answer":{answer}}}"#)
}

fn granted(token: u64, ttl_ms: u64) -> String {
    format!(r#"{{"kind":"granted","token":{token},"ttlMs":{ttl_ms}}}"#)
}

fn commit(at: u64, slot: u64, epoch: u64, changes: &str) -> String {
    let (prev, hash) = (format!("{:064x}", slot - 1), format!("{slot:064x}"));
    format!(
        r#"{{"record":"commit","at":{at},"slot":{slot},"epoch":{epoch},"prev":"{prev}","hash":"{hash}","changes":[{changes}]}}"#
    )
}

fn grant(lease: u8, token: u64) -> String {
    let id = id(lease);
    format!(
        r#"{{"kind":"granted","lease":"{id}","life":"{id}","resource":"r","token":{token},"mode":"exclusive"}}"#
    )
}

fn ended(kind: &str, lease: u8) -> String {
    format!(r#"{{"kind":"{kind}","lease":"{}"}}"#, id(lease))
}

fn held(from: u64, until: u64, client: &str, token: u64) -> String {
    format!(
        r#"{{"record":"held","at":{until},"from":{from},"until":{until},"client":"{client}","resource":"r","token":{token},"mode":"exclusive"}}"#
    )
}

fn release(at: u64, op: u64, client: &str, lease: u8) -> String {
    call(at, op, client, &format!(r#"{{"kind":"release","lease":"{}"}}"#, id(lease)))
}

#[test]
fn a_right_history_is_right_and_says_what_it_shows() {
    let lines = [
        acquire(10, 1, "a", 1),
        commit(20, 1, 1, &grant(1, 5)),
        answer_of(1, 30, 1, &granted(5, 1_000)),
        acquire(40, 2, "b", 2),
        release(60, 3, "a", 1),
        held(30, 60, "a", 5),
        commit(70, 2, 1, &format!("{},{}", ended("released", 1), grant(2, 6))),
        answer_of(1, 80, 3, r#"{"kind":"released","token":5}"#),
        answer_of(1, 80, 2, &granted(6, 1_000)),
        held(80, 120, "b", 6),
    ];
    let FileVerdict::Held(verdict) = judged(&lines) else { panic!("it is right") };
    assert_eq!((verdict.records, verdict.unknown), (10, 0));
    let examined = |name: &str| {
        verdict.examined.iter().find(|(promise, _)| promise.to_string() == name).map(|(_, n)| *n)
    };
    assert_eq!((examined("S10"), examined("S14")), (Some(2), Some(0)));
}

#[test]
fn an_attempt_without_an_answer_may_or_may_not_have_happened() {
    let happened = [acquire(10, 1, "a", 1), commit(20, 1, 1, &grant(1, 5))];
    let not = [acquire(10, 1, "a", 1)];
    for lines in [&happened[..], &not[..]] {
        let FileVerdict::Held(verdict) = judged(lines) else { panic!("both are right") };
        assert_eq!(verdict.unknown, 1);
    }
    let failed =
        [acquire(10, 1, "a", 1), answer(15, 1, r#"{"kind":"failed"}"#), commit(20, 1, 1, &grant(1, 5))];
    assert_eq!(broken(&failed), ("S6".to_owned(), vec![1, 2, 3]), "what was answered as failed has happened");
}

#[test]
fn the_excerpt_has_the_records_that_show_it_and_no_others() {
    let lines = [
        acquire(10, 1, "a", 1),
        r#"{"record":"fault","at":12,"what":"kill -9"}"#.to_owned(),
        commit(20, 1, 1, &grant(1, 5)),
        commit(25, 2, 1, &grant(2, 6)),
    ];
    assert_eq!(broken(&lines), ("S1".to_owned(), vec![3, 4]));
}

/// And nothing but it: without its function each of these histories would pass, so none of the functions can go.
#[test]
fn every_promise_has_a_history_that_breaks_it_alone() {
    let renew = |at, op, life| call(at, op, "a", &format!(r#"{{"kind":"renew","life":"{}"}}"#, id(life)));
    let read = |at, op| call(at, op, "a", r#"{"kind":"read","resource":"r"}"#);
    let holders = |tokens: &str| format!(r#"{{"kind":"holders","tokens":[{tokens}]}}"#);
    let force = |at, op| call(at, op, "a", r#"{"kind":"forceRelease","resource":"r"}"#);
    let claim = |at, node: &str, epoch, tail| {
        format!(r#"{{"record":"claim","at":{at},"node":"{node}","epoch":{epoch},"tail":{tail}}}"#)
    };
    let seen = |at, slot| format!(r#"{{"record":"seen","at":{at},"node":"n","slot":{slot}}}"#);
    let fence = |at, token, admitted| {
        format!(r#"{{"record":"fence","at":{at},"fence":"r","token":{token},"admitted":{admitted}}}"#)
    };
    let shown = |at, stream, slot, n| {
        format!(r#"{{"record":"event","at":{at},"stream":"{stream}","slot":{slot},"n":{n}}}"#)
    };
    let event = |at, slot, n| shown(at, "w", slot, n);
    let released = |token| format!(r#"{{"kind":"released","token":{token}}}"#);
    let cases: Vec<(&str, Vec<String>)> = vec![
        ("S1", vec![commit(1, 1, 1, &grant(1, 5)), commit(2, 2, 1, &grant(2, 6))]),
        (
            "S2",
            vec![
                acquire(1, 1, "a", 1),
                acquire(1, 2, "b", 2),
                answer(2, 1, &granted(5, 1_000)),
                answer(3, 2, &granted(5, 1_000)),
            ],
        ),
        (
            "S2",
            vec![
                commit(1, 1, 1, &grant(1, 5)),
                commit(2, 2, 1, &format!("{},{}", ended("expired", 1), grant(2, 5))),
            ],
        ),
        (
            "S3",
            vec![
                acquire(1, 1, "a", 1),
                answer(2, 1, &granted(9, 1_000)),
                acquire(3, 2, "b", 2),
                answer(4, 2, &granted(8, 1_000)),
            ],
        ),
        ("S4", vec![fence(1, 7, true), fence(2, 6, false), fence(3, 6, true)]),
        ("S5", vec![acquire(1, 1, "a", 1), commit(2, 1, 1, &grant(2, 4)), answer(3, 1, &granted(5, 1_000))]),
        (
            "S5",
            vec![
                acquire(1, 1, "a", 1),
                answer(2, 1, &granted(5, 1_000)),
                read(3, 2),
                answer(4, 2, &holders("")),
            ],
        ),
        (
            "S5",
            vec![
                acquire(1, 1, "a", 1),
                answer(2, 1, &granted(5, 1_000)),
                release(3, 2, "a", 1),
                answer(4, 2, &released(5)),
                read(5, 3),
                answer(6, 3, &holders("5")),
            ],
        ),
        (
            "S6",
            vec![acquire(1, 1, "a", 1), answer(2, 1, r#"{"kind":"failed"}"#), commit(3, 1, 1, &grant(1, 5))],
        ),
        (
            "S7",
            vec![
                commit(1, 1, 1, &grant(1, 5)),
                commit(2, 2, 1, &format!("{},{}", ended("expired", 1), grant(1, 6))),
            ],
        ),
        ("S8", vec![commit(1, 1, 1, ""), commit(2, 3, 1, "")]),
        ("S8", vec![commit(1, 1, 1, ""), claim(2, "m", 2, 1), commit(3, 2, 1, "")]),
        (
            "S9",
            vec![
                acquire(1, 1, "a", 1),
                commit(2, 1, 1, &grant(1, 5)),
                answer(3, 1, &granted(5, 1_000)),
                commit(900_000, 2, 1, &ended("expired", 1)),
            ],
        ),
        ("S10", vec![held(1, 9, "a", 5), held(8, 12, "b", 6)]),
        (
            "S11",
            vec![
                commit(1, 1, 1, &grant(1, 5)),
                commit(2, 2, 1, &ended("expired", 1)),
                read(3, 1),
                answer(4, 1, &holders("5")),
            ],
        ),
        (
            "S12",
            vec![
                acquire(1, 1, "a", 1),
                commit(2, 1, 1, &grant(1, 5)),
                commit(3, 2, 1, &ended("released", 1)),
            ],
        ),
        (
            "S13",
            vec![
                commit(1, 1, 1, &grant(1, 5)),
                release(2, 1, "a", 1),
                commit(3, 2, 1, &ended("released", 1)),
                renew(4, 2, 1),
                answer(5, 2, r#"{"kind":"renewed","ttlMs":0}"#),
            ],
        ),
        (
            "S14",
            vec![
                commit(1, 1, 1, &grant(1, 5)),
                commit(2, 2, 1, &ended("expired", 1)),
                commit(3, 3, 1, &grant(2, 6)),
                event(4, 1, 0),
                event(5, 3, 0),
            ],
        ),
        (
            "S14",
            vec![event(1, 1, 0), shown(2, "x", 1, 0), event(3, 2, 0), shown(4, "x", 3, 0), event(5, 3, 0)],
        ),
        ("S14", vec![event(1, 1, 0), event(2, 2, 0), event(3, 1, 0)]),
        (
            "S17",
            vec![
                read(1, 1),
                answer_of(2, 2, 1, &holders("")),
                call(3, 2, "b", r#"{"kind":"read","resource":"r"}"#),
                answer_of(1, 4, 2, &holders("")),
            ],
        ),
        ("S17", vec![commit(1, 1, 1, ""), claim(2, "m", 2, 1), read(3, 1), answer_of(1, 4, 1, &holders(""))]),
        ("S18", vec![commit(1, 1, 1, ""), seen(2, 5), claim(3, "n", 2, 1), commit(4, 2, 2, "")]),
        (
            "S19",
            vec![
                force(1, 1),
                answer(2, 1, r#"{"kind":"forced","auditSeq":3}"#),
                force(3, 2),
                answer(4, 2, r#"{"kind":"forced","auditSeq":3}"#),
            ],
        ),
    ];
    for (promise, lines) in &cases {
        assert_eq!(broken(lines).0, *promise, "{lines:#?}");
        let without = Promises::ALL.without(Promise::parse(promise).unwrap());
        let slipped = judged_by(lines, without);
        assert!(matches!(slipped, FileVerdict::Held(_)), "without {promise}: {slipped:?}\n{lines:#?}");
    }
    for promise in Promise::ALL {
        assert!(cases.iter().any(|(name, _)| *name == promise.to_string()), "nothing breaks {promise}");
    }
}

#[test]
fn a_line_that_is_no_record_is_named() {
    let error = check_lines("\n{\"record\":\"held\"}".as_bytes(), Checker::default()).unwrap_err();
    assert!(error.to_string().starts_with("line 2: "), "{error}");
}
