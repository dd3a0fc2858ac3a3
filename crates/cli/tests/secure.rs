//! Commands and the Rust client against a server that wants TLS, and a credential or a certificate.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold::{Client, Security};
use leasehold_tests::{free_port, until};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Runtime;

/// For what takes a second on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An authority whose certificates lie in one folder.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

impl Authority {
    /// Its own certificate is `ca.pem`.
    fn new(folder: &Path) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), issuer.pem()).unwrap();
        Self { issuer, folder: folder.to_owned() }
    }

    /// `NAME.pem` and `NAME.key`.
    fn issue(&self, name: &str) {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = certificate.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.folder.join(format!("{name}.pem")), certificate.pem()).unwrap();
        std::fs::write(self.folder.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
}

/// A protected server, stopped when this is dropped.
struct Protected {
    process: Child,
    folder: tempfile::TempDir,
    authority: Authority,
    url: String,
}

impl Protected {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path());
        ["localhost", "billing.example", "nobody.example"].iter().for_each(|name| authority.issue(name));
        let port = free_port();
        let tls = "cert = \"localhost.pem\"\nkey = \"localhost.key\"\nclient_ca = \"ca.pem\"\n";
        let config = format!("listen = \"127.0.0.1:{port}\"\nauth = true\n[tls]\n{tls}");
        std::fs::write(folder.path().join("leasehold.toml"), config).unwrap();
        let process = Command::new(env!("CARGO_BIN_EXE_leasehold"))
            .args(["serve", "--config", "leasehold.toml", "--data", "data"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, folder, authority, url: format!("https://localhost:{port}") };
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
        let (ca, credential) = (self.path("ca.pem"), self.path(credential));
        self.anybody(&[&["--ca", &ca, "--credential-file", &credential], args].concat())
    }

    /// A command that trusts the server and shows a certificate.
    fn certified(&self, name: &str, args: &[&str]) -> Output {
        let [ca, cert, key] =
            ["ca.pem", &format!("{name}.pem"), &format!("{name}.key")].map(|f| self.path(f));
        self.anybody(&[&["--ca", &ca, "--cert", &cert, "--key", &key], args].concat())
    }

    /// The Rust client, with a certificate.
    fn client(&self, name: &str) -> Client {
        let security = Security::new()
            .ca_file(self.path("ca.pem"))
            .identity_files(self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")));
        Client::builder().endpoint(&self.url).owner(name).security(security).build().unwrap()
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
    assert!(code == 69 && said.contains("certificate") && said.contains("--ca"), "{code}: {said}");
    let (code, said) = says(&server.anybody(&["--ca", &server.path("ca.pem"), "ls"]));
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

#[test]
fn an_address_with_the_wrong_scheme_is_told_with_the_right_one() {
    let run = ["run", "--wait", "1s", "a", "--", "true"];
    let server = Protected::start();
    let plain = server.url.replace("https", "http");
    for command in [&["ls"][..], &["acquire", "a"], &run] {
        let (code, said) = says(&server.anybody(&[&["--server", &plain], command].concat()));
        assert!(code == 69 && said.contains("a server with a certificate is https://"), "{code}: {said}");
    }

    // A server without TLS ends a connection that begins with it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let secure = format!("https://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    for command in [&["ls"][..], &["acquire", "a"], &run] {
        let (code, said) = says(&server.anybody(&[&["--server", &secure], command].concat()));
        assert!(code == 69 && said.contains("a server without a certificate is http://"), "{code}: {said}");
    }
}

#[test]
fn a_certificate_is_as_good_as_a_credential() {
    let server = Protected::start();
    let create = ["credential", "create", "billing", "--role", "client", "--san", "billing.example"];
    let (code, said) = says(&server.admin(&[&create[..], &["--scope", "billing/"]].concat()));
    assert_eq!(code, 0, "{said}");

    let acquire = ["acquire", "billing/close", "--output", "json"];
    let (code, said) = says(&server.certified("billing.example", &acquire));
    assert!(code == 0 && said.contains(r#""fencingToken":1"#), "{code}: {said}");
    let run = server.certified("billing.example", &["run", "billing/1", "--", "echo", "mine"]);
    assert_eq!(says(&run), (0, "mine\n".to_owned()));
    let (code, said) = says(&server.certified("billing.example", &["run", "other", "--", "echo", "mine"]));
    assert!(code == 1 && said.contains("forbidden"), "{code}: {said}");
    let (code, said) = says(&server.certified("nobody.example", &["run", "billing/1", "--", "echo", "mine"]));
    assert!(code == 1 && said.contains("unauthenticated"), "{code}: {said}");

    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let guard = server.client("billing.example").acquire("billing/2").await.unwrap();
        assert!(guard.token().unwrap().get() > 2);
        guard.release().await.unwrap();
        let refused = server.client("nobody.example").acquire("billing/2").await.unwrap_err();
        assert!(refused.to_string().contains("unauthenticated"), "{refused}");
    });
}

/// Longer than a rotation takes on any machine.
const TTL: Duration = Duration::from_secs(60);
const ROTATIONS: usize = 3;
/// Acquires and releases between two rotations, and after the last.
const CYCLES: u64 = 10;

impl Protected {
    /// Puts a new credential into the place of the old one, and only then revokes that.
    fn rotate_credential(&self) {
        let (present, next) = (self.path("web.key"), self.path("web.next"));
        let old = std::fs::read_to_string(&present).ok();
        let create = ["credential", "create", "web", "--role", "client", "--out", &next];
        let (code, said) = says(&self.admin(&create));
        assert_eq!(code, 0, "{said}");
        std::fs::rename(&next, &present).unwrap();
        if let Some(old) = old {
            let id = old.split('_').nth(1).unwrap();
            let (code, said) = says(&self.admin(&["credential", "revoke", id]));
            assert_eq!(code, 0, "{said}");
        }
    }

    /// Replaces the server's certificate, and tells it.
    fn rotate_certificate(&self) {
        self.authority.issue("localhost");
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::HUP).unwrap();
    }
}

#[test]
fn certificates_and_credentials_are_replaced_under_load_without_a_lost_lease() {
    let server = Protected::start();
    server.rotate_credential();
    let security = Security::new().ca_file(server.path("ca.pem")).credential_file(server.path("web.key"));
    let client = Client::builder().endpoint(&server.url).security(security).patience(PATIENCE);
    let client = client.build().unwrap();
    let (stop, cycles) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let runtime = Runtime::new().unwrap();
    let held: Vec<_> = (0..8)
        .map(|n| runtime.block_on(client.acquire(format!("held/{n}")).ttl(TTL).into_future()).unwrap())
        .collect();
    let tokens: Vec<_> = held.iter().map(|guard| guard.token().unwrap()).collect();
    let workers: Vec<_> = (0..4)
        .map(|n| {
            let (client, stop, cycles) = (client.clone(), Arc::clone(&stop), Arc::clone(&cycles));
            runtime.spawn(async move {
                while !stop.load(Relaxed) {
                    let guard = client.acquire(format!("work/{n}")).ttl(TTL).await.unwrap();
                    guard.release().await.unwrap();
                    cycles.fetch_add(1, Relaxed);
                }
            })
        })
        .collect();
    let go_on = || {
        let enough = cycles.load(Relaxed) + CYCLES;
        until("the work goes on", PATIENCE, || (cycles.load(Relaxed) >= enough).then_some(()));
    };
    go_on();
    for _ in 0..ROTATIONS {
        server.rotate_certificate();
        server.rotate_credential();
        go_on();
    }
    stop.store(true, Relaxed);
    runtime.block_on(async {
        for worker in workers {
            worker.await.unwrap();
        }
        for (guard, token) in held.into_iter().zip(tokens) {
            assert_eq!(guard.token().unwrap(), token, "held all the time");
            guard.release().await.unwrap();
        }
    });
}

#[test]
fn a_backup_needs_an_administrator_who_is_named_in_its_entry() {
    let server = Protected::start();
    let out = server.path("op.key");
    let create = ["credential", "create", "op", "--role", "operator", "--out", &out];
    let (code, said) = says(&server.admin(&create));
    assert_eq!(code, 0, "{said}");
    let (data, file) = (server.path("data"), server.path("one.backup"));
    let backup = ["backup", &file, "--data", &data, "--actor", "ada", "--reason", "nightly"];
    let (code, said) = says(&server.known("op.key", &backup));
    assert!(code == 1 && said.contains("forbidden"), "{code}: {said}");
    assert!(!Path::new(&file).exists(), "without a note there is no copy");
    let (code, said) = says(&server.admin(&backup));
    assert!(code == 0 && said.contains("audit entry"), "{code}: {said}");
    let audit = says(&server.admin(&["audit", "export"])).1;
    let entries: Vec<serde_json::Value> =
        audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let entry = entries.last().unwrap();
    assert_eq!((&entry["action"], &entry["actorId"]), (&"BACKUP".into(), &"ada".into()));
    assert_eq!(entry["identity"], "admin", "the principal of the credential: {entry}");
}
