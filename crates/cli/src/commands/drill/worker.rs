//! A worker of the drill: a process of its own, since a process is what can be stopped. It takes the lock with the Rust
//! client, as any program would, and then does what it is told, a line at a time.

use std::io::Write as _;
use std::time::Duration;

use leasehold::{AcquireError, LeaseGuard};
use leasehold_fence::Grant;
use leasehold_types::{FencingToken, ResourceName};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines, Stdin};

use super::protected::{self, Place, Protected, Written};
use super::relay;
use crate::client::Servers;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where a worker finds its [`WorkerPlan`]: in the environment, since addresses may have secrets in them.
pub(super) const PLAN: &str = "LEASEHOLD_DRILL_WORKER";
/// How long a worker tries to reach the lock service.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a worker is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum WorkerPlan {
    /// Holds the lock and writes.
    Holder {
        /// The lock service.
        servers: Vec<String>,
        /// Who it is, for people.
        owner: String,
        /// The lock.
        resource: String,
        /// How long its lease lives without a renewal.
        ttl_ms: u64,
        /// What it writes.
        place: Place,
    },
    /// Writes on behalf of others, who reach it over the network.
    Relay {
        /// What it writes.
        place: Place,
    },
}

/// What a worker is told, one JSON value a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Ask the guard whether the lease is held.
    Check,
    /// Write this, with the token of the grant, without asking the guard again.
    Write(String),
    /// Give the lock back and end.
    Release,
}

/// What a worker tells, one JSON value a line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Told {
    /// It holds the lock.
    Acquired { token: u64 },
    /// Whether it held the lock at the check.
    Checked { held: bool },
    /// What came of a write.
    Wrote(Written),
    /// It has given the lock back.
    Released,
    /// It serves others at this address.
    Serves { address: std::net::SocketAddr },
    /// It cannot go on.
    Failed { why: String },
}

/// Is a worker until it is told to end, or the drill has ended.
pub(crate) async fn work(access: &Servers) -> Result<Exit, Failure> {
    // Stopped or not, it must not outlive the drill.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    match worked(access).await {
        Ok(()) => Ok(Exit::Done),
        Err(failure) => {
            tell(&Told::Failed { why: failure.to_string() })?;
            Ok(Exit::Failed)
        }
    }
}

async fn worked(access: &Servers) -> Result<(), Failure> {
    let alone = || Failure::Usage("drill-worker is started by drill alone".into());
    let plan = std::env::var(PLAN).map_err(|_| alone())?;
    match serde_json::from_str(&plan).map_err(|_| alone())? {
        WorkerPlan::Relay { place } => relay::serve(&place).await,
        WorkerPlan::Holder { servers, owner, resource, ttl_ms, place } => {
            let mut builder = leasehold::Client::builder()
                .owner(owner)
                .patience(PATIENCE)
                .security(access.first().security().clone());
            for server in servers {
                builder = builder.endpoint(server);
            }
            let client = builder.build().map_err(|error| Failure::Usage(error.to_string()))?;
            let mut orders = BufReader::new(tokio::io::stdin()).lines();
            hold(&client, &resource, Duration::from_millis(ttl_ms), &place, &mut orders).await
        }
    }
}

async fn hold(
    client: &leasehold::Client,
    resource: &str,
    ttl: Duration,
    place: &Place,
    orders: &mut Lines<BufReader<Stdin>>,
) -> Result<(), Failure> {
    // Connected before the lease begins: a slow connection must not eat it.
    let mut protected = protected::open(place).await?;
    let (guard, token) = acquire(client, resource, ttl).await?;
    tell(&Told::Acquired { token: token.get() })?;
    obey(guard, resource, token, protected.as_mut(), orders).await
}

/// Acquires until the lease is held: on a busy machine a short one may end before it is seen.
async fn acquire(
    client: &leasehold::Client,
    resource: &str,
    ttl: Duration,
) -> Result<(LeaseGuard, FencingToken), Failure> {
    loop {
        match client.acquire(resource).ttl(ttl).await {
            Ok(guard) => {
                if let Ok(token) = guard.token() {
                    return Ok((guard, token));
                }
            }
            Err(AcquireError::Lost(_)) => {}
            Err(error) => {
                return Err(Failure::Failed(format!("the lock on {resource} was not acquired: {error}")));
            }
        }
    }
}

async fn obey(
    guard: LeaseGuard,
    resource: &str,
    token: FencingToken,
    protected: &mut dyn Protected,
    orders: &mut Lines<BufReader<Stdin>>,
) -> Result<(), Failure> {
    let resource = ResourceName::new(resource).map_err(|error| Failure::Usage(error.to_string()))?;
    let grant = Grant::exclusive(resource, token);
    // The end of the orders is the end of the drill.
    while let Ok(Some(line)) = orders.next_line().await {
        let order = serde_json::from_str(&line).map_err(|error| Failure::Usage(error.to_string()))?;
        match order {
            Order::Check => tell(&Told::Checked { held: guard.token().is_ok() })?,
            Order::Write(text) => tell(&Told::Wrote(protected.write(&grant, &text).await?))?,
            Order::Release => {
                drop(guard.release().await);
                return tell(&Told::Released);
            }
        }
    }
    Ok(())
}

/// One line to the drill.
pub(super) fn tell(told: &Told) -> Result<(), Failure> {
    let mut line = serde_json::to_vec(told).expect("words and numbers");
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(&line).and_then(|()| stdout.flush()).map_err(Failure::output)
}
