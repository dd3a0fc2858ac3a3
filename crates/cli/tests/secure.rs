//! Commands against a server that wants TLS and a credential.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use leasehold_tests::{free_port, until};
use rcgen::{CertificateParams, KeyPair};

/// For what takes a second on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A protected server, stopped when this is dropped.
struct Protected {
    process: Child,
    folder: tempfile::TempDir,
    url: String,
}

impl Protected {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key).unwrap();
        let (cert_file, key_file) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        std::fs::write(&cert_file, certificate.pem()).unwrap();
        std::fs::write(&key_file, key.serialize_pem()).unwrap();
        let port = free_port();
        let config = format!(
            "listen = \"127.0.0.1:{port}\"\nauth = true\n[tls]\ncert = {cert_file:?}\nkey = {key_file:?}\n"
        );
        std::fs::write(folder.path().join("leasehold.toml"), config).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(["serve", "--config", "leasehold.toml", "--data", "data"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, folder, url: format!("https://localhost:{port}") };
        until("the server to serve", PATIENCE, || server.admin(&["ls"]).status.success().then_some(()));
        server
    }

    fn path(&self, name: &str) -> String {
        Path::new(self.folder.path()).join(name).display().to_string()
    }

    /// A command with nothing but the server's address.
    fn anybody(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        command.args(args).env("LEASEHOLD_SERVER", &self.url).stdin(Stdio::null()).output().unwrap()
    }

    /// A command that trusts the server and shows a credential.
    fn known(&self, credential: &str, args: &[&str]) -> Output {
        let (ca, credential) = (self.path("cert.pem"), self.path(credential));
        self.anybody(&[&["--ca", &ca, "--credential-file", &credential], args].concat())
    }

    fn admin(&self, args: &[&str]) -> Output {
        self.known("data/admin-credential", args)
    }
}

impl Drop for Protected {
    fn drop(&mut self) {
        let _ = (self.process.kill(), self.process.wait());
    }
}

fn says(output: &Output) -> (i32, String) {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn commands_trust_the_server_and_show_who_they_are() {
    let server = Protected::start();
    let (code, said) = says(&server.anybody(&["ls"]));
    assert!(code == 69 && said.contains("certificate"), "{code}: {said}");
    let (code, said) = says(&server.anybody(&["--ca", &server.path("cert.pem"), "ls"]));
    assert!(code == 1 && said.contains("unauthenticated"), "{code}: {said}");

    // HTTP, and the session stream of the Rust client.
    let token = "echo $LEASEHOLD_FENCING_TOKEN";
    assert_eq!(says(&server.admin(&["run", "a", "--", "sh", "-c", token])), (0, "1\n".to_owned()));
    let observe = [&["elect", "--owner", "ada", "--value", "here", "jobs", "--"][..], &["true"]].concat();
    assert_eq!(says(&server.admin(&observe)).0, 0);

    let out = server.path("orders.key");
    let create = ["credential", "create", "orders", "--role", "client", "--scope", "orders/", "--out", &out];
    let (code, said) = says(&server.admin(&create));
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        says(&server.known("orders.key", &["run", "orders/1", "--", "echo", "mine"])),
        (0, "mine\n".into())
    );
    let (code, said) = says(&server.known("orders.key", &["run", "other", "--", "echo", "mine"]));
    assert!(code == 1 && said.contains("forbidden") && !said.contains("mine\n"), "{code}: {said}");
}
