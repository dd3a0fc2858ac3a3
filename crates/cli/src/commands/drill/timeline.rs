//! What happened, as it happens: a line each for people, all of it at the end for scripts.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::output::{Format, Out};

/// Who did something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Who {
    /// The drill itself.
    Drill,
    /// The holder that becomes a zombie.
    WorkerA,
    /// The successor.
    WorkerB,
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Drill => "drill",
            Self::WorkerA => "worker A",
            Self::WorkerB => "worker B",
        })
    }
}

/// One line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    at_ms: u64,
    who: Who,
    /// A stable word.
    event: &'static str,
    /// For people.
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_token: Option<u64>,
}

/// The lines so far.
pub(super) struct Timeline<'a> {
    out: &'a mut Out,
    began: Instant,
    entries: Vec<Entry>,
}

impl<'a> Timeline<'a> {
    /// Begins now. The heading is for people.
    pub(super) fn begin(out: &'a mut Out, heading: &str) -> Result<Self, Failure> {
        if out.format() == Format::Table {
            out.line(heading)?;
            out.line("")?;
        }
        Ok(Self { out, began: Instant::now(), entries: Vec::new() })
    }

    /// Something happened.
    pub(super) fn add(
        &mut self,
        who: Who,
        event: &'static str,
        detail: impl Into<String>,
    ) -> Result<(), Failure> {
        self.push(who, event, detail.into(), None)
    }

    /// Something happened with a token.
    pub(super) fn with_token(
        &mut self,
        who: Who,
        event: &'static str,
        token: u64,
        detail: impl Into<String>,
    ) -> Result<(), Failure> {
        self.push(who, event, detail.into(), Some(token))
    }

    fn push(
        &mut self,
        who: Who,
        event: &'static str,
        detail: String,
        token: Option<u64>,
    ) -> Result<(), Failure> {
        let at = self.began.elapsed();
        if self.out.format() == Format::Table {
            self.out.line(&format!("{:>7}  {who:<8}  {detail}", seconds(at)))?;
        }
        let at_ms = u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
        self.entries.push(Entry { at_ms, who, event, detail, fencing_token: token });
        Ok(())
    }

    /// The last word: a line for people, everything for scripts.
    pub(super) fn end(self, told: &str, mut report: serde_json::Value) -> Result<(), Failure> {
        if self.out.format() == Format::Table {
            self.out.line("")?;
            return self.out.line(told);
        }
        report["timeline"] = serde_json::to_value(&self.entries).expect("words and numbers");
        self.out.json(&report)
    }
}

fn seconds(at: Duration) -> String {
    format!("{:.2}s", at.as_secs_f64())
}
