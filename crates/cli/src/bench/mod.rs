//! `bench`: load over HTTP keep-alive connections or over one gRPC session stream, and what a client would have seen.
//!
//! It is made to share a small machine with the server it measures: one thread, one request under way on each
//! connection, requests formatted into a reused buffer, answers searched rather than parsed.

mod connection;
mod load;
mod own_server;
mod report;
mod stream;

use std::time::Duration;

use crate::client::Server;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

pub(crate) use connection::Connection;

/// What each client does, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Acquire and release locks that nobody else wants
    #[default]
    Cycle,
    /// All wait for the same lock and release it at once
    Handoff,
    /// Renew one lock each
    Renew,
}

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::Handoff => "handoff",
            Self::Renew => "renew",
        }
    }

    /// What its latencies are those of.
    fn timed(self) -> &'static str {
        match self {
            Self::Cycle | Self::Handoff => "acquire",
            Self::Renew => "renewal",
        }
    }
}

/// How the clients reach the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum Transport {
    /// HTTP/1.1 and JSON, a connection for each client
    #[default]
    Http,
    /// The Rust client, all clients on one session stream
    Grpc,
}

/// What to measure.
pub(crate) struct BenchPlan {
    pub(crate) workload: Workload,
    pub(crate) transport: Transport,
    pub(crate) clients: usize,
    pub(crate) duration: Duration,
    /// Operations a second over all clients; `None`: as many as possible.
    pub(crate) rate: Option<u64>,
    /// `None`: one of its own.
    pub(crate) server: Option<Server>,
    pub(crate) format: Format,
}

/// Measures and reports.
pub(crate) async fn run(plan: BenchPlan) -> Result<Exit, Failure> {
    let own = match plan.server {
        Some(_) => None,
        None => Some(own_server::OwnServer::start().await?),
    };
    let server = own.as_ref().map(|own| own.server().clone()).or_else(|| plan.server.clone());
    let server = server.expect("there is a server, given or our own");
    let prefix = prefix();
    let measured = match plan.transport {
        Transport::Http => load::load(&plan, &server, &prefix).await?,
        Transport::Grpc => stream::load(&plan, &server, &prefix).await?,
    };
    report::report(&mut Out::new(plan.format), &plan, &measured)
}

/// The lock that is handed on. It is the same for all who measure hand-offs at the same time.
const HANDED_ON: &str = "bench/handoff";

/// What the other names of this run begin with: those who measure one server at the same time do not want each other's locks.
fn prefix() -> String {
    let [a, b, c, d, ..] = leasehold_types::ids::random();
    format!("bench/{:08x}", u32::from_be_bytes([a, b, c, d]))
}
