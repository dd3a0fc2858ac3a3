//! `fence proxy` as a process: it tells the lock service what it rejects, and keeps its order when it is killed.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

#[path = "fence_proxy/signed.rs"]
mod signed;
mod support;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Serving, leasehold, service};

/// Far longer than a report takes on a busy machine.
const ATTEMPTS: usize = 600;

fn json(args: &[&str]) -> Value {
    let output = leasehold(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Writes through the proxy; the status of the answer.
fn write(proxy: &str, token: &str) -> u16 {
    let host = proxy.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let head = format!("PUT /2026 HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: 1\r\n");
    write!(stream, "{head}x-fencing-token: {token}\r\n\r\nx").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer["HTTP/1.1 ".len()..][..3].parse().unwrap()
}

#[test]
fn what_the_proxy_rejects_is_on_the_page_of_the_resource() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("journal");
    let server = Serving::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let upstream = format!("http://{}", service());
    let mut args = vec!["fence", "proxy", "--upstream", &upstream, "--lock", "/{year}=books/{year}"];
    args.extend(["--state", &state, "--listen", "127.0.0.1:0", "--report-to", &server.url]);
    let proxy = Serving::start(&args);
    assert_eq!((write(&proxy.url, "34"), write(&proxy.url, "33")), (200, 409));

    let show = || json(&["show", "books/2026", "--server", &server.url, "--output", "json"]);
    let shown = (0..ATTEMPTS).map(|_| show()).find(|shown| {
        std::thread::park_timeout(Duration::from_millis(50));
        shown["fenceRejections"] == 1
    });
    assert!(shown.is_some(), "{}", show());
    let grant = json(&["acquire", "books/2026", "--server", &server.url, "--output", "json"]);
    assert_eq!(grant["guarantee"], "fenced", "{grant}");
}

/// A service that begins what comes with token 33 and never ends it. Tells every token that it begins.
fn stuck_service() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (began, begun) = mpsc::channel();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = BufReader::new(stream.unwrap());
            let lines: Vec<String> =
                (&mut stream).lines().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            let token = lines
                .iter()
                .find_map(|line| line.to_lowercase().strip_prefix("x-fencing-token: ").map(str::to_owned));
            let token = token.unwrap();
            began.send(token.clone()).unwrap();
            match token.as_str() {
                "33" => held.push(stream),
                _ => stream
                    .get_mut()
                    .write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
                    .unwrap(),
            }
        }
    });
    (url, begun)
}

/// Killed with a request in flight: the next one keeps the resource closed to higher tokens for the drain time, since
/// nobody knows whether the service is still at work.
#[test]
fn a_killed_proxy_keeps_the_order() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let (upstream, begun) = stuck_service();
    let start = || {
        let mut args = vec!["fence", "proxy", "--upstream", &upstream, "--lock", "/{year}=books/{year}"];
        args.extend(["--state", &state, "--drain", "3s", "--listen", "127.0.0.1:0"]);
        Serving::start(&args)
    };
    let next = || begun.recv_timeout(Duration::from_secs(60)).expect("the service is reached");
    let first = start();
    let held = {
        let url = first.url.clone();
        // Its connection breaks when the proxy is killed: then there is no answer to read.
        std::thread::spawn(move || std::panic::catch_unwind(|| write(&url, "33")).is_err())
    };
    assert_eq!(next(), "33");
    first.kill();
    assert!(held.join().unwrap(), "a killed proxy answers nothing");
    let began = now();
    let second = start();
    // On a busy machine its patience may end first; nothing has happened then, and it is asked again.
    let status = (0..20).map(|_| write(&second.url, "34")).find(|status| *status != 503);
    assert_eq!(status, Some(200));
    assert_eq!(next(), "34");
    assert!(began.elapsed() >= Duration::from_secs(3), "34 passed after {:?}", began.elapsed());
    assert_eq!(write(&second.url, "33"), 409);
}

#[expect(clippy::disallowed_methods, reason = "the test shows that a real time passes")]
fn now() -> Instant {
    Instant::now()
}
