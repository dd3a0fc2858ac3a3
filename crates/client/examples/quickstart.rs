//! Acquire, look, release.
//!
//! `cargo run -p leasehold --example quickstart`
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

mod support;

use std::time::Duration;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (client, _server) = support::connect("quickstart").await?;
    let guard = client.acquire("reports/daily").ttl(Duration::from_secs(15)).await?;
    println!("held with token {}, surely for another {:.1?}", guard.token()?, guard.remaining());

    // Somebody else does not get it, and is told who has it.
    match client.acquire("reports/daily").no_wait().await {
        Ok(_) => anyhow::bail!("two holders at once"),
        Err(error) => println!("a second one: {error}"),
    }

    // Before each side effect: is there time for it? No round trip. The token goes along with the write.
    let token = guard.checkpoint(Duration::from_millis(100))?;
    println!("writing with token {token}");

    guard.release().await?;
    println!("released");
    Ok(())
}
