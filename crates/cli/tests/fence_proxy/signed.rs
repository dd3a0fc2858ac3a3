//! Signed tokens from the service to a fence: both are processes, and share nothing but a file of keys.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_tests::{Answer, Http, until};
use tempfile::TempDir;

use super::json;
use super::support::{Serving, leasehold, service};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with everything, and a service that nobody can change.
struct Place {
    directory: TempDir,
    upstream: String,
}

impl Place {
    /// With these keys, the first of which signs.
    fn new(keys: &[char]) -> Self {
        let place =
            Self { directory: tempfile::tempdir().unwrap(), upstream: format!("http://{}", service()) };
        place.write_keys(keys);
        let config = format!("signing_keys = {:?}\n", place.keys());
        fs::write(place.path().join("leasehold.toml"), config).unwrap();
        place
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> String {
        self.path().join("data").to_str().unwrap().to_owned()
    }

    fn keys(&self) -> PathBuf {
        self.path().join("keys")
    }

    /// Each key has its id's digit all over.
    fn write_keys(&self, ids: &[char]) {
        let lines: String = ids.iter().map(|id| format!("{id} {}\n", id.to_string().repeat(64))).collect();
        // At once: a process that was told to look must not find half of it.
        let draft = self.path().join("keys.new");
        fs::write(&draft, lines).unwrap();
        fs::rename(draft, self.keys()).unwrap();
    }

    fn service(&self) -> Serving {
        let config = self.path().join("leasehold.toml");
        let config = config.to_str().unwrap();
        Serving::start(&["serve", "--config", config, "--listen", "127.0.0.1:0", "--data", &self.data()])
    }

    fn fence(&self, more: &[&str]) -> Serving {
        let state = format!("sqlite:{}", self.path().join("fence.db").display());
        let keys = self.keys();
        let args = ["fence", "proxy", "--upstream", &self.upstream, "--lock", "/{year}=books/{year}"];
        let signed = ["--state", &state, "--listen", "127.0.0.1:0", "--keys", keys.to_str().unwrap()];
        Serving::start(&[&args[..], &signed, more].concat())
    }
}

/// Writes to a resource through the fence.
fn put(fence: &Serving, year: &str, token: &str) -> Answer {
    let address = fence.url.trim_start_matches("http://");
    let head = format!("PUT /{year} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1\r\n");
    let request = format!("{head}x-fencing-token: {token}\r\n\r\nx");
    Http::at(address.parse().unwrap()).patience(PATIENCE).raw(request.as_bytes()).unwrap()
}

fn is_refused(answer: &Answer, why: &str) -> bool {
    let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
    answer.status == 403 && answer.code() == "untrusted_token" && detail.contains(why)
}

/// The lease id and the signed token of a new grant.
fn acquire(service: &Serving, resource: &str) -> (String, String) {
    let grant = json(&["acquire", resource, "--ttl", "5m", "--server", &service.url, "--output", "json"]);
    (text(&grant["leaseId"]), text(&grant["signedToken"]))
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

fn release(service: &Serving, lease: &str) {
    assert!(leasehold(&["release", lease, "--server", &service.url]).output().unwrap().status.success());
}

#[test]
fn what_the_service_signed_counts_and_nothing_else() {
    let place = Place::new(&['a']);
    let (service, fence) = (place.service(), place.fence(&[]));
    let (lease, first) = acquire(&service, "books/2026");
    assert_eq!(put(&fence, "2026", &first).status, 200);
    assert!(is_refused(&put(&fence, "2026", "1"), "not a signed token"), "a number proves nothing");
    let (head, mac) = first.rsplit_once('.').unwrap();
    let forged = format!("{head}.{}", mac.chars().rev().collect::<String>());
    let answer = put(&fence, "2026", &forged);
    assert!(answer.status == 403 && answer.code() == "untrusted_token", "{answer:?}");
    let (_, other) = acquire(&service, "books/2027");
    assert_eq!(put(&fence, "2026", &other).code(), "wrong_scope", "a larger token of another lock");

    release(&service, &lease);
    let (_, second) = acquire(&service, "books/2026");
    assert_eq!(put(&fence, "2026", &second).status, 200);
    assert_eq!(put(&fence, "2026", &first).code(), "stale_token", "signed, and late all the same");
    let lenient = place.fence(&["--accept-plain"]);
    assert_eq!(put(&lenient, "2028", "1").status, 200, "while callers are moved to signed tokens");
    assert!(is_refused(&put(&lenient, "2028", &forged), ""));
    let foreign = place.fence(&["--tenant", "acme"]);
    assert!(is_refused(&put(&foreign, "2026", &second), "granted to tenant default"));
}

#[test]
fn keys_rotate_without_a_gap() {
    let place = Place::new(&['a']);
    let (service, fence) = (place.service(), place.fence(&[]));
    let (lease, old) = acquire(&service, "books/2026");
    assert!(old.starts_with("lh1.a."), "{old}");
    // Fences first, so that nothing is signed with a key that they do not know.
    place.write_keys(&['a', 'b']);
    fence.hang_up();
    place.write_keys(&['b', 'a']);
    service.hang_up();
    let renewed = || json(&["renew", &lease, "--server", &service.url, "--output", "json"]);
    let new = until("a token under the new key", PATIENCE, || {
        let signed = text(&renewed()["locks"][0]["signedToken"]);
        signed.starts_with("lh1.b.").then_some(signed)
    });
    until("the fence to know the new key", PATIENCE, || {
        (put(&fence, "2026", &new).status == 200).then_some(())
    });
    assert_eq!(put(&fence, "2026", &old).status, 200, "the old key still checks");
    let show = "echo $LEASEHOLD_SIGNED_TOKEN";
    let run = leasehold(&["run", "books/2027", "--server", &service.url, "--", "sh", "-c", show]).output();
    let shown = String::from_utf8(run.unwrap().stdout).unwrap();
    assert_eq!(put(&fence, "2027", shown.trim()).status, 200, "{shown}");

    place.write_keys(&['b']);
    fence.hang_up();
    until("the old key to be forgotten", PATIENCE, || {
        is_refused(&put(&fence, "2026", &old), "unknown key").then_some(())
    });
    assert_eq!(put(&fence, "2026", &new).status, 200);
}

#[test]
fn what_was_granted_before_a_recovery_does_not_count_after_it() {
    let place = Place::new(&['a']);
    let service = place.service();
    let (lease, before) = acquire(&service, "books/2026");
    service.kill();
    let recover =
        ["recover", "--data", &place.data(), "--actor", "ada", "--reason", "practice", "--output", "json"];
    assert_eq!(json(&recover)["generation"], 2);
    let (service, fence) = (place.service(), place.fence(&["--least-generation", "2"]));
    assert!(is_refused(&put(&fence, "2026", &before), "of generation 1 before 2"));
    let path = format!("/v1/locks/{lease}");
    let address = service.url.trim_start_matches("http://").parse().unwrap();
    let record = Http::at(address).patience(PATIENCE).get(&path).unwrap();
    assert_eq!(record.status, 200, "the lease lives on: {record:?}");
    assert!(record.json().get("signedToken").is_none(), "and is not passed off as one of this generation");
    let (_, after) = acquire(&service, "books/2027");
    assert_eq!(put(&fence, "2027", &after).status, 200);
}

#[test]
fn without_usable_keys_nothing_starts() {
    let place = Place::new(&['a']);
    fs::write(place.keys(), "a 12\n").unwrap();
    let config = place.path().join("leasehold.toml");
    let serve = leasehold(&["serve", "--config", config.to_str().unwrap(), "--data", &place.data()])
        .output()
        .unwrap();
    assert_eq!(serve.status.code(), Some(78), "{serve:?}");
    assert!(String::from_utf8_lossy(&serve.stderr).contains("signing_keys"), "{serve:?}");
    let keys = place.keys();
    let proxy = ["fence", "proxy", "--upstream", &place.upstream, "--lock", "/{y}=b/{y}", "--keys"];
    let proxy = leasehold(&proxy).arg(&keys).output().unwrap();
    assert_eq!(proxy.status.code(), Some(78), "{proxy:?}");
}
