//! What is told at the end.

use std::io::Write as _;

use serde_json::json;

use super::BenchPlan;
use super::load::Measured;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

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
        Format::Table => out.pairs(&[
            ("workload", format!("{}, {} clients", plan.workload.name(), plan.clients)),
            ("a second", format!("{per_second:.0}")),
            ("latency", format!("p50 {:.3} ms, p99 {:.3} ms, p99.9 {:.3} ms", ms(0.5), ms(0.99), ms(0.999))),
            ("errors", measured.errors.to_string()),
        ])?,
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
