//! The rules, and what they make of real pages.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use leasehold_tests::binary;
use tempfile::TempDir;

/// Minutes of the page before the fault.
const BEFORE: usize = 20;
/// Minutes of the pages after it: longer than any `for` of a rule, and than the hour that a lock may be held.
const AFTER: usize = 75;

/// Where the rules are.
pub(crate) fn folder() -> PathBuf {
    binary::root().join("deploy/prometheus")
}

/// The names of all alerts.
pub(crate) fn names() -> Vec<String> {
    let rules = std::fs::read_to_string(folder().join("leasehold.rules.yml")).unwrap();
    rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).map(str::to_owned).collect()
}

/// The samples of a page by series, as written.
fn samples(page: &str) -> BTreeMap<String, f64> {
    let lines = page.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect()
}

/// How the pages follow each other in time.
#[derive(Clone, Copy)]
pub(crate) enum Course {
    /// The first for a while, then the second.
    Step,
    /// What happened between them happens again every minute.
    Again,
}

/// Asserts that this alert fires some time after the fault, and did not fire before it.
pub(crate) fn assert_fires(alert: &str, before: &[&str], after: &[&str], course: Course) {
    let (before, after) = (samples(&before.concat()), samples(&after.concat()));
    let mut text = format!(
        "rule_files: ['{}']\nevaluation_interval: 1m\ntests:\n  - interval: 1m\n    input_series:\n",
        folder().join("leasehold.rules.yml").display()
    );
    for (series, value) in &after {
        let first = before.get(series).copied();
        let values = match (course, first) {
            (Course::Step, Some(first)) => format!("{first}x{} {value}x{AFTER}", BEFORE - 1),
            (Course::Step, None) => format!("_x{BEFORE} {value}x{AFTER}"),
            (Course::Again, first) => {
                let first = first.unwrap_or(0.0);
                format!("{first}x{} {first}+{}x{AFTER}", BEFORE - 1, value - first)
            }
        };
        writeln!(text, "      - {{ series: '{series}', values: '{values}' }}").unwrap();
    }
    let firing =
        format!("count_over_time(ALERTS{{alertname=\"Leasehold{alert}\",alertstate=\"firing\"}}[2h])");
    let expect = |at: usize, fires: bool| {
        format!(
            "      - {{ expr: 'count({firing}) or vector(0)', eval_time: {at}m, exp_samples: [{{ labels: '{{}}', value: {} }}] }}\n",
            u8::from(fires)
        )
    };
    text += "    promql_expr_test:\n";
    text += &expect(BEFORE - 1, false);
    text += &expect(BEFORE + AFTER - 1, true);
    let room = TempDir::new().unwrap();
    let file = room.path().join("fault.tests.yml");
    std::fs::write(&file, &text).unwrap();
    let run = Command::new("promtool").args(["test", "rules"]).arg(&file).output();
    let run = run.expect("`cargo xtask needs install` brings promtool");
    let told = [run.stdout, run.stderr].concat();
    assert!(run.status.success(), "{alert}: {}\n{text}", String::from_utf8_lossy(&told));
}
