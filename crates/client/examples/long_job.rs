//! A long job in steps, each behind a checkpoint; in the middle of it an operator takes the lock away.
//!
//! `cargo run -p leasehold --example long_job`
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{CheckpointError, LeaseGuard};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A server of our own, since this example does what only an operator may do.
    let server = TestServer::start().await;
    let guard = server.client().acquire("migration/orders").ttl(Duration::from_secs(5)).await?;
    let operator = async {
        tokio::time::sleep(Duration::from_millis(350)).await;
        println!("the operator takes the lock away");
        server.force_release("migration/orders").await;
    };
    let (outcome, ()) = tokio::join!(migrate(&guard), operator);
    match outcome {
        Ok(()) => println!("all steps are done"),
        Err(error) => println!("stopped: {error}"),
    }
    Ok(())
}

async fn migrate(guard: &LeaseGuard) -> Result<(), CheckpointError> {
    for step in 1..=10 {
        // Refuses when the step could outlast the lease; gives the token that the store checks.
        let token = guard.checkpoint(Duration::from_millis(100))?;
        println!("step {step} with token {token}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
