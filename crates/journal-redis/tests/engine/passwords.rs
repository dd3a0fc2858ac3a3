//! Passwords: of the one default user, as older set-ups have it, and of a user of the nodes' own.

use leasehold_journal::conformance::every_place_of_a_password;
use leasehold_journal_redis::{RedisConfig, RedisJournal};
use leasehold_testbed::{Setup, redis_with};

use crate::kit::PATIENT;

fn journal(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<RedisJournal, String> {
    let config = RedisConfig::from_url(url, "main", environment);
    config.map(|config| RedisJournal::new(config.call_within(PATIENT))).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_password_is_taken_from_the_url_a_file_or_the_environment() {
    let server = redis_with(&Setup::default().set("requirepass", "s3cret words"));
    let dir = tempfile::tempdir().unwrap();
    let url = server.url().replace("redis://", "redis://default@");
    every_place_of_a_password(&url, "s3cret words", dir.path(), journal).await;
}
