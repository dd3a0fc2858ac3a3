//! What is told at the end.

use std::io::Write as _;

use hdrhistogram::Histogram;
use serde_json::json;

use super::BenchPlan;
use super::load::Measured;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

/// The longest bar of the histogram, in characters.
const BAR: usize = 40;

/// Prints the figures. Errors make the run a failure: a figure with refusals in it is no figure.
pub(super) fn report(out: &mut Out, plan: &BenchPlan, measured: &Measured) -> Result<Exit, Failure> {
    let per_second = measured.operations as f64 / measured.took.as_secs_f64();
    let ms = |quantile: f64| measured.latency_us.value_at_quantile(quantile) as f64 / 1_000.0;
    match out.format() {
        Format::Json => out.json(&json!({
            "workload": plan.workload.name(),
            "clients": plan.clients,
            "rate": plan.rate,
            "seconds": round(measured.took.as_secs_f64()),
            "operations": measured.operations,
            "errors": measured.errors,
            "perSecond": round(per_second),
            "latencyMs": { "p50": ms(0.5), "p99": ms(0.99), "p999": ms(0.999), "max": ms(1.0) },
        }))?,
        Format::Table => {
            let quantiles =
                format!("p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms", ms(0.5), ms(0.99), ms(0.999));
            let latency = format!("of each {}: {quantiles}", plan.workload.timed());
            out.pairs(&[
                ("workload", format!("{}, {} clients", plan.workload.name(), plan.clients)),
                ("a second", format!("{per_second:.0}")),
                ("latency", latency),
                ("errors", measured.errors.to_string()),
            ])?;
            for line in histogram(&measured.latency_us) {
                out.line(&line)?;
            }
        }
    }
    match &measured.first_error {
        None => Ok(Exit::Done),
        Some(failure) => {
            let _ = writeln!(
                std::io::stderr(),
                "leasehold: {} operations failed, the first: {failure}",
                measured.errors
            );
            Ok(Exit::Failed)
        }
    }
}

fn round(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// How many latencies lie in each doubling, from the first that has any to the last.
fn histogram(latency_us: &Histogram<u64>) -> Vec<String> {
    let mut doublings: Vec<u64> = Vec::new();
    for step in latency_us.iter_recorded() {
        let doubling = step.value_iterated_to().max(1).ilog2() as usize;
        doublings.resize(doublings.len().max(doubling + 1), 0);
        doublings[doubling] += step.count_since_last_iteration();
    }
    let most = doublings.iter().copied().max().unwrap_or(0).max(1);
    let all = latency_us.len().max(1) as f64;
    let line = |(doubling, &count): (usize, &u64)| {
        let below_ms = (1_u64 << (doubling + 1)) as f64 / 1_000.0;
        let share = count as f64 * 100.0 / all;
        // Whatever there is can be seen.
        let bar = "#".repeat(((count * BAR as u64).div_ceil(most)) as usize);
        format!("  < {below_ms:>9.3} ms {share:>6.2} % {bar}").trim_end().to_owned()
    };
    doublings.iter().enumerate().skip_while(|(_, count)| **count == 0).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_goes_from_the_first_to_the_last() {
        let mut latency = Histogram::<u64>::new_with_bounds(1, 1_000_000, 3).unwrap();
        assert!(histogram(&latency).is_empty());
        latency.record_n(300, 199).unwrap();
        latency.record(1_500).unwrap();
        let lines = histogram(&latency);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert_eq!(lines[0], format!("  <     0.512 ms  99.50 % {}", "#".repeat(BAR)));
        assert_eq!(lines[1], "  <     1.024 ms   0.00 %");
        assert_eq!(lines[2], "  <     2.048 ms   0.50 % #");
    }
}
