//! `check-history`: whether a recorded run kept every promise that it can show.

use std::path::Path;

use leasehold_history::{Checker, FileVerdict, Verdict, Violation, check_file};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

/// Judges the history in a file.
pub(crate) fn check_history(out: &mut Out, file: &Path, wide_clocks: bool) -> Result<Exit, Failure> {
    let mut checker = Checker::default();
    if wide_clocks {
        checker.without_drift_bound();
    }
    let verdict =
        check_file(file, checker).map_err(|error| Failure::Usage(format!("{}: {error}", file.display())))?;
    match verdict {
        // A run that was never recorded must not pass for one that kept its promises.
        FileVerdict::Held(verdict) if verdict.records == 0 => {
            Err(Failure::Usage(format!("{}: there is no record in it, so it shows nothing", file.display())))
        }
        FileVerdict::Held(verdict) => held(out, &verdict),
        FileVerdict::Broken { violation, excerpt } => broken(out, &violation, &excerpt),
    }
}

fn held(out: &mut Out, verdict: &Verdict) -> Result<Exit, Failure> {
    if out.format() == Format::Json {
        let examined: serde_json::Map<String, serde_json::Value> =
            verdict.examined.iter().map(|(promise, times)| (promise.to_string(), (*times).into())).collect();
        let (records, unknown) = (verdict.records, verdict.unknown);
        let line = json!({ "held": true, "records": records, "unknown": unknown, "examined": examined });
        out.line(&line.to_string())?;
        return Ok(Exit::Done);
    }
    let seen = verdict.examined.iter().filter(|(_, times)| *times > 0);
    let rows: Vec<Vec<String>> =
        seen.map(|(promise, times)| vec![promise.to_string(), times.to_string()]).collect();
    out.table(&["PROMISE", "EXAMINED"], &rows)?;
    let unseen = verdict.examined.iter().filter(|(_, times)| *times == 0);
    let unseen: Vec<String> = unseen.map(|(promise, _)| promise.to_string()).collect();
    if !unseen.is_empty() {
        out.line(&format!("not shown by this history: {}", unseen.join(" ")))?;
    }
    out.line(&format!(
        "{} records, {} attempts with an unknown outcome, every promise held",
        verdict.records, verdict.unknown
    ))?;
    Ok(Exit::Done)
}

fn broken(out: &mut Out, violation: &Violation, excerpt: &[(usize, String)]) -> Result<Exit, Failure> {
    if out.format() == Format::Json {
        let lines: Vec<usize> = excerpt.iter().map(|(line, _)| *line).collect();
        let (promise, detail) = (violation.promise.to_string(), &violation.detail);
        let line = json!({ "held": false, "promise": promise, "detail": detail, "lines": lines });
        out.line(&line.to_string())?;
        return Ok(Exit::Failed);
    }
    out.line(&violation.to_string())?;
    for (line, text) in excerpt {
        out.line(&format!("{line:>8} {text}"))?;
    }
    Ok(Exit::Failed)
}
