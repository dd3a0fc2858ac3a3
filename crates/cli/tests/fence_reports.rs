//! A proxy tells the lock service what it rejects: grants say `fenced`, and the resource's page shows the late writer.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::time::Duration;

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
    use std::io::{Read as _, Write as _};
    let host = proxy.trim_start_matches("http://");
    let mut stream = std::net::TcpStream::connect(host).unwrap();
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
