//! Passwords of the scheme `digest`.

use leasehold_journal::Journal as _;
use leasehold_journal::conformance::{every_place_of_a_password, fresh_claim};
use leasehold_journal_zookeeper::{ZookeeperConfig, ZookeeperJournal};
use leasehold_testbed::zookeeper;

use crate::kit::PATIENT;

fn journal(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<ZookeeperJournal, String> {
    let config = ZookeeperConfig::from_url(url, "main", environment);
    config.map(|config| ZookeeperJournal::new(config.call_within(PATIENT))).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_password_is_taken_from_the_url_a_file_or_the_environment() {
    let server = zookeeper();
    let dir = tempfile::tempdir().unwrap();
    // Whoever founds the journal says who may use it.
    let founder = format!("zookeeper://node:s3cret%20words@{}", server.url());
    journal(&founder, &|_| None).unwrap().open(fresh_claim()).await.unwrap();
    let url = format!("zookeeper://node@{}", server.url());
    every_place_of_a_password(&url, "s3cret words", dir.path(), journal).await;
}
