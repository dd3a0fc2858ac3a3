//! A failed test is tried once more, by itself: on a machine that is shared, a wait can run out and a drill can see too
//! little without anything being wrong. It stays in view: the summary names every test that needed it.
//!
//! A broken promise is not excused by luck the second time, nor is a property with a counterexample, nor a test program
//! that crashed; and drills run by hand are strict.

use crate::run::Line;
use crate::tally::Tally;

/// More failures than this are no accident.
const MOST: usize = 3;

/// The tests to try again, if there are any and a second try could mean something.
pub(crate) fn may_be_made(tally: &Tally, line: &Line) -> Option<Vec<String>> {
    let mut names = tally.failures.clone();
    let all_are_known = names.len() as u64 == tally.failed;
    names.sort_unstable();
    names.dedup();
    let few = !names.is_empty() && names.len() <= MOST;
    (few && all_are_known && !tally.beyond_excuse && !line.sets("LEASEHOLD_STRICT")).then_some(names)
}

/// Takes what came of the second try into the count of the first; whether all is well now.
pub(crate) fn excuses(tally: &mut Tally, names: &[String], second: &Tally, passed: bool) -> bool {
    let all_ran = second.passed >= names.len() as u64;
    let excused = passed && all_ran && !second.beyond_excuse;
    if excused {
        tally.passed += tally.failed;
        tally.failed = 0;
        tally.second_try.extend_from_slice(names);
    }
    excused
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(failures: &[&str]) -> Tally {
        let failures: Vec<String> = failures.iter().map(|name| (*name).to_owned()).collect();
        Tally { passed: 9, failed: failures.len() as u64, failures, ..Tally::default() }
    }

    fn line() -> Line {
        Line::cargo("test")
    }

    #[test]
    fn a_few_failures_are_tried_again() {
        assert_eq!(may_be_made(&first(&["b", "a"]), &line()), Some(vec!["a".into(), "b".into()]));
    }

    #[test]
    fn many_failures_a_crash_a_broken_promise_and_strict_runs_are_not() {
        assert_eq!(may_be_made(&first(&[]), &line()), None);
        assert_eq!(may_be_made(&first(&["a", "b", "c", "d"]), &line()), None);
        let crashed = Tally { failed: 2, ..first(&["a"]) };
        assert_eq!(may_be_made(&crashed, &line()), None);
        let broken = Tally { beyond_excuse: true, ..first(&["a"]) };
        assert_eq!(may_be_made(&broken, &line()), None);
        assert_eq!(may_be_made(&first(&["a"]), &line().env("LEASEHOLD_STRICT", "1")), None);
    }

    #[test]
    fn what_passes_then_is_counted_and_named() {
        let (mut tally, names) = (first(&["a"]), ["a".to_owned()]);
        let second = Tally { passed: 1, ..Tally::default() };
        assert!(excuses(&mut tally, &names, &second, true));
        assert_eq!((tally.passed, tally.failed), (10, 0));
        assert_eq!(tally.second_try, ["a"]);
    }

    #[test]
    fn what_fails_again_or_did_not_run_stays_failed() {
        let names = ["a".to_owned()];
        for (second, passed) in [(first(&["a"]), false), (Tally::default(), true)] {
            let mut tally = first(&["a"]);
            assert!(!excuses(&mut tally, &names, &second, passed));
            assert_eq!(tally.failed, 1);
        }
    }
}
