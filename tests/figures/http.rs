//! Rate and latency over HTTP (G1).

use std::process::Command;

use leasehold_tests::binary;
use serde_json::Value;

/// Half of the promise of 15,000 cycles a second on two cores shared with the load.
const CYCLES_A_SECOND: f64 = 7_500.0;
/// Twice the promise of 5 ms at 5,000 acquires a second.
const P99_MS: f64 = 10.0;
/// Whatever else the machine does makes figures worse, never better: the best of a few runs is the one to judge.
const RUNS: usize = 15;

#[test]
fn uncontended_cycles_over_64_connections() {
    let cycles = |figures: &Value| figures["perSecond"].as_f64().unwrap();
    let best = bench_until("cycle --clients 64 --duration 4s", |figures| cycles(figures) >= CYCLES_A_SECOND);
    assert!(best, "less than {CYCLES_A_SECOND} cycles a second in each of {RUNS} runs");
}

#[test]
fn latency_at_a_steady_rate() {
    let good = |figures: &Value| {
        let (rate, p99) =
            (figures["perSecond"].as_f64().unwrap(), figures["latencyMs"]["p99"].as_f64().unwrap());
        rate > 4_500.0 && p99 < P99_MS
    };
    let best = bench_until("cycle --clients 64 --rate 5000 --duration 4s", good);
    assert!(best, "a p99 of {P99_MS} ms or more in each of {RUNS} runs");
}

/// Measures until a run is good.
fn bench_until(args: &str, good: impl Fn(&Value) -> bool) -> bool {
    let _alone = crate::alone();
    (0..RUNS).any(|_| good(&bench(args)))
}

fn bench(args: &str) -> Value {
    let args = args.split(' ').chain(["--own-server", "--output", "json"]);
    let output = Command::new(binary::path()).arg("bench").args(args).output().unwrap();
    let figures = crate::figures(&output);
    println!("{figures}");
    figures
}
