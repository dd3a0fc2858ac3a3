//! Where the examples find a server: at `LEASEHOLD_SERVER`, or else they bring one along inside their own process.

use leasehold::Client;
use leasehold::testing::TestServer;

/// A client, and the server that lives as long as this, if it is our own.
pub(crate) async fn connect(owner: &str) -> anyhow::Result<(Client, Option<TestServer>)> {
    let (url, own) = match std::env::var("LEASEHOLD_SERVER") {
        Ok(url) => (url, None),
        Err(_) => {
            let server = TestServer::start().await;
            println!("no LEASEHOLD_SERVER: a server of our own runs at {}", server.url());
            (server.url(), Some(server))
        }
    };
    Ok((Client::builder().endpoint(url).owner(owner).build()?, own))
}
