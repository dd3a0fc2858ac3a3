//! The table of cases.

use leasehold_types::ResourceName;

use super::Protected;
use super::script::{Act, answer};
use crate::{Fence, Span};

/// A story at a fresh fence: acts, each with its answer.
struct Case {
    name: &'static str,
    fence: fn(Fence) -> Fence,
    acts: &'static [(&'static str, &'static str)],
}

const fn plain(name: &'static str, acts: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, fence: |fence| fence, acts }
}

const fn strict(name: &'static str, acts: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, fence: Fence::strict, acts }
}

const fn permits(name: &'static str, acts: &'static [(&'static str, &'static str)]) -> Case {
    Case { name, fence: Fence::each_permit, acts }
}

const CASES: &[Case] = &[
    plain(
        "a paused holder is rejected after its successor wrote",
        &[("33", "admitted"), ("34", "admitted"), ("33", "stale 34"), ("34", "admitted")],
    ),
    plain("a holder writes many times", &[("5", "admitted"), ("5", "admitted"), ("5", "admitted")]),
    plain("no token, no write", &[("none", "missing_token"), ("1", "admitted"), ("none", "missing_token")]),
    plain(
        "the largest token is a token like any other",
        &[
            ("9007199254740990", "admitted"),
            ("9007199254740991", "admitted"),
            ("1", "stale 9007199254740991"),
        ],
    ),
    plain(
        "a claim shuts out older holders before the first write",
        &[("5", "admitted"), ("claim 6", "admitted"), ("5", "stale 6"), ("6", "admitted")],
    ),
    plain(
        "a claim can be repeated and can be too late",
        &[
            ("claim 6", "admitted"),
            ("claim 6", "admitted"),
            ("6", "admitted"),
            ("claim 6", "admitted"),
            ("claim 5", "stale 6"),
        ],
    ),
    plain(
        "a token of another lock does not count, however large",
        &[
            ("other 9", "wrong_scope"),
            ("5", "admitted"),
            ("other 9", "wrong_scope"),
            ("claim other 9", "wrong_scope"),
            ("5", "admitted"),
        ],
    ),
    plain(
        "a semaphore's grant does not count at a fence of the whole",
        &[("permit 0 9", "wrong_scope"), ("1", "admitted"), ("claim permit 0 9", "wrong_scope")],
    ),
    plain(
        "a shared grant is checked and never advances",
        &[
            ("shared 7", "admitted"),
            ("5", "admitted"),
            ("shared 7", "admitted"),
            ("8", "admitted"),
            ("shared 7", "stale 8"),
            ("8", "admitted"),
        ],
    ),
    plain(
        "a shared claim is checked and never advances",
        &[
            ("claim shared 7", "admitted"),
            ("5", "admitted"),
            ("8", "admitted"),
            ("claim shared 7", "stale 8"),
        ],
    ),
    plain(
        "a retried step is applied once",
        &[
            ("5.1", "admitted"),
            ("5.1", "already_applied"),
            ("5.2", "admitted"),
            ("5.1", "already_applied"),
            ("5.2", "already_applied"),
        ],
    ),
    plain(
        "a step waits for its turn",
        &[
            ("5.2", "out_of_order 1"),
            ("5.1", "admitted"),
            ("5.3", "out_of_order 2"),
            ("5.2", "admitted"),
            ("5.3", "admitted"),
        ],
    ),
    plain(
        "a new grant counts its steps anew and ends the old one's",
        &[
            ("5.1", "admitted"),
            ("6.2", "out_of_order 1"),
            ("6.1", "admitted"),
            ("5.2", "stale 6"),
            ("5.1", "stale 6"),
        ],
    ),
    plain(
        "steps after a claim begin at one",
        &[
            ("claim 5", "admitted"),
            ("5.2", "out_of_order 1"),
            ("5.1", "admitted"),
            ("claim 5", "admitted"),
            ("5.1", "already_applied"),
        ],
    ),
    plain(
        "writes without a number count as steps too",
        &[
            ("5", "admitted"),
            ("5.1", "already_applied"),
            ("5.2", "admitted"),
            ("5", "admitted"),
            ("5.4", "admitted"),
        ],
    ),
    strict(
        "strict: one write for each grant",
        &[("5", "admitted"), ("5", "stale 5"), ("4", "stale 5"), ("6", "admitted"), ("6", "stale 6")],
    ),
    strict(
        "strict: a claim is not the write",
        &[
            ("claim 5", "admitted"),
            ("claim 5", "admitted"),
            ("5", "admitted"),
            ("5", "stale 5"),
            ("claim 5", "admitted"),
            ("5", "stale 5"),
        ],
    ),
    strict(
        "strict: a retried step is known, a second step is one too many",
        &[("5.2", "out_of_order 1"), ("5.1", "admitted"), ("5.1", "already_applied"), ("5.2", "stale 5")],
    ),
    permits(
        "two holders of a semaphore do not fence each other out",
        &[
            ("permit 0 5", "admitted"),
            ("permit 1 9", "admitted"),
            ("permit 0 5", "admitted"),
            ("permit 1 9", "admitted"),
        ],
    ),
    permits(
        "the next holder of a permit fences out the one before",
        &[
            ("permit 0 5", "admitted"),
            ("permit 1 6", "admitted"),
            ("permit 0 7", "admitted"),
            ("permit 0 5", "stale 7"),
            ("permit 1 6", "admitted"),
        ],
    ),
    permits(
        "a claim of one permit leaves the others alone",
        &[
            ("claim permit 3 9", "admitted"),
            ("permit 3 5", "stale 9"),
            ("permit 2 5.1", "admitted"),
            ("permit 2 5.1", "already_applied"),
        ],
    ),
    permits(
        "an exclusive grant does not count at a fence of permits",
        &[("9", "wrong_scope"), ("shared 9", "wrong_scope")],
    ),
];

/// Runs the table.
///
/// # Panics
/// At the first answer that is not the one in the table, and when the lines are not those of the admitted writes.
pub async fn cases(protected: &impl Protected) {
    for case in CASES {
        let plain = Fence::of(&ResourceName::new(case.name).expect("a valid name"));
        if (case.fence)(plain).span() == Span::Whole || protected.keeps_permits() {
            run(protected, case).await;
        }
    }
}

async fn run(protected: &impl Protected, case: &Case) {
    let name = |part: &str| ResourceName::new(&format!("cases/{part}/{}", case.name)).expect("a valid name");
    let fence = (case.fence)(Fence::named(name("thing"), name("lock")));
    let mut expected = Vec::new();
    for (n, (text, wanted)) in case.acts.iter().enumerate() {
        let (act, line) = (Act::parse(&fence, text), format!("{n}: {text}"));
        let outcome = act.run(protected, &fence, &line).await;
        assert_eq!(answer(&outcome), *wanted, "case {:?}, act {line:?}", case.name);
        if outcome.is_ok() && act.writes() {
            expected.push(line);
        }
    }
    assert_eq!(protected.lines(&fence).await, expected, "case {:?}: lines", case.name);
}
