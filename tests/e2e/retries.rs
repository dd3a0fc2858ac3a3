//! F11: a proxy loses half of all answers, and clients ask again until they have one. Everything happens exactly once:
//! whoever asks again is told the same, and as many grants and audit entries exist as were wanted.
//!
//! `cargo xtask drill retries CALLS` runs it for longer.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_history::{Answer as Recorded, Call};
use leasehold_testbed::{Fault, Proxy};
use leasehold_tests::{Answer, Http, Seed, Server, Story, id};
use serde_json::{Value, json};

const CALLS: u64 = 5_000;
const CLIENTS: u64 = 12;
const TTL_MS: u64 = 600_000;
/// Half of the answers are lost: nobody is so unlucky.
const MOST_ATTEMPTS: usize = 200;

/// One client with what it asks through the proxy.
struct Client<'a> {
    name: String,
    http: Http,
    story: &'a Story,
    /// Attempts that were made, by all clients.
    attempts: &'a AtomicU64,
}

#[test]
fn what_is_asked_until_it_is_answered_happens_once() {
    let seed = Seed::from_env(1_414);
    let calls: u64 = std::env::var("LEASEHOLD_CALLS").map_or(CALLS, |text| text.parse().unwrap());
    println!("to repeat: LEASEHOLD_SEED={} cargo xtask drill retries {calls}", seed.number());
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let proxy = Proxy::before(([127, 0, 0, 1], server.port()).into());
    let (story, attempts) = (Story::begin("retries"), AtomicU64::new(0));
    let before = server.http().acquire("before", &seed.part(1).uuid(), TTL_MS).unwrap().token();
    proxy.by_chance(seed.part(2), 2, vec![Fault::LoseAnswer, Fault::CutAfter]);
    let each = calls.div_ceil(CLIENTS);
    let (mut tokens, mut entries) = (BTreeSet::new(), BTreeSet::new());
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let (name, http) = (format!("c{number}"), Http::at(proxy.address()));
                let mut client = Client { name, http, story: &story, attempts: &attempts };
                let seed = seed.part(100 + number);
                scope.spawn(move || client.work(each, seed))
            })
            .collect();
        for client in clients {
            let (granted, audited) = client.join().unwrap();
            for token in granted {
                assert!(tokens.insert(token), "token {token} was told for two grants");
            }
            for entry in audited {
                assert!(entries.insert(entry), "audit entry {entry} was told for two force-releases");
            }
        }
    });
    let after = server.http().acquire("after", &seed.part(3).uuid(), TTL_MS).unwrap().token();
    assert_eq!(after - before - 1, tokens.len() as u64, "one token was used for each grant that was told");
    let last = entries.last().copied().unwrap_or(0);
    assert_eq!(last, entries.len() as u64, "one audit entry for each force-release that was told");
    assert_eq!(server.http().held("once/").unwrap().len(), 0, "all of it was given back, or taken away");
    let (attempts, lost) = (attempts.into_inner(), proxy.done().values().sum::<u64>());
    assert!(3 * lost > attempts, "of {attempts} answers only {lost} were lost");
    println!("{calls} calls, {attempts} attempts, {lost} answers lost, {} grants, each once", tokens.len());
    story.judge();
}

impl Client<'_> {
    /// Takes, renews and gives back until so many calls were answered; the tokens and audit entries that it was told.
    fn work(&mut self, calls: u64, mut seed: Seed) -> (Vec<u64>, Vec<u64>) {
        let (mut tokens, mut entries) = (Vec::new(), Vec::new());
        let mut answered = 0;
        for round in 0.. {
            if answered >= calls {
                break;
            }
            answered += 3;
            let resource = format!("once/{}/{round}", self.name);
            let (lease, chosen, key) = (seed.uuid(), seed.below(2) == 0, seed.uuid());
            let (token, known) = self.acquire(&resource, &lease, chosen, &key);
            tokens.push(token);
            self.renew(&lease, &known);
            if seed.below(8) == 0 {
                entries.push(self.force(&resource, &seed.uuid()));
            } else {
                self.release(&lease, &known, token);
            }
        }
        (tokens, entries)
    }

    /// The token, and the lease id by which the server knows it: one that was chosen, or one that goes with the key.
    fn acquire(&mut self, resource: &str, lease: &str, chosen: bool, key: &str) -> (u64, String) {
        let mut body = json!({ "resource": resource, "ownerId": self.name, "ttlMs": TTL_MS });
        if chosen {
            body["leaseId"] = lease.into();
        }
        let call = Call::Acquire { resource: resource.into(), lease: id(lease), session: None };
        let answer = self.insist(call, "POST", "/v1/locks/acquire", Some(key), &body, |body| {
            Recorded::Granted { token: number(body, "fencingToken"), ttl_ms: number(body, "ttlMs") }
        });
        assert_eq!(answer["acquired"], true, "nobody else wants {resource}: {answer}");
        let known = answer["leaseId"].as_str().unwrap().to_owned();
        assert!(!chosen || known == lease, "{answer}");
        (number(&answer, "fencingToken"), known)
    }

    fn renew(&mut self, lease: &str, known: &str) {
        let (call, path) = (Call::Renew { life: id(lease) }, format!("/v1/locks/{known}/renew"));
        self.insist(call, "POST", &path, None, &json!({}), |body| Recorded::Renewed {
            ttl_ms: number(body, "ttlMs"),
        });
    }

    fn release(&mut self, lease: &str, known: &str, token: u64) {
        let (call, path) = (Call::Release { lease: id(lease) }, format!("/v1/locks/{known}"));
        let answer = self.insist(call, "DELETE", &path, None, &Value::Null, |body| Recorded::Released {
            token: number(body, "fencingToken"),
        });
        assert_eq!(number(&answer, "fencingToken"), token);
    }

    fn force(&mut self, resource: &str, key: &str) -> u64 {
        let path = format!("/v1/resources/{}/force-release", resource.replace('/', "%2F"));
        let body = json!({ "actorId": "drill", "reason": "retries", "all": true });
        let call = Call::ForceRelease { resource: resource.into(), request: Some(id(key)) };
        let answer = self.insist(call, "POST", &path, Some(key), &body, |body| Recorded::Forced {
            audit_seq: number(body, "auditSeq"),
        });
        assert_eq!(answer["released"].as_array().map(Vec::len), Some(1), "{answer}");
        number(&answer, "auditSeq")
    }

    /// Asks until there is an answer. Each attempt is one of the history.
    fn insist(
        &mut self,
        call: Call,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: &Value,
        recorded: impl Fn(&Value) -> Recorded,
    ) -> Value {
        for _ in 0..MOST_ATTEMPTS {
            let op = self.story.asks(&self.name, call.clone());
            self.attempts.fetch_add(1, Ordering::Relaxed);
            let Ok(answer) = self.send(method, path, key, body) else { continue };
            assert_eq!(answer.status, 200, "{method} {path}: {}", answer.body);
            self.story.told(op, recorded(&answer.json()));
            return answer.json();
        }
        panic!("{MOST_ATTEMPTS} attempts at {method} {path} without an answer");
    }

    fn send(&mut self, method: &str, path: &str, key: Option<&str>, body: &Value) -> io::Result<Answer> {
        let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let content = match body.len() {
            0 => String::new(),
            length => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
        };
        let host = "127.0.0.1";
        let request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{key}{content}\r\n{body}");
        self.http.raw(request.as_bytes())
    }
}

#[track_caller]
fn number(body: &Value, field: &str) -> u64 {
    body[field].as_u64().unwrap_or_else(|| panic!("no {field} in {body}"))
}
