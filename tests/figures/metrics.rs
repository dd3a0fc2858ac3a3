//! What counting costs: the same load on a server that counts and on one that does not, in turns.

use std::process::Command;
use std::time::Duration;

use leasehold_tests::{Server, binary, free_port};

use crate::{figures, median};

/// Turns of each at the most. Whatever else the machine does makes a turn dearer, never cheaper: the cheapest of each are
/// compared, and turns are added until the promise is seen to be kept. By hand (`LEASEHOLD_STRICT`) all of them are made,
/// and their medians are compared.
const TURNS: usize = 8;
/// The promise; `LEASEHOLD_STRICT=1` asserts it.
const PROMISED: f64 = 1.03;
/// What a machine that is busy all the time may make of it.
const BEARABLE: f64 = 1.5;

#[test]
fn metrics_cost_less_than_three_percent() {
    let _alone = crate::alone();
    let is_strict = std::env::var_os("LEASEHOLD_STRICT").is_some();
    let dir = tempfile::tempdir().unwrap();
    let start = |name: &str, counts: bool| {
        let config = dir.path().join(format!("{name}.toml"));
        std::fs::write(&config, format!("metrics = {counts}\nlog = \"warn\"\n")).unwrap();
        let more = ["--config", config.to_str().unwrap()];
        let mut server = Server::spawn_with(free_port(), &dir.path().join(name), &more);
        server.wait_ready();
        server
    };
    let (mut with, mut without) = (Side::new(start("with", true)), Side::new(start("without", false)));
    let mut ratio = f64::MAX;
    for turn in 1..=TURNS {
        // Each goes first as often as the other.
        let order = if turn % 2 == 0 { [&mut with, &mut without] } else { [&mut without, &mut with] };
        order.into_iter().for_each(Side::turn);
        println!("turn {turn}: {} with metrics; {} without", with.last(), without.last());
        ratio = if is_strict { with.median() / without.median() } else { with.least() / without.least() };
        // Two at the least: one may be luck.
        if !is_strict && turn > 1 && ratio < PROMISED {
            break;
        }
    }
    let (percent, most) = (|ratio: f64| (ratio - 1.0) * 100.0, if is_strict { PROMISED } else { BEARABLE });
    println!("metrics: {:+.1} % of the server's processor time for a cycle", percent(ratio));
    println!("metrics: {:+.1} % of throughput (median)", percent(with.throughput() / without.throughput()));
    assert!(ratio < most, "{ratio:.3} times as dear with metrics");
}

/// One of the two servers, and what was measured of it.
struct Side {
    server: Server,
    /// Processor time of the server for one cycle of acquire and release, in microseconds.
    micros: Vec<f64>,
    /// Cycles a second.
    rates: Vec<f64>,
}

impl Side {
    fn new(server: Server) -> Self {
        Self { server, micros: Vec::new(), rates: Vec::new() }
    }

    fn turn(&mut self) {
        let before = self.server.processor_time();
        let load = ["bench", "cycle", "--clients", "32", "--duration", "2s", "--output", "json"];
        let output = Command::new(binary::path())
            .args(load)
            .env("LEASEHOLD_SERVER", self.server.url())
            .output()
            .unwrap();
        let figures = figures(&output);
        let spent: Duration = self.server.processor_time() - before;
        self.micros.push(spent.as_secs_f64() * 1e6 / figures["operations"].as_f64().unwrap());
        self.rates.push(figures["perSecond"].as_f64().unwrap());
    }

    fn last(&self) -> String {
        let (micros, rate) = (self.micros.last().unwrap(), self.rates.last().unwrap());
        format!("{micros:.2} µs of processor a cycle, {rate:.0} cycles a second")
    }

    fn least(&self) -> f64 {
        self.micros.iter().copied().fold(f64::MAX, f64::min)
    }

    fn median(&self) -> f64 {
        median(&self.micros)
    }

    fn throughput(&self) -> f64 {
        median(&self.rates)
    }
}
