//! Measures one writer: append latency, facts a second, and what a confirmation costs. For the examples of the journals.

use std::fmt;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::SmallNode;
use crate::{Confirmation, Journal};

/// Facts a batch: one, what 64 tasks that acquire and release make of one commit, and four times as many.
const FACTS: [usize; 3] = [1, 64, 256];
/// What a fact takes, on the average.
const FACT_BYTES: usize = 96;

/// One row of a measurement.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was done.
    pub what: String,
    /// How often in a second.
    pub per_second: f64,
    /// Facts in a second.
    pub facts_per_second: f64,
    /// Half were faster.
    pub p50: Duration,
    /// One in a hundred was slower.
    pub p99: Duration,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, per_second, facts_per_second, p50, p99 } = self;
        write!(f, "{what}: {per_second:.0}/s, {facts_per_second:.0} facts/s, p50 {p50:?}, p99 {p99:?}")
    }
}

/// Claims the journal and measures each kind of work for this long.
///
/// # Panics
/// Something is not committed.
pub async fn measure(journal: &dyn Journal, each: Duration) -> Vec<Row> {
    let mut node = SmallNode::open(journal).await;
    let mut rows = Vec::new();
    for facts in FACTS {
        let body = Bytes::from(vec![0x5A; facts * FACT_BYTES]);
        let what = format!("append of {facts} facts");
        rows.push(timed(what, facts, each, async || node.commit(body.clone()).await).await);
    }
    let confirm = async || assert_eq!(node.opened.writer.confirm().await, Confirmation::Current);
    rows.push(timed("confirm".to_owned(), 1, each, confirm).await);
    rows
}

async fn timed(what: String, facts: usize, each: Duration, mut work: impl AsyncFnMut()) -> Row {
    let mut times = Vec::new();
    let began = now();
    while began.elapsed() < each {
        let begun = now();
        work().await;
        times.push(begun.elapsed());
    }
    let per_second = times.len() as f64 / began.elapsed().as_secs_f64();
    times.sort_unstable();
    let at = |percent: usize| times.get(times.len() * percent / 100).copied().unwrap_or_default();
    Row { what, per_second, facts_per_second: per_second * facts as f64, p50: at(50), p99: at(99) }
}

#[expect(clippy::disallowed_methods, reason = "a measurement is of real time")]
fn now() -> Instant {
    Instant::now()
}
