//! Where the examples find a server: at `LEASEHOLD_SERVER`, or else they bring one along inside their own process.

use leasehold::testing::TestServer;
use leasehold::{Client, ClientBuilder};

/// A client, and the server that lives as long as this, if it is our own. Credential and certificates, where the server
/// wants some, come from the environment as for the command line.
pub(crate) async fn connect(owner: &str) -> anyhow::Result<(Client, Option<TestServer>)> {
    if std::env::var_os("LEASEHOLD_SERVER").is_some() {
        return Ok((ClientBuilder::from_env().owner(owner).build()?, None));
    }
    let server = TestServer::start().await;
    println!("no LEASEHOLD_SERVER: a server of our own runs at {}", server.url());
    Ok((Client::builder().endpoint(server.url()).owner(owner).build()?, Some(server)))
}
