//! `leasehold bench` against the built server, and what that server asks of the machine for its figures.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::process::Stdio;

use serde_json::Value;
use support::{Serving, leasehold};
use tempfile::TempDir;

fn serving(data: &TempDir) -> Serving {
    Serving::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()])
}

/// From two machines, say, because one does not fill the server: neither takes the other's locks.
#[test]
fn two_at_a_time_measure_one_server_without_errors() {
    let data = TempDir::new().unwrap();
    let server = serving(&data);
    // The Rust client renews by itself, so that there is nothing to measure over a stream.
    let over_http = ["cycle", "handoff", "renew"].map(|workload| (workload, "http"));
    let over_a_stream = ["cycle", "handoff"].map(|workload| (workload, "grpc"));
    for (workload, transport) in over_http.into_iter().chain(over_a_stream) {
        let line =
            format!("bench {workload} --transport {transport} --clients 2 --duration 300ms --output json");
        let both = [(); 2].map(|()| {
            let args: Vec<_> = line.split(' ').chain(["--server", &server.url]).collect();
            leasehold(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        });
        for bench in both {
            let done = bench.wait_with_output().unwrap();
            assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
            let told: Value = serde_json::from_slice(&done.stdout).unwrap();
            assert_eq!((&told["workload"], &told["clients"]), (&workload.into(), &2.into()));
            assert!(told["perSecond"].as_f64().unwrap() > 0.0, "{told}");
            let latency = &told["latencyMs"];
            let [p50, p99, p999] = ["p50", "p99", "p999"].map(|which| latency[which].as_f64().unwrap());
            assert!(0.0 < p50 && p50 <= p99 && p99 <= p999, "{told}");
        }
    }
}

/// A cycle is more than what is timed: a call that waits through an outage may be a release, and is in no latency.
#[test]
fn a_person_is_told_what_the_latency_is_of() {
    let data = TempDir::new().unwrap();
    let server = serving(&data);
    for (workload, what) in [("cycle", "of each acquire: p50"), ("renew", "of each renewal: p50")] {
        let line = format!("bench {workload} --clients 1 --duration 100ms");
        let args: Vec<_> = line.split(' ').chain(["--server", &server.url]).collect();
        let done = leasehold(&args).output().unwrap();
        let told = String::from_utf8(done.stdout).unwrap();
        assert!(told.lines().any(|line| line.starts_with("latency") && line.contains(what)), "{told}");
    }
}

#[test]
fn the_server_has_its_memory_in_small_pages() {
    let data = TempDir::new().unwrap();
    let server = serving(&data);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let huge = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).expect("the kernel tells");
    assert_eq!(huge.trim(), "0");
}
