//! Passwords, on a server that asks for them.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use leasehold_journal::conformance::every_place_of_a_password;
use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_testbed::{Server, Setup, postgres_with};
use tempfile::TempDir;

use crate::kit::{PATIENT, raw};

fn journal(url: &str, environment: &dyn Fn(&str) -> Option<String>) -> Result<PostgresJournal, String> {
    let config = PostgresConfig::from_url(url, "main", environment);
    let config = config.map(|config| config.statement_within(PATIENT));
    config.and_then(PostgresJournal::new).map_err(|error| error.to_string())
}

/// An engine that asks everybody but its superuser for a password, and the directory with the file that says so.
pub(crate) fn asking() -> (Server, TempDir) {
    let dir = tempfile::tempdir().unwrap();
    // The engine of a test that runs as root belongs to nobody.
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let rules = dir.path().join("pg_hba.conf");
    fs::write(&rules, "host all postgres 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n")
        .unwrap();
    fs::set_permissions(&rules, Permissions::from_mode(0o644)).unwrap();
    let setup = Setup::default().without_fsync().set("hba_file", rules.to_str().unwrap());
    (postgres_with(&setup), dir)
}

#[tokio::test]
async fn a_password_is_taken_from_the_url_a_file_or_the_environment() {
    let (server, dir) = asking();
    let role = "CREATE ROLE node LOGIN PASSWORD 's3cret words'; GRANT CREATE ON DATABASE postgres TO node";
    raw(server.url()).await.batch_execute(role).await.unwrap();
    let url = server.url().replace("postgres@", "node@");
    every_place_of_a_password(&url, "s3cret words", dir.path(), journal).await;
}
