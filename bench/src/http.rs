//! JSON over HTTP: Leasehold's acquire against an empty handler of axum under the same load, `leasehold bench`, against
//! Redis with as many connections, and at the steady rates that are promised.

use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use axum::extract::Path;
use axum::routing::{delete, post};
use axum::{Json, Router};
use leasehold_tests::binary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::Plan;
use crate::contestant::Contestant;
use crate::engines::Engines;
use crate::measured::Rounds;
use crate::summary::{Latency, Summary, median};
use crate::workload::Workload;

/// Connections of the comparison.
const CONNECTIONS: usize = 64;
/// Acquires a second of the steady load (G1).
const STEADY: u64 = 5_000;
const STEADY_SECONDS: u64 = 4;
const STEADY_RUNS: usize = 3;
/// What a run may take beyond its time.
const LATE_SECONDS: u64 = 60;

/// The figures of this file: cycles, with the latencies of acquires.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct HttpFigures {
    pub(crate) leasehold: Summary,
    pub(crate) empty: Summary,
    /// Redis, synced, with token, as in the contests: a connection for each client here too.
    pub(crate) redis: Summary,
    /// One connection, one call at a time.
    pub(crate) alone: Summary,
    /// At a steady rate, by who serves.
    pub(crate) steady: Vec<(Contestant, Summary)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    resource: String,
    lease_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    acquired: bool,
    resource: String,
    lease_id: String,
    fencing_token: u64,
}

/// Reads JSON, answers JSON, and does nothing.
async fn acquire(Json(asked): Json<Asked>) -> Json<Told> {
    Json(Told { acquired: true, resource: asked.resource, lease_id: asked.lease_id, fencing_token: 1 })
}

async fn release(Path(_): Path<String>) -> Json<Value> {
    Json(serde_json::json!({ "released": true }))
}

/// Measures.
pub(crate) async fn run(plan: &Plan, engines: &mut Engines) -> anyhow::Result<HttpFigures> {
    eprintln!("bench: HTTP");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let empty_url = format!("http://{}", listener.local_addr()?);
    let routes =
        Router::new().route("/v1/locks/acquire", post(acquire)).route("/v1/locks/{id}", delete(release));
    tokio::spawn(async { axum::serve(listener, routes).await });
    let url = engines.served(Contestant::Embedded)?.node.url();
    let seconds = plan.turn.as_secs().max(1);
    let (mut leasehold, mut empty, mut alone) = (Runs::default(), Runs::default(), Runs::default());
    let mut redis = Rounds::new();
    for _ in 0..plan.rounds {
        leasehold.add(&bench(&url, CONNECTIONS, seconds, None).await?)?;
        empty.add(&bench(&empty_url, CONNECTIONS, seconds, None).await?)?;
        alone.add(&bench(&url, 1, seconds, None).await?)?;
        let length = Duration::from_secs(seconds);
        redis.add(&engines.turn(Contestant::Redis, Workload::Cycle, CONNECTIONS, length).await?);
    }
    let mut steady = Vec::new();
    for who in [Contestant::Embedded, Contestant::OnPostgres, Contestant::OnEtcd3] {
        engines.end_all_but(&[who]);
        let url = engines.served(who)?.node.url();
        let mut runs = Runs::default();
        for _ in 0..STEADY_RUNS {
            runs.add(&bench(&url, CONNECTIONS, STEADY_SECONDS, Some(STEADY)).await?)?;
        }
        steady.push((who, runs.summary()));
    }
    let [leasehold, empty, alone] = [leasehold, empty, alone].map(|runs| runs.summary());
    Ok(HttpFigures { leasehold, empty, redis: redis.summary(), alone, steady })
}

/// What several runs told. Their histograms are not ours, so that a latency is the median of those of the runs.
#[derive(Default)]
struct Runs {
    rates: Vec<f64>,
    latencies: Vec<Latency>,
}

impl Runs {
    fn add(&mut self, told: &Value) -> anyhow::Result<()> {
        self.rates.push(told["perSecond"].as_f64().context("leasehold bench tells a rate")?);
        let latency = Latency::deserialize(&told["latencyMs"]).context("leasehold bench tells latencies")?;
        self.latencies.push(latency);
        Ok(())
    }

    fn summary(&self) -> Summary {
        let of = |part: fn(&Latency) -> f64| median(&self.latencies.iter().map(part).collect::<Vec<_>>());
        let latency = Latency {
            p50: of(|latency| latency.p50),
            p99: of(|latency| latency.p99),
            p999: of(|latency| latency.p999),
        };
        Summary { rates: self.rates.clone(), latency, ..Summary::default() }
    }
}

/// One run of `leasehold bench` against a server.
async fn bench(url: &str, clients: usize, seconds: u64, rate: Option<u64>) -> anyhow::Result<Value> {
    // A load that does not end is ended.
    let mut command = Command::new("timeout");
    command.arg((seconds + LATE_SECONDS).to_string()).arg(binary::path());
    command.args(["bench", "cycle", "--output", "json", "--server", url]);
    command.args(["--clients", &clients.to_string(), "--duration", &format!("{seconds}s")]);
    if let Some(rate) = rate {
        command.args(["--rate", &rate.to_string()]);
    }
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "leasehold bench against {url}: {errors}");
    serde_json::from_slice(&output.stdout).context("leasehold bench tells JSON")
}
