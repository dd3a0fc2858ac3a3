//! Rate and latency over HTTP (G1).

use std::process::Command;

use leasehold_tests::binary;
use serde_json::Value;

/// Half of the promise of 15,000 cycles a second on two cores shared with the load.
const CYCLES_A_SECOND: f64 = 7_500.0;
/// Twice the promise of 5 ms at 5,000 acquires a second.
const P99_MS: f64 = 10.0;

#[test]
fn uncontended_cycles_over_64_connections() {
    let figures = bench("cycle --clients 64 --duration 5s");
    let per_second = figures["perSecond"].as_f64().unwrap();
    assert!(per_second >= CYCLES_A_SECOND, "{per_second} cycles a second, at least {CYCLES_A_SECOND}");
}

#[test]
fn latency_at_a_steady_rate() {
    let figures = bench("cycle --clients 64 --rate 5000 --duration 5s");
    let (rate, p99) = (figures["perSecond"].as_f64().unwrap(), figures["latencyMs"]["p99"].as_f64().unwrap());
    assert!(rate > 4_500.0, "{rate} a second of the 5,000 that were due");
    assert!(p99 < P99_MS, "p99 of {p99} ms, less than {P99_MS} ms");
}

fn bench(args: &str) -> Value {
    let _alone = crate::alone();
    let args = args.split(' ').chain(["--own-server", "--output", "json"]);
    let output = Command::new(binary::path()).arg("bench").args(args).output().unwrap();
    let (told, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}{errors}");
    println!("{}", told.trim());
    serde_json::from_str(&told).unwrap()
}
