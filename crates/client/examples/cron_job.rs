//! A job that several machines start at the same time, and one does.
//!
//! `cargo run -p leasehold --example cron_job`
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

mod support;

use std::time::Duration;

use leasehold::{AcquireError, LeaseGuard, RunError};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (client, _server) = support::connect("cron").await?;
    let machines = (1..=3).map(|machine| {
        let client = client.clone();
        tokio::spawn(async move {
            let job = client.acquire("billing/close").no_wait().run(async |guard| {
                // No guard is given only to work that may run without the service, and no token once it is lost.
                let Some(Ok(token)) = guard.map(LeaseGuard::token) else { return };
                println!("machine {machine} closes the books, token {token:?}");
                // … the work, with the token on every write …
                tokio::time::sleep(Duration::from_millis(300)).await;
            });
            match job.await {
                Ok(()) => println!("machine {machine} is done"),
                Err(RunError::Acquire(AcquireError::NotAcquired(_))) => {
                    println!("machine {machine}: another does it")
                }
                Err(error) => println!("machine {machine}: {error}"),
            }
        })
    });
    for machine in machines.collect::<Vec<_>>() {
        machine.await?;
    }
    Ok(())
}
