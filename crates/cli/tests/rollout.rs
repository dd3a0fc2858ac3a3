//! A fence is switched from shadow to enforce under load, by one command, in a proxy that goes on serving; what it counted
//! agrees with what its callers saw.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::Value;
use support::{Serving, leasehold, service};

/// Writers, each on a resource of its own.
const WRITERS: usize = 4;
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection that is kept.
struct Connection(BufReader<TcpStream>);

impl Connection {
    fn to(url: &str) -> Self {
        Self(BufReader::new(TcpStream::connect(url.trim_start_matches("http://")).unwrap()))
    }

    /// Sends a request and gives the status and the body of its answer.
    fn ask(&mut self, line: &str, headers: &str, body: &str) -> (u16, String) {
        let length = body.len();
        let stream = self.0.get_mut();
        write!(stream, "{line} HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n{headers}\r\n{body}")
            .unwrap();
        let (mut status, mut length) = (0, 0);
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the connection ended");
            let line = line.trim().to_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(rest) = line.strip_prefix("content-length:") {
                length = rest.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (status, String::from_utf8(body).unwrap())
    }
}

#[derive(Default)]
struct Seen {
    fresh: AtomicU64,
    stale_passed: AtomicU64,
    stale_refused: AtomicU64,
}

/// Writes with the newest token and with an old one, in turn, until told to stop.
fn write(url: &str, resource: usize, seen: &Seen, stop: &AtomicBool) {
    let mut connection = Connection::to(url);
    let mut put = |token: u64| {
        let headers = format!("x-fencing-token: {token}\r\n");
        connection.ask(&format!("PUT /books/{resource}"), &headers, "text").0
    };
    while !stop.load(Ordering::Relaxed) {
        assert_eq!(put(10), 200);
        seen.fresh.fetch_add(1, Ordering::Relaxed);
        match put(5) {
            200 => seen.stale_passed.fetch_add(1, Ordering::Relaxed),
            409 => seen.stale_refused.fetch_add(1, Ordering::Relaxed),
            status => panic!("{status}"),
        };
    }
}

fn until(counter: &AtomicU64, more: u64) {
    let wanted = counter.load(Ordering::Relaxed) + more;
    leasehold_tests::until("writes", PATIENCE, || (counter.load(Ordering::Relaxed) >= wanted).then_some(()));
}

/// The value of a series, summed over its labels.
fn metric(page: &str, name: &str) -> u64 {
    let lines = page.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[test]
fn from_shadow_to_enforce_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let fence = |args: &[&str]| {
        leasehold(&["fence"]).args(args).args(["--rollout", &state, "--output", "json"]).output().unwrap()
    };
    assert!(fence(&["stage", "books/", "shadow", "--actor", "ada"]).status.success());
    let upstream = format!("http://{}", service());
    let args =
        ["fence", "proxy", "--upstream", &upstream, "--state", &state, "--lock", "/books/{n}=books/{n}"];
    let proxy = Serving::start(&[&args[..], &["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]].concat());
    let admin = proxy.said.iter().find_map(|line| line.split("metrics on ").nth(1)?.split("/metrics").next());
    let admin = admin.unwrap().to_owned();
    // The stages are taken over within a second; `enforce` is what it began with.
    let mut probe = Connection::to(&proxy.url);
    leasehold_tests::until("the stage", PATIENCE, || {
        probe.ask("PUT /books/probe", "x-fencing-token: 10\r\n", "");
        (probe.ask("PUT /books/probe", "x-fencing-token: 5\r\n", "").0 == 200).then_some(())
    });
    let page = || Connection::to(&admin).ask("GET /metrics", "", "").1;
    let before = page();
    let (seen, stop) = (Seen::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (url, seen, stop) = (&proxy.url, &seen, &stop);
            scope.spawn(move || write(url, writer, seen, stop));
        }
        until(&seen.stale_passed, 100);
        let unsafe_yet = fence(&["stage", "books/", "enforce"]);
        assert_eq!(unsafe_yet.status.code(), Some(1), "the next stage would stop writes");
        assert!(fence(&["stage", "books/", "enforce", "--anyway", "--actor", "ada"]).status.success());
        until(&seen.stale_refused, 100);
        stop.store(true, Ordering::Relaxed);
    });
    let (fresh, passed, refused) =
        [&seen.fresh, &seen.stale_passed, &seen.stale_refused].map(|n| n.load(Ordering::Relaxed)).into();
    let after = page();
    let counted = |name: &str| metric(&after, name) - metric(&before, name);
    assert_eq!(counted("fencing_accept_total"), fresh);
    assert_eq!(counted("fencing_shadow_reject_total"), passed);
    assert_eq!(counted("fencing_reject_total"), refused);
    // The counters of the stage that is on now, as all processes see them.
    let status = leasehold_tests::until("the counters to be handed in", PATIENCE, || {
        let status: Value = serde_json::from_slice(&fence(&["status", "books/"]).stdout).unwrap();
        (status["prefixes"][0]["rejected"] == refused).then_some(status)
    });
    let books = &status["prefixes"][0];
    assert_eq!((&books["stage"], &books["wouldReject"]), (&"enforce".into(), &0.into()), "{status}");
    assert_eq!(books["nextStageIsSafe"], true, "stopped writes are the fence at work: {status}");
}
