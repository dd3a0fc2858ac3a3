//! Three candidates, one leader at a time, and a follower that knows the term. The leader is told to shut down after a
//! while: it drains, releases, and the next one leads at once.
//!
//! `cargo run -p leasehold --example leader`
#![allow(clippy::print_stdout, reason = "an example speaks to the person who runs it")]

mod support;

use std::time::Duration;

use leasehold::{Client, ClientBuilder, LeaderChange, Leadership};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let (follower, server) = support::connect("follower").await?;
    let mut observer = follower.election("scheduler").observe();
    let following = tokio::spawn(async move {
        loop {
            match observer.next().await {
                LeaderChange::Leads(leader) => {
                    println!(
                        "follower: {} leads in term {}, at {:?}",
                        leader.owner, leader.term, leader.value
                    );
                }
                LeaderChange::Vacant { .. } => println!("follower: nobody leads"),
                change => println!("follower: {change:?}"),
            }
        }
    });
    let candidates = ["ada", "ben", "cleo"].map(|owner| {
        let server = server.as_ref().map(leasehold::testing::TestServer::url);
        tokio::spawn(candidate(owner, server))
    });
    for candidate in candidates {
        candidate.await??;
    }
    following.abort();
    Ok(())
}

async fn candidate(owner: &'static str, own_server: Option<String>) -> anyhow::Result<()> {
    let builder = match own_server {
        Some(url) => Client::builder().endpoint(url),
        None => ClientBuilder::from_env(),
    };
    let client = builder.owner(owner).build()?;
    let election = client.election("scheduler");
    let leadership = election.campaign().value(format!("{owner}.example:9000")).await?;
    // A service would wait for a signal here.
    let shutdown = tokio::time::sleep(Duration::from_millis(300));
    leadership.lead(shutdown, work).await?;
    println!("{owner} is drained and has resigned");
    Ok(())
}

/// The leader's work: one step after the other, until it is told to drain.
async fn work(leadership: &Leadership) {
    let draining = leadership.draining();
    while !draining.is_cancelled() {
        // Before each step: is there time for it? The term goes along with whatever is sent.
        let Ok(term) = leadership.guard().checkpoint(Duration::from_millis(100)) else { return };
        println!("a step in term {term}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
