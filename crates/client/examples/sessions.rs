//! Keeps many sessions alive, so that what they cost the server can be seen in its CPU time.
//!
//! `cargo run --release -p leasehold --example sessions -- [URL] [SESSIONS] [SECONDS]`, against a running server.
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

use std::time::Duration;

use leasehold::Client;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let url = args.next().unwrap_or_else(|| leasehold::DEFAULT_ENDPOINT.to_owned());
    let sessions: usize = args.next().map_or(Ok(10_000), |text| text.parse())?;
    let seconds: u64 = args.next().map_or(Ok(60), |text| text.parse())?;
    let client =
        Client::builder().endpoint(url).owner("sessions").patience(Duration::from_secs(60)).build()?;
    let mut guards = Vec::new();
    for batch in (0..sessions).collect::<Vec<_>>().chunks(200) {
        let opening = batch.iter().map(|n| {
            let session = client.session(Duration::from_secs(15));
            tokio::spawn(session.acquire(format!("sessions/{n}")).no_wait().into_future())
        });
        for guard in opening.collect::<Vec<_>>() {
            guards.push(guard.await??);
        }
    }
    println!("{sessions} sessions are open, each with a lease; they are kept alive for {seconds} s");
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let lost = guards.iter().filter(|guard| guard.token().is_err()).count();
    println!("{lost} leases were lost");
    Ok(())
}
