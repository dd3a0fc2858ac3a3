//! Certificates for engines that speak TLS, and for those who talk to them.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use rcgen::{CertificateParams, KeyPair};
use rustix::process::geteuid;
use tempfile::TempDir;

use crate::member::NOBODY;
use crate::server::text;

/// A self-signed certificate and its key, as files that engines may read. They go with it.
#[derive(Debug)]
pub struct Certificate {
    dir: TempDir,
}

impl Certificate {
    /// For a server of this name, or for a client.
    pub fn of(name: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("leasehold-certificate-").tempdir();
        let dir = dir.expect("the temporary directory can be written");
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).expect("the directory is ours");
        let key = KeyPair::generate().expect("there is randomness");
        let params = CertificateParams::new(vec![name.to_owned()]).expect("the name is one of a host");
        let certificate = params.self_signed(&key).expect("the key can sign");
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        let made = Self { dir };
        write(Path::new(&made.file()), &certificate, 0o644);
        write(Path::new(&made.key()), &key, 0o600);
        write(Path::new(&made.both()), &format!("{key}{certificate}"), 0o600);
        made
    }

    /// The file with the certificate.
    pub fn file(&self) -> String {
        text(&self.dir.path().join("tls.crt"))
    }

    /// The file with the key.
    pub fn key(&self) -> String {
        text(&self.dir.path().join("tls.key"))
    }

    /// A file with both.
    pub(crate) fn both(&self) -> String {
        text(&self.dir.path().join("tls.pem"))
    }
}

/// Engines of a test that runs as root belong to nobody, and keys to whoever uses them.
fn write(file: &Path, content: &str, mode: u32) {
    fs::write(file, content).expect("the directory is fresh");
    fs::set_permissions(file, Permissions::from_mode(mode)).expect("the file is ours");
    if geteuid().is_root() {
        chown(file, Some(NOBODY), Some(NOBODY)).expect("root may give a file away");
    }
}
