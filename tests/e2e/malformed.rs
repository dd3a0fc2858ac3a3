//! Malformed bytes (F14) from the network and from files, mutated from the small corpus in `corpus/`: JSON bodies and gRPC
//! frames at the real server, configuration, audit exports and histories at what reads them. Whatever it is, it is answered
//! or refused; nothing stops, and no fault of a caller is called one of ours.
//!
//! `cargo xtask drill malformed SECONDS` runs it for longer; facts and snapshots are in `sim/tests/malformed.rs`.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use leasehold_api::AuditRecord;
use leasehold_history::{Checker, FileVerdict, check_lines};
use leasehold_server::RawConfig;
use leasehold_testbed::mutants;
use leasehold_tests::{Server, binary};

/// A mutant that asks to wait is left waiting.
const PATIENCE: Duration = Duration::from_secs(3);

type Http2 = Client<HttpConnector, Full<Bytes>>;

/// The files of one target, with their names.
fn corpus(target: &str) -> (Vec<String>, Vec<Vec<u8>>) {
    entries(&binary::root().join("tests/e2e/corpus").join(target))
}

fn entries(dir: &Path) -> (Vec<String>, Vec<Vec<u8>>) {
    let mut files: Vec<_> = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let name = |path: &std::path::PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    (files.iter().map(name).collect(), files.iter().map(|path| std::fs::read(path).unwrap()).collect())
}

/// Text of a mutant; what is no UTF-8 becomes the sign for that.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn has_not_suffered(server: &mut Server) {
    assert_eq!(server.ended(), None, "{}", server.log());
    assert_eq!(server.http().get("/readyz").unwrap().status, 200);
    let log = server.log();
    let complaints: Vec<&str> =
        log.lines().filter(|line| line.contains("panicked") || line.contains("ERROR")).collect();
    assert!(complaints.is_empty(), "a caller's mistake is no error of ours: {complaints:?}");
}

#[test]
fn json_bodies() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let split = |entry: Vec<u8>| {
        let at = entry.iter().position(|byte| *byte == b'\n').unwrap();
        (text(&entry[..at]), entry[at + 1..].to_vec())
    };
    let (lines, bodies): (Vec<String>, Vec<Vec<u8>>) = corpus("bodies").1.into_iter().map(split).unzip();
    let mut send = |line: &str, body: &[u8]| {
        let head = format!(
            "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        http.raw(&[head.as_bytes(), body].concat()).unwrap()
    };
    for (line, body) in lines.iter().zip(&bodies) {
        let answer = send(line, body);
        assert!([200, 410].contains(&answer.status), "{line}: {} {}", answer.status, answer.body);
    }
    let count = mutants(&bodies, |place, body| {
        let answer = send(&lines[place], body);
        assert!(answer.status < 500, "{} {:?}: {}", lines[place], text(body), answer.body);
    });
    println!("{count} bodies");
    has_not_suffered(&mut server);
}

#[test]
fn grpc_frames() {
    let dir = tempfile::tempdir().unwrap();
    let mut server = Server::start(&dir.path().join("data"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client: Http2 = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let (methods, frames) = corpus("frames");
    let frames: Vec<Vec<u8>> = frames.iter().map(|frame| unhex(&text(frame))).collect();
    let ask = |place: usize, frame: &[u8]| {
        let url = format!("{}/leasehold.v1.Locks/{}", server.url(), methods[place]);
        runtime.block_on(async { tokio::time::timeout(PATIENCE, call(&client, url, frame)).await.ok() })
    };
    for (place, frame) in frames.iter().enumerate() {
        let status = ask(place, frame).expect("an answer");
        assert!(["0", "9"].contains(&status.as_str()), "{}: status {status}", methods[place]);
    }
    let mut answered = 0;
    let count = mutants(&frames, |place, frame| answered += u64::from(ask(place, frame).is_some()));
    println!("{count} frames, {answered} answered");
    assert!(2 * answered > count, "{answered} of {count} answered");
    has_not_suffered(&mut server);
}

/// One call with one frame; its status, which every answer has.
async fn call(client: &Http2, url: String, frame: &[u8]) -> String {
    let length = u32::try_from(frame.len()).unwrap().to_be_bytes();
    let request = http::Request::post(url)
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from([&[0][..], &length, frame].concat()))
        .unwrap();
    let (head, body) = client.request(request).await.unwrap().into_parts();
    assert_eq!(head.status, 200, "gRPC tells everything by its own status");
    let collected = body.collect().await.unwrap();
    let status = collected.trailers().and_then(|trailers| trailers.get("grpc-status"));
    let status = status.or(head.headers.get("grpc-status")).expect("every answer has a status");
    status.to_str().unwrap().to_owned()
}

fn unhex(digits: &str) -> Vec<u8> {
    let digits = digits.trim().as_bytes();
    digits.chunks(2).map(|two| u8::from_str_radix(&text(two), 16).unwrap()).collect()
}

#[test]
fn configuration() {
    let mut files = corpus("config").1;
    for folder in ["container", "etcd", "postgres"] {
        let (_, of_folder) = entries(&binary::root().join("deploy").join(folder));
        files.extend(of_folder.into_iter().filter(|file| RawConfig::from_toml(&text(file)).is_ok()));
    }
    assert!(files.iter().all(|file| RawConfig::from_toml(&text(file)).is_ok()) && files.len() > 6);
    mutants(&files, |_, file| {
        let _ = RawConfig::from_toml(&text(file)).and_then(RawConfig::resolve);
    });
}

#[test]
fn audit_exports() {
    let read = |bytes: &[u8]| serde_json::from_slice::<AuditRecord>(bytes);
    let entries = corpus("audit").1;
    assert!(entries.iter().all(|entry| read(entry).is_ok()));
    mutants(&entries, |_, entry| {
        if let Ok(record) = read(entry) {
            drop(record.resource_name());
        }
    });
}

#[test]
fn histories() {
    let files = corpus("history").1;
    for file in &files {
        let verdict = check_lines(&file[..], Checker::default()).unwrap();
        assert!(matches!(verdict, FileVerdict::Held(_)), "{verdict:?}");
    }
    mutants(&files, |_, file| drop(check_lines(file, Checker::default())));
}
