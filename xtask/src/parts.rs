//! A row of parts, each timed and counted, with a plain summary at the end.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use crate::run::Line;
use crate::second_try;
use crate::tally::Tally;

/// What has been run so far.
pub(crate) struct Parts {
    rows: Vec<Row>,
}

struct Row {
    name: String,
    took: Duration,
    passed: u64,
    failed: u64,
    repeat: Vec<String>,
    not_run: Vec<String>,
    second_try: Vec<String>,
}

impl Parts {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { rows: Vec::new() }
    }

    /// Runs a part that passes or fails as a whole; it counts as one check. `repeat` is what a person types.
    pub(crate) fn check(&mut self, name: &str, line: &Line) -> bool {
        let began = begin(name, line);
        let success = line.run();
        let repeat = if success { Vec::new() } else { vec![line.shown()] };
        self.push(Row {
            name: name.into(),
            took: began.elapsed(),
            passed: success.into(),
            failed: (!success).into(),
            repeat,
            not_run: Vec::new(),
            second_try: Vec::new(),
        });
        success
    }

    /// Runs a part that consists of tests, and counts them. What fails is tried once more, by itself, where that may be.
    pub(crate) fn tests(&mut self, name: &str, line: &Line) -> bool {
        let began = begin(name, line);
        let (mut tally, mut success) = count(line);
        if let Some(names) = second_try::may_be_made(&tally, line) {
            let again = line.only_tests(&names);
            begin("a second try", &again);
            let (second, passed) = count(&again);
            success = second_try::excuses(&mut tally, &names, &second, passed);
        }
        let repeat = if success { Vec::new() } else { repeat_lines(&tally, line) };
        self.push(Row {
            name: name.into(),
            took: began.elapsed(),
            passed: tally.passed,
            failed: tally.failed,
            repeat,
            not_run: tally.not_run,
            second_try: tally.second_try,
        });
        success
    }

    /// Takes note of a part that cannot be run at all.
    pub(crate) fn impossible(&mut self, name: &str, why: String) {
        self.push(Row {
            name: name.into(),
            took: Duration::ZERO,
            passed: 0,
            failed: 1,
            repeat: vec![why],
            not_run: Vec::new(),
            second_try: Vec::new(),
        });
    }

    /// Prints the minutes, what failed and how to repeat it, and the summary line; gives the exit code.
    pub(crate) fn finish(self) -> ExitCode {
        println!("\n{:<24} {:>8} {:>8} {:>8}", "part", "minutes", "passed", "failed");
        for row in &self.rows {
            let minutes = row.took.as_secs_f64() / 60.0;
            println!("{:<24} {minutes:>8.2} {:>8} {:>8}", row.name, row.passed, row.failed);
        }
        for line in self.rows.iter().flat_map(|row| &row.not_run) {
            println!("\n{line}");
        }
        for test in self.rows.iter().flat_map(|row| &row.second_try) {
            println!("\nPASSED AT THE SECOND TRY ONLY: {test} (what it said at the first is above)");
        }
        for row in self.rows.iter().filter(|row| row.failed > 0) {
            println!("\n{} failed; to repeat:", row.name);
            row.repeat.iter().for_each(|line| println!("    {line}"));
        }
        let passed: u64 = self.rows.iter().map(|row| row.passed).sum();
        let failed: u64 = self.rows.iter().map(|row| row.failed).sum();
        println!("\n{passed} passed, {failed} failed");
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn push(&mut self, row: Row) {
        self.rows.push(row);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "measures how long a developer waits; nothing is decided from it"
)]
fn begin(name: &str, line: &Line) -> Instant {
    println!("\n== {name}: {}", line.shown());
    Instant::now()
}

fn count(line: &Line) -> (Tally, bool) {
    let mut tally = Tally::default();
    let success = line.run_reading(|text| tally.read(text));
    tally.close(success);
    (tally, success)
}

/// One command for each test program that failed, with the names of its tests in view.
fn repeat_lines(tally: &Tally, line: &Line) -> Vec<String> {
    let mut lines: Vec<String> = tally.again.iter().map(|args| format!("cargo test {args}")).collect();
    if lines.is_empty() {
        lines.push(line.shown());
    }
    lines.extend(tally.failures.iter().map(|name| format!("  failed: {name}")));
    lines
}
