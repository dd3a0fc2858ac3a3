//! JSON over HTTP: Leasehold's acquire against an empty handler of axum under the same load, and the steady rates that
//! are promised. The load is `leasehold bench` in both cases.

use std::process::Command;

use anyhow::Context as _;
use axum::extract::Path;
use axum::routing::{delete, post};
use axum::{Json, Router};
use leasehold_tests::binary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::args::Plan;
use crate::engines::{Contestant, Engines};
use crate::measured::Rounds;

/// Connections of the comparison.
const CONNECTIONS: usize = 64;
/// Acquires a second of the steady load (G1).
const STEADY: u64 = 5_000;

/// The figures of this file.
pub(crate) struct HttpFigures {
    /// Cycles a second.
    pub(crate) leasehold: Rounds,
    pub(crate) empty: Rounds,
    /// One connection, one call at a time: cycles a second and the p50 of its acquires.
    pub(crate) alone: (f64, f64),
    /// The p99 of acquires at a steady rate, in milliseconds, by who serves.
    pub(crate) steady: Vec<(Contestant, f64, f64)>,
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
    let (mut leasehold, mut empty) = (Rounds::new(), Rounds::new());
    for _ in 0..plan.rounds {
        for (rounds, url) in [(&mut leasehold, &url), (&mut empty, &empty_url)] {
            rounds.add_rate(per_second(&bench(url, CONNECTIONS, seconds, None).await?)?);
        }
    }
    let one = bench(&url, 1, seconds, None).await?;
    let alone = (per_second(&one)?, latency(&one, "p50")?);
    let mut steady = Vec::new();
    for who in [Contestant::Embedded, Contestant::OnPostgres, Contestant::OnEtcd3] {
        let url = engines.served(who)?.node.url();
        let told = bench(&url, CONNECTIONS, seconds.max(3), Some(STEADY)).await?;
        steady.push((who, per_second(&told)?, latency(&told, "p99")?));
    }
    Ok(HttpFigures { leasehold, empty, alone, steady })
}

/// One run of `leasehold bench` against a server.
async fn bench(url: &str, clients: usize, seconds: u64, rate: Option<u64>) -> anyhow::Result<Value> {
    let mut command = Command::new(binary::path());
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

fn per_second(told: &Value) -> anyhow::Result<f64> {
    told["perSecond"].as_f64().context("leasehold bench tells a rate")
}

fn latency(told: &Value, quantile: &str) -> anyhow::Result<f64> {
    told["latencyMs"][quantile].as_f64().context("leasehold bench tells latencies")
}
