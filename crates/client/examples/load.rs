//! How many durable acquire and release cycles a second one process gets through one session.
//!
//! `cargo run --release -p leasehold --example load -- [URL] [TASKS] [SECONDS]`, against a running server.
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold::Client;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| leasehold::DEFAULT_ENDPOINT.to_owned());
    let tasks: usize = args.next().map_or(Ok(64), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(5), |text| text.parse())?;
    let client = Client::builder().endpoint(url).owner("load").build()?;
    // The first acquire opens the session; it is not part of the figure.
    client.acquire("load/warm-up").await?.release().await?;

    let (cycles, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let running: Vec<_> = (0..tasks)
        .map(|task| tokio::spawn(cycle(client.clone(), task, Arc::clone(&cycles), Arc::clone(&stop))))
        .collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let (before, begun) = (cycles.load(Relaxed), tokio::time::Instant::now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (done, took) = (cycles.load(Relaxed) - before, begun.elapsed());
    stop.store(true, Relaxed);
    for task in running {
        task.await??;
    }
    println!("{tasks} tasks: {:.0} acquire + release cycles a second", done as f64 / took.as_secs_f64());
    Ok(())
}

async fn cycle(
    client: Client,
    task: usize,
    cycles: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<()> {
    let resource = format!("load/{task}");
    while !stop.load(Relaxed) {
        let guard = client.acquire(resource.as_str()).no_wait().await?;
        guard.release().await?;
        cycles.fetch_add(1, Relaxed);
    }
    Ok(())
}
