//! `advise`: which ttl fits this machine, this server, and the wanted recovery time (C7).

mod formula;
mod measure;

use std::time::Duration;

use serde::Serialize;

use crate::client::Server;
use crate::duration::{ms, shown};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use formula::{Advice, Need};
use measure::Measured;

/// What to measure, and what is wanted.
pub(crate) struct AdvisePlan {
    pub(crate) server: Server,
    pub(crate) measure_for: Duration,
    pub(crate) recovery: Duration,
    /// A ttl to judge instead of proposing one.
    pub(crate) ttl: Option<Duration>,
}

/// Measures pauses and renewals side by side, and shows the formula with the data in it.
pub(crate) async fn advise(out: &mut Out, plan: &AdvisePlan) -> Result<Exit, Failure> {
    let measured = measure::measure(&plan.server, plan.measure_for).await?;
    let need = Need {
        pause_ms: measured.pause.p999_ms,
        renewal_ms: measured.renewal.p99_ms,
        recovery_ms: ms(plan.recovery),
    };
    let advice = match plan.ttl {
        Some(ttl) => need.judge(ms(ttl)),
        None => need.advise(),
    };
    match out.format() {
        Format::Json => out.json(&Report::new(&measured, need, &advice))?,
        Format::Table => out.pairs(&lines(&measured, need, &advice))?,
    }
    Ok(if advice.ttl_ms().is_some() { Exit::Done } else { Exit::Failed })
}

fn lines(measured: &Measured, need: Need, advice: &Advice) -> Vec<(&'static str, String)> {
    let Measured { pause, renewal, took_ms } = measured;
    let (took, least) = (shown(*took_ms), need.least_ms());
    let (pause_ms, renewal_ms) = (shown(need.pause_ms), shown(need.renewal_ms));
    vec![
        (
            "pauses",
            format!(
                "p99.9 {pause_ms}, longest {}; {} looks in {took}",
                shown(pause.longest_ms),
                pause.samples
            ),
        ),
        (
            "renewals",
            format!(
                "p99 {renewal_ms}, longest {}; {} round trips",
                shown(renewal.longest_ms),
                renewal.samples
            ),
        ),
        ("formula", "ttl > p99.9 pause + p99 renewal + margin, with margin = min(2s, ttl/6)".into()),
        ("least", format!("{pause_ms} + {renewal_ms} + margin: ttl > {}", shown(least))),
        (
            "one third",
            format!(
                "renewals leave every ttl/3, so a pause just before one meets what is then left: ttl > {}",
                shown(need.comfortable_ms())
            ),
        ),
        (
            "most",
            format!(
                "recovery within {}: ttl * 1.01 <= {0}, ttl <= {}",
                shown(need.recovery_ms),
                shown(need.most_ms())
            ),
        ),
        ("advice", advice.to_string()),
        ("not seen", format!("pauses that come less often than once in {took}; measure longer with --for")),
    ]
}

/// The same for scripts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    #[serde(flatten)]
    measured: &'a Measured,
    least_ms: u64,
    comfortable_ms: u64,
    most_ms: u64,
    ttl_ms: Option<u64>,
    advice: String,
}

impl<'a> Report<'a> {
    fn new(measured: &'a Measured, need: Need, advice: &Advice) -> Self {
        Self {
            measured,
            least_ms: need.least_ms(),
            comfortable_ms: need.comfortable_ms(),
            most_ms: need.most_ms(),
            ttl_ms: advice.ttl_ms(),
            advice: advice.to_string(),
        }
    }
}
