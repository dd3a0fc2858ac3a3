//! TLS to the engine: only to the one whose certificate is trusted.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use leasehold_journal::{Journal, OpenError};
use leasehold_journal_postgres::{PostgresConfig, PostgresJournal};
use leasehold_testbed::{Setup, postgres_with};
use rcgen::{CertificateParams, KeyPair};

use crate::kit::{Node, claim};

/// A self-signed certificate for this name, and its key, as files that the engine may read.
fn certificate(dir: &Path, name: &str) -> (PathBuf, PathBuf) {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap().self_signed(&key).unwrap();
    let files = (dir.join(format!("{name}.crt")), dir.join(format!("{name}.key")));
    fs::write(&files.0, certificate.pem()).unwrap();
    fs::write(&files.1, key.serialize_pem()).unwrap();
    // Engines of a test that runs as root belong to nobody.
    let owner = fs::metadata("/proc/self").map(|own| std::os::unix::fs::MetadataExt::uid(&own)).unwrap();
    if owner == 0 {
        chown(&files.1, Some(65_534), Some(65_534)).unwrap();
    }
    fs::set_permissions(&files.1, Permissions::from_mode(0o600)).unwrap();
    files
}

fn journal(url: &str, trusted: &Path) -> PostgresJournal {
    let url = format!("{url}?sslmode=verify-full&sslrootcert={}", trusted.display());
    PostgresJournal::new(PostgresConfig::from_url(&url, "main", |_| None).unwrap()).unwrap()
}

#[tokio::test]
async fn only_a_trusted_engine_is_used() {
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
    let (crt, key) = certificate(dir.path(), "localhost");
    let (other, _) = certificate(dir.path(), "other");
    let setup = Setup::default().without_fsync().set("ssl", "on");
    let setup = setup.set("ssl_cert_file", crt.to_str().unwrap()).set("ssl_key_file", key.to_str().unwrap());
    let server = postgres_with(&setup);
    let by_name = server.url().replace("127.0.0.1", "localhost");

    let mut node = Node::open(&journal(&by_name, &crt)).await;
    node.commit("encrypted").await;
    let untrusted = journal(&by_name, &other).open(claim()).await;
    assert!(matches!(untrusted, Err(OpenError::Unavailable(_))), "{untrusted:?}");
    let wrong_name = journal(server.url(), &crt).open(claim()).await;
    assert!(matches!(wrong_name, Err(OpenError::Unavailable(_))), "{wrong_name:?}");
}
