//! The reference storage, from outside: its answers, its paths, and its crashes.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;
#[path = "support/web.rs"]
mod web;

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold_fence::conformance::{Outcome, Protected, race};
use leasehold_fence::storage::{Change, FilePath, Storage, Store, Write};
use leasehold_fence::{Ask, Fence, Grant};
use serde_json::{Value, json};
use support::{race_length, seed};
use tokio::net::TcpListener;
use web::{Answer, get, send};

async fn start(directory: &Path) -> String {
    let storage = Storage::open(directory).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(storage.serve(listener, std::future::pending()));
    url
}

fn write(resource: &str, token: u64, step: Option<u64>, path: &str, kind: &str, bytes: &str) -> Value {
    let payload = json!({"filePath": path, "mutationType": kind, "bytes": STANDARD.encode(bytes)});
    let mut write = json!({"resourceId": resource, "fencingToken": token, "writePayload": payload});
    if let Some(step) = step {
        write["step"] = step.into();
    }
    write
}

async fn post(url: &str, body: &Value) -> Answer {
    send("POST", &format!("{url}/v1/writes"), &[("Content-Type", "application/json")], &body.to_string())
        .await
}

#[tokio::test]
async fn the_late_writer_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let url = start(directory.path()).await;
    let first = post(&url, &write("books", 33, Some(1), "a/b.txt", "APPEND", "one ")).await;
    assert_eq!(first.status, 200, "{first:?}");
    let again = post(&url, &write("books", 33, Some(1), "a/b.txt", "APPEND", "one ")).await;
    assert!(again.status == 200 && again.body.contains("\"applied\":false"), "{again:?}");
    let early = post(&url, &write("books", 33, Some(3), "a/b.txt", "APPEND", "three ")).await;
    assert!(early.status == 409 && early.body.contains("out_of_order"), "{early:?}");
    assert_eq!(post(&url, &write("books", 34, Some(1), "a/b.txt", "APPEND", "two")).await.status, 200);
    let late = post(&url, &write("books", 33, Some(2), "a/b.txt", "APPEND", "late")).await;
    assert_eq!(late.status, 409);
    assert!(late.body.contains("\"fencingToken\":33,\"highestToken\":34"), "{}", late.body);
    // One maximum for all files of a resource; a file belongs to the lock of its first write.
    assert_eq!(post(&url, &write("books", 33, None, "other.txt", "PUT", "late")).await.status, 409);
    let foreign = post(&url, &write("payroll", 99, None, "a/b.txt", "PUT", "mine")).await;
    assert!(foreign.status == 409 && foreign.body.contains("wrong_scope"), "{foreign:?}");
    assert_eq!(get(&format!("{url}/v1/files/a/b.txt")).await.body, "one two");
    let resource = get(&format!("{url}/v1/resources/books")).await.body;
    assert_eq!(resource, r#"{"resourceId":"books","highestToken":34,"writes":1}"#);
    let metrics = get(&format!("{url}/metrics")).await.body;
    assert!(metrics.contains("fencing_reject_total{prefix=\"books\",result=\"stale\"} 2"), "{metrics}");
    let timed =
        metrics.lines().find_map(|line| line.strip_prefix("fencing_check_seconds_count{prefix=\"books\"} "));
    assert!(timed.unwrap().parse::<u64>().unwrap() >= 5, "every ask is timed: {metrics}");
}

#[tokio::test]
async fn a_claim_shuts_out_before_the_first_write() {
    let directory = tempfile::tempdir().unwrap();
    let url = start(directory.path()).await;
    let claim = json!({"resource_id": "books", "fencing_token": 35}).to_string();
    let json = [("Content-Type", "application/json; charset=utf-8")];
    assert_eq!(send("POST", &format!("{url}/v1/claims"), &json, &claim).await.status, 200);
    assert_eq!(post(&url, &write("books", 34, None, "a", "PUT", "late")).await.status, 409);
    let snake = json!({
        "resource_id": "books", "fencing_token": 35, "step": 1,
        "write_payload": {"file_path": "a", "mutation_type": "PUT", "bytes": STANDARD.encode("ok")}
    });
    assert_eq!(post(&url, &snake).await.status, 200);
    assert_eq!(get(&format!("{url}/v1/files/a")).await.body, "ok");
    assert_eq!(get(&format!("{url}/v1/files/b")).await.status, 404);
}

#[tokio::test]
async fn two_holders_of_a_semaphore_both_write() {
    let directory = tempfile::tempdir().unwrap();
    let url = start(directory.path()).await;
    let with_permit = |token: u64, permit: u64, step: u64| {
        let mut body = write("pool", token, Some(step), "log", "APPEND", &format!("{token}.{step} "));
        body["permit"] = permit.into();
        body
    };
    for body in [with_permit(5, 0, 1), with_permit(9, 1, 1), with_permit(5, 0, 2), with_permit(9, 1, 2)] {
        assert_eq!(post(&url, &body).await.status, 200, "{body}");
    }
    assert_eq!(post(&url, &with_permit(7, 0, 1)).await.status, 200, "the next holder of the permit");
    assert_eq!(post(&url, &with_permit(5, 0, 3)).await.status, 409);
    let exclusive = post(&url, &write("pool", 99, Some(1), "log", "APPEND", "x")).await;
    assert!(exclusive.status == 409 && exclusive.body.contains("wrong_scope"), "{exclusive:?}");
    assert_eq!(get(&format!("{url}/v1/files/log")).await.body, "5.1 9.1 5.2 9.2 7.1 ");
}

#[tokio::test]
async fn what_is_malformed_is_refused_and_nothing_leaves_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let url = start(directory.path()).await;
    let outside = tempfile::tempdir().unwrap();
    let files = directory.path().join("files");
    std::os::unix::fs::symlink(outside.path(), files.join("link")).unwrap();
    std::os::unix::fs::symlink(outside.path().join("target"), files.join("leaf")).unwrap();
    std::fs::create_dir(files.join("folder")).unwrap();
    for path in
        ["../x", "/etc/x", "a/../../x", "", "a//b", "link/x", "leaf", "folder", "folder/../../x", "a\u{0}b"]
    {
        let answer = post(&url, &write("books", 33, None, path, "PUT", "x")).await;
        assert_eq!(answer.status, 400, "{path:?}: {answer:?}");
    }
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "something was written outside");
    let wrong = [
        write("books", 33, None, "a", "APPEND", "x"),
        write("books", 33, Some(0), "a", "APPEND", "x"),
        write("books", 0, Some(1), "a", "APPEND", "x"),
        write("", 33, Some(1), "a", "APPEND", "x"),
        write("books", 1 << 53, Some(1), "a", "APPEND", "x"),
        write("books", 33, Some(1), "a", "TRUNCATE", "x"),
        json!({}),
        json!({"resourceId": "a", "unknown": 1}),
    ];
    for body in wrong {
        let answer = post(&url, &body).await;
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
    }
    let text = write("books", 33, None, "a", "PUT", "x").to_string();
    let unasked = send("POST", &format!("{url}/v1/writes"), &[("Content-Type", "text/plain")], &text).await;
    assert_eq!(unasked.status, 415);
    assert_eq!(post(&url, &write("books", 33, None, "a", "PUT", "x")).await.status, 200, "it still serves");
}

#[test]
fn one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path()).unwrap();
    assert!(Store::open(directory.path()).is_err());
    drop(store);
    assert!(Store::open(directory.path()).is_ok());
}

/// Lines of one file for each fence, written by threads.
struct Lines(Arc<Mutex<Store>>);

impl Lines {
    async fn with<T: Send + 'static>(&self, act: impl FnOnce(&mut Store) -> T + Send + 'static) -> T {
        let store = self.0.clone();
        tokio::task::spawn_blocking(move || act(&mut store.lock().unwrap())).await.unwrap()
    }
}

impl Protected for Lines {
    fn keeps_permits(&self) -> bool {
        false
    }

    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Outcome {
        let (ask, path) = (ask.unwrap().clone(), FilePath::parse(fence.name().as_str()).unwrap());
        let write = Write { ask, path, change: Change::Append, bytes: format!("{line}\n").into_bytes() };
        self.with(move |store| store.write(&write).map(drop)).await
    }

    async fn claim(&self, _: &Fence, grant: &Grant) -> Outcome {
        let grant = grant.clone();
        self.with(move |store| store.claim(&grant)).await
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let path = FilePath::parse(fence.name().as_str()).unwrap();
        let bytes = self.with(move |store| store.read(&path).unwrap().unwrap_or_default()).await;
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn accepted_tokens_never_go_down_in_a_race() {
    let directory = tempfile::tempdir().unwrap();
    let lines = Lines(Arc::new(Mutex::new(Store::open(directory.path()).unwrap())));
    race(&lines, seed(), race_length()).await;
}

/// Serves from the directory that the environment names; started by the test below as a process of its own.
#[tokio::test]
async fn child() {
    let Some(directory) = std::env::var_os("LEASEHOLD_TEST_STORAGE") else { return };
    let url = start(Path::new(&directory)).await;
    println!("serving {url}");
    // It ends with the test that started it, which holds the other end, however that ends.
    let parent = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0]));
    let _ = parent.await;
    std::process::exit(0);
}

/// The child, killed with SIGKILL when it is dropped.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

fn spawn(directory: &Path) -> (Process, String) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env("LEASEHOLD_TEST_STORAGE", directory);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let child = Process(child);
    let url = lines.map_while(Result::ok).find_map(|line| Some(line.split_once("serving ")?.1.to_owned()));
    (child, url.expect("the child serves"))
}

/// Appends numbered lines until the service dies, then says how many were acknowledged. What was sent and not answered
/// is sent again, by its step, to the next one.
async fn append_until_death(url: &str, writer: u64, from: u64, acknowledged: &AtomicU64) -> u64 {
    let (resource, path) = (format!("books/{writer}"), format!("{writer}/lines.txt"));
    for step in from.. {
        let body = write(&resource, 7, Some(step), &path, "APPEND", &format!("line {step}\n"));
        let request =
            http::Request::post(format!("{url}/v1/writes")).header("Content-Type", "application/json");
        let request = request.body(body.to_string().into()).unwrap();
        let Ok(response) = web::client().request(request).await else { return step };
        let status = response.status();
        if http_body_util::BodyExt::collect(response.into_body()).await.is_err() {
            return step;
        }
        assert_eq!(status, 200);
        acknowledged.fetch_add(1, Ordering::SeqCst);
    }
    unreachable!("the service is killed")
}

/// kill -9 under load, again and again: every acknowledged write is there exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_storage_has_every_acknowledged_write_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut next = [1_u64; 4];
    for _ in 0..5 {
        let (process, url) = spawn(directory.path());
        let acknowledged = AtomicU64::new(0);
        let writers =
            next.iter().zip(0..).map(|(from, writer)| append_until_death(&url, writer, *from, &acknowledged));
        let kill = async {
            while acknowledged.load(Ordering::SeqCst) < 40 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            drop(process);
        };
        let (ended, ()) = futures_util::future::join(futures_util::future::join_all(writers), kill).await;
        next.copy_from_slice(&ended);
    }
    let mut store = Store::open(directory.path()).unwrap();
    for (writer, next) in next.into_iter().enumerate() {
        let path = FilePath::parse(&format!("{writer}/lines.txt")).unwrap();
        let text = String::from_utf8(store.read(&path).unwrap().unwrap_or_default()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        // Lines 1 to next - 1 were acknowledged; line `next` was sent and may be there.
        let there = u64::try_from(lines.len()).unwrap();
        assert!(
            there == next - 1 || there == next,
            "writer {writer}: {there} lines, {} acknowledged",
            next - 1
        );
        let wanted: Vec<_> = (1..=there).map(|step| format!("line {step}")).collect();
        assert_eq!(lines, wanted, "writer {writer}");
        let on_disk = std::fs::read(directory.path().join("files").join(path.as_str())).unwrap();
        assert_eq!(on_disk, text.as_bytes(), "the file has what was acknowledged, and nothing else");
    }
}
