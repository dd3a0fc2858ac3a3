//! Counting what test programs report.

/// How lines begin by which a test says that no second try can make it good: a promise of the service is broken, or a
/// property does not hold.
const BEYOND_EXCUSE: [&str; 2] = ["PROMISE BROKEN", "minimal failing input"];

/// What one run of `cargo test` said.
#[derive(Default, Debug, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Tests that passed.
    pub(crate) passed: u64,
    /// Tests that failed, and programs that ended without saying.
    pub(crate) failed: u64,
    /// Names of the failed ones.
    pub(crate) failures: Vec<String>,
    /// What tests said that they could not try on this machine.
    pub(crate) not_run: Vec<String>,
    /// Failures that are none after all: they passed when tried by themselves.
    pub(crate) second_try: Vec<String>,
    /// Whether a promise was seen broken, or a counterexample was found.
    pub(crate) beyond_excuse: bool,
    /// Whether the names of failed tests are being read.
    pub(crate) in_list: bool,
    /// How many there were before.
    pub(crate) before_list: usize,
    /// Arguments by which cargo says a failed program can be run again.
    pub(crate) again: Vec<String>,
}

impl Tally {
    /// Takes note of one line of output.
    pub(crate) fn read(&mut self, line: &str) {
        let listed = line.strip_prefix("    ").filter(|name| self.in_list && !name.starts_with([' ', '`']));
        let line = line.trim();
        self.beyond_excuse |= BEYOND_EXCUSE.iter().any(|mark| line.starts_with(mark));
        if line.starts_with("NOT RUN: ") {
            self.not_run.push(line.to_owned());
        } else if line == "failures:" {
            // It stands twice: before what the failed ones wrote, which may look like names, and before their names.
            if self.in_list {
                self.failures.truncate(self.before_list);
            }
            self.in_list = true;
            self.before_list = self.failures.len();
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.passed += count_before(counts, " passed");
            self.failed += count_before(counts, " failed");
            self.in_list = false;
        } else if let Some(name) = listed {
            self.failures.push(name.to_owned());
        } else if let Some(args) = line.split('`').nth(1).filter(|args| args.starts_with("-p ")) {
            self.again.push(args.to_owned());
        }
    }

    /// A run that failed without a failed test (a crash, a build error) still counts as one failure.
    pub(crate) fn close(&mut self, success: bool) {
        if !success && self.failed == 0 {
            self.failed = 1;
        }
    }
}

fn count_before(text: &str, word: &str) -> u64 {
    let Some(at) = text.find(word) else { return 0 };
    let digits = text[..at].rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Tally {
        let mut tally = Tally::default();
        lines.iter().for_each(|line| tally.read(line));
        tally
    }

    #[test]
    fn results_of_several_programs_are_added_up() {
        let tally = read(&[
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "test a::b ... FAILED",
            "failures:",
            "",
            "---- a::b stdout ----",
            "    written: by the test itself,",
            "failures:",
            "    a::b",
            "",
            "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s",
            "error: 1 target failed:",
            "    `-p leasehold-core --lib`",
        ]);
        assert_eq!((tally.passed, tally.failed), (15, 1));
        assert_eq!(tally.failures, ["a::b"]);
        assert_eq!(tally.again, ["-p leasehold-core --lib"]);
    }

    #[test]
    fn a_crash_without_a_result_line_is_a_failure() {
        let mut tally = read(&["error: test failed, to rerun pass `-p x --test y`"]);
        tally.close(false);
        assert_eq!((tally.passed, tally.failed), (0, 1));
        assert_eq!(tally.again, ["-p x --test y"]);
    }

    #[test]
    fn what_was_not_run_is_kept_in_view() {
        let tally = read(&["NOT RUN: partitions: no namespaces here", "test result: ok. 1 passed; 0 failed"]);
        assert_eq!(tally.not_run, ["NOT RUN: partitions: no namespaces here"]);
    }

    #[test]
    fn a_broken_promise_is_beyond_excuse() {
        assert!(read(&["PROMISE BROKEN: S5 is broken: two grants with token 7"]).beyond_excuse);
        assert!(read(&["minimal failing input: commands = ["]).beyond_excuse);
        assert!(!read(&["promised within 3s, measured [4s]"]).beyond_excuse);
    }

    #[test]
    fn a_green_run_stays_green() {
        let mut tally = read(&["test result: ok. 1 passed; 0 failed"]);
        tally.close(true);
        assert_eq!((tally.passed, tally.failed), (1, 0));
    }
}
