//! Every alert of deploy/prometheus fires on the fault it is for: the pages of metrics of a real server, before and after
//! the fault, are given to the rules by `promtool`.
//!
//! A rule that looks at a rate or waits for minutes is given the same pages again and again, a minute apart, so that
//! nothing here has to wait for minutes.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod faults;
mod rules;

use std::process::Command;

use leasehold_tests::binary;

#[test]
fn the_written_series_fire_each_alert_and_none_without_a_reason() {
    let run = Command::new("promtool")
        .args(["test", "rules", "leasehold.tests.yml"])
        .current_dir(rules::folder())
        .output()
        .expect("`cargo xtask needs install` brings promtool");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let tests = std::fs::read_to_string(rules::folder().join("leasehold.tests.yml")).unwrap();
    for alert in rules::names() {
        let fires = tests.contains(&format!("        alertname: {alert}\n"));
        let stays = tests.contains(&format!("alertname: {alert}, exp_alerts: []"));
        assert!(fires && stays, "{alert} has no test of both kinds");
    }
}

#[test]
fn every_alert_has_its_causes_written_down_and_its_fault_tried() {
    let book = std::fs::read_to_string(binary::root().join("docs/operating/alerts.md")).unwrap();
    for alert in rules::names() {
        let short = alert.strip_prefix("Leasehold").expect("all of them begin so");
        assert!(
            book.contains(&format!("\n## {short}\n")),
            "docs/operating/alerts.md says nothing of {short}"
        );
        assert!(faults::TRIED.contains(&short), "no fault makes {alert} fire");
    }
}

#[test]
fn the_dashboard_shows_nothing_that_is_not_measured() {
    let board = std::fs::read_to_string(binary::root().join("deploy/grafana/leasehold.json")).unwrap();
    let read =
        |page: &str| std::fs::read_to_string(binary::root().join("docs/reference").join(page)).unwrap();
    let reference = read("metrics.md") + &read("fence-metrics.md");
    let board: serde_json::Value = serde_json::from_str(&board).unwrap();
    let targets =
        board["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let mut seen = 0;
    for target in targets {
        let expr = target["expr"].as_str().unwrap();
        let words = expr.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        for name in words.filter(|word| word.contains('_') && *word != "histogram_quantile") {
            let plain = ["_bucket", "_sum", "_count"]
                .iter()
                .fold(name, |name, end| name.strip_suffix(end).unwrap_or(name));
            assert!(reference.contains(&format!("`{plain}`")), "{name} is on the board and in no reference");
            seen += 1;
        }
    }
    assert!(seen > 20, "the board has lost its panels");
}
