//! The reverse proxy in front of a real service, over each store of its state.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;
#[path = "support/web.rs"]
mod web;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Request, State};
use axum::routing::any;
use http_body_util::BodyExt;
use leasehold_fence::metrics::FenceMetrics;
use leasehold_fence::proxy::{Config, Naming, Proxy, Upstream, open};
use leasehold_fence::rollout::{Rollout, Stage};
use leasehold_types::WallTime;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use web::{Answer, get, send};

/// Longer than any pause of a loaded machine: nobody is taken for dead.
const LONG: Duration = Duration::from_secs(120);
/// The longest wait for something that must come.
const LIMIT: Duration = Duration::from_secs(60);

/// A service that nobody can change: it writes down the tokens of what it has begun. `hold` in the path waits until it is
/// let go, `break` ends the connection without an answer, `echo` sends back what it gets as it gets it.
#[derive(Clone)]
struct Books {
    begun: Arc<Mutex<Vec<String>>>,
    go: Arc<Semaphore>,
    url: String,
}

impl Books {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let books = Self { begun: Arc::default(), go: Arc::new(Semaphore::new(0)), url };
        let router = Router::new().route("/books/{what}", any(Self::serve)).with_state(books.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        books
    }

    async fn serve(State(books): State<Self>, Path(what): Path<String>, request: Request) -> Body {
        if what == "echo" {
            return Body::new(request.into_body());
        }
        let token = request.headers().get("x-fencing-token").map_or("none", |token| token.to_str().unwrap());
        books.begun.lock().unwrap().push(token.to_owned());
        // Some take the request's body first, as services do.
        let _ = request.into_body().collect().await;
        match what.as_str() {
            "hold" => books.go.acquire().await.unwrap().forget(),
            "break" => return Body::from_stream(futures_util::stream::once(async { broken() })),
            _ => {}
        }
        Body::from("done")
    }

    fn begun(&self) -> Vec<String> {
        self.begun.lock().unwrap().clone()
    }

    async fn until_begun(&self, count: usize) {
        let wait = async {
            while self.begun().len() < count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        timeout(LIMIT, wait).await.unwrap_or_else(|_| panic!("the service has seen only {:?}", self.begun()));
    }
}

/// An answer that breaks off at once.
fn broken() -> Result<Bytes, std::io::Error> {
    Err(std::io::Error::other("the service fell over"))
}

/// A proxy before it, with its administration page.
struct Running {
    url: String,
    admin: String,
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<std::io::Result<()>>,
}

async fn start(books: &Books, state: &str, stage: Stage, drain: Duration) -> Running {
    let naming = Naming::path("/books/{what}", "books").unwrap();
    let mut config = Config::new(Upstream::parse(&books.url).unwrap(), naming).drain(drain);
    // However busy the machine is, nobody gives up waiting.
    config.patience = LONG;
    let metrics = Arc::new(FenceMetrics::default());
    let rollout = Arc::new(Rollout::new(stage, metrics.clone(), || WallTime(0)));
    let proxy = Proxy::new(config, open(state).await.unwrap(), rollout, metrics);
    let (front, admin) =
        (TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let url = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let (url, admin_url) = (url(&front), url(&admin));
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(proxy.serve(front, Some(admin), async move { drop(stopped.await) }));
    Running { url, admin: admin_url, stop: Some(stop), task }
}

impl Running {
    async fn post(&self, what: &str, token: u64) -> Answer {
        let token = token.to_string();
        send("POST", &format!("{}/books/{what}", self.url), &[("X-Fencing-Token", &token)], "x").await
    }

    fn spawn(&self, what: &'static str, token: u64) -> JoinHandle<Answer> {
        let url = format!("{}/books/{what}", self.url);
        tokio::spawn(async move { send("POST", &url, &[("X-Fencing-Token", &token.to_string())], "x").await })
    }

    async fn metric(&self, line: &str) -> bool {
        get(&format!("{}/metrics", self.admin)).await.body.lines().any(|found| found == line)
    }

    async fn until_metric(&self, line: &str) {
        let wait = async {
            while !self.metric(line).await {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let came = timeout(LIMIT, wait).await;
        assert!(came.is_ok(), "{line} is not in {}", get(&format!("{}/metrics", self.admin)).await.body);
    }
}

async fn answer(task: JoinHandle<Answer>) -> Answer {
    timeout(LIMIT, task).await.expect("an answer in time").unwrap()
}

/// The story that every store tells.
async fn keeps_the_order(state: &str) {
    let books = Books::start().await;
    let proxy = start(&books, state, Stage::Require, LONG).await;
    assert_eq!(proxy.post("write", 33).await.status, 200);
    let held = proxy.spawn("hold", 33);
    books.until_begun(2).await;
    let next = proxy.spawn("write", 34);
    proxy.until_metric("fence_proxy_waiting 1").await;
    // The maximum is raised at once: from now on 33 sends no more.
    let late = async {
        loop {
            let late = proxy.post("write", 33).await;
            if late.status == 409 {
                break late;
            }
        }
    };
    let late = timeout(LIMIT, late).await.expect("the lower token is refused");
    assert!(late.body.contains("\"fencingToken\":33,\"highestToken\":34"), "{}", late.body);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!next.is_finished(), "34 overtook 33, which is still at work");
    assert!(!books.begun().contains(&"34".to_owned()), "{:?}", books.begun());
    books.go.add_permits(1);
    assert_eq!(answer(held).await.status, 200);
    assert_eq!(answer(next).await.status, 200);
    assert_eq!(books.begun().last().unwrap(), "34");
    assert_eq!(proxy.post("write", 33).await.status, 409);
    let nothing = send("POST", &format!("{}/books/write", proxy.url), &[], "").await;
    assert_eq!(nothing.status, 428, "{nothing:?}");
    assert_eq!(get(&format!("{}/books/write", proxy.url)).await.status, 200, "reads pass");
    let elsewhere = send("POST", &format!("{}/payroll", proxy.url), &[("X-Fencing-Token", "99")], "").await;
    assert_eq!(elsewhere.status, 403, "{elsewhere:?}");
    proxy.until_metric("fence_proxy_in_flight 0").await;
    assert!(proxy.metric("fence_proxy_order_unknown_total 0").await);
}

#[tokio::test]
async fn sqlite_keeps_the_order() {
    let directory = tempfile::tempdir().unwrap();
    keeps_the_order(&format!("sqlite:{}", directory.path().join("fence.db").display())).await;
}

#[tokio::test]
async fn postgres_keeps_the_order() {
    let server = leasehold_testbed::postgres();
    keeps_the_order(server.url()).await;
}

#[tokio::test]
async fn redis_keeps_the_order_and_out_of_reach_is_503() {
    let server = leasehold_testbed::redis();
    keeps_the_order(server.url()).await;
    let books = Books::start().await;
    let proxy = start(&books, server.url(), Stage::Enforce, LONG).await;
    assert_eq!(proxy.post("write", 50).await.status, 200);
    server.kill(0);
    assert_eq!(proxy.post("write", 51).await.status, 503);
    assert_eq!(books.begun(), ["50"], "nothing was let through");
    server.restart(0);
    let again = async {
        while proxy.post("write", 52).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(LIMIT, again).await.expect("the connection is made again");
}

/// Two proxies, one state: what is in flight at one holds the other.
#[tokio::test]
async fn two_proxies_keep_one_order() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let books = Books::start().await;
    let one = start(&books, &state, Stage::Enforce, LONG).await;
    let other = start(&books, &state, Stage::Enforce, LONG).await;
    let held = one.spawn("hold", 33);
    books.until_begun(1).await;
    let next = other.spawn("write", 34);
    other.until_metric("fence_proxy_waiting 1").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(books.begun(), ["33"]);
    books.go.add_permits(1);
    assert_eq!((answer(held).await.status, answer(next).await.status), (200, 200));
    assert_eq!(books.begun(), ["33", "34"]);
    assert_eq!(one.post("write", 33).await.status, 409);
}

#[tokio::test]
async fn a_request_without_an_answer_keeps_the_resource_closed() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let (books, drain) = (Books::start().await, Duration::from_millis(1500));
    let proxy = start(&books, &state, Stage::Enforce, drain).await;
    let sent = Instant::now();
    // Its head came, its end did not: the answer breaks off.
    let broken = web::client()
        .request(
            http::Request::post(format!("{}/books/break", proxy.url))
                .header("X-Fencing-Token", "33")
                .body("x".to_owned().into())
                .unwrap(),
        )
        .await;
    if let Ok(response) = broken {
        let refused = response.status() == 502;
        assert!(
            refused || response.into_body().collect().await.is_err(),
            "a broken answer must not look whole"
        );
    }
    assert_eq!(proxy.post("write", 34).await.status, 200);
    assert!(sent.elapsed() >= drain, "34 passed after {:?}", sent.elapsed());
    assert!(proxy.metric("fence_proxy_order_unknown_total 1").await);
    assert_eq!(books.begun(), ["33", "34"]);
}

/// A caller that leaves cancels nothing: what the service has begun holds the others until it ends.
#[tokio::test]
async fn a_caller_that_leaves_does_not_open_the_gate() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let books = Books::start().await;
    let proxy = start(&books, &state, Stage::Enforce, LONG).await;
    let held = proxy.spawn("hold", 33);
    books.until_begun(1).await;
    held.abort();
    let next = proxy.spawn("write", 34);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(books.begun(), ["33"]);
    books.go.add_permits(1);
    assert_eq!(answer(next).await.status, 200);
}

/// A proxy that dies with requests in flight: the next one finds the notes and keeps the resource closed.
#[test]
fn a_crash_of_the_proxy_keeps_the_order() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let service = tokio::runtime::Runtime::new().unwrap();
    let books = service.block_on(Books::start());
    let drain = Duration::from_secs(2);
    let first = tokio::runtime::Runtime::new().unwrap();
    first.block_on(async {
        let proxy = start(&books, &state, Stage::Enforce, LONG).await;
        let _held = proxy.spawn("hold", 33);
        books.until_begun(1).await;
    });
    // Every task of it is gone, as with a process that was killed.
    first.shutdown_background();
    service.block_on(async {
        let began = Instant::now();
        let proxy = start(&books, &state, Stage::Enforce, drain).await;
        assert_eq!(proxy.post("write", 33).await.status, 200, "the same holder goes on");
        assert_eq!(proxy.post("write", 34).await.status, 200);
        assert!(began.elapsed() >= drain, "34 passed after {:?}", began.elapsed());
        assert!(proxy.metric("fence_proxy_order_unknown_total 1").await);
    });
}

/// Callers with random tokens, all at once: what the service begins never goes down in token, what was answered was
/// begun, and nothing that was refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_callers_race() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let books = Books::start().await;
    let proxy = start(&books, &state, Stage::Require, LONG).await;
    let (race, begun) = (support::race_length(), Instant::now());
    let caller = async |n: u64| {
        let mut answers = Vec::new();
        for round in 0.. {
            if round >= race.writes.div_ceil(8) && begun.elapsed() >= race.lasting {
                break;
            }
            let token = 1 + round * 8 + (n * 7 + round * 5) % 24;
            answers.push((token, proxy.post("write", token).await.status));
        }
        answers
    };
    let answers = futures_util::future::join_all((0..64).map(caller)).await.concat();
    let begun: Vec<u64> = books.begun().iter().map(|token| token.parse().unwrap()).collect();
    assert!(begun.is_sorted(), "tokens went down: {begun:?}");
    let mut answered: Vec<u64> =
        answers.iter().filter(|(_, status)| *status == 200).map(|(token, _)| *token).collect();
    answered.sort_unstable();
    assert_eq!(answered, begun, "answered is what was begun");
    let others: Vec<_> = answers.iter().filter(|(_, status)| !matches!(status, 200 | 409)).collect();
    assert!(others.is_empty(), "{others:?}");
    let last = 1 + begun.last().unwrap();
    assert_eq!(proxy.post("write", last).await.status, 200, "the highest token wins");
}

/// Each permit of a semaphore has an order of its own: one holder's unanswered request does not hold the other.
#[tokio::test]
async fn two_holders_of_a_semaphore_both_write() {
    let directory = tempfile::tempdir().unwrap();
    let books = Books::start().await;
    let naming = Naming::path("/books/{what}", "books").unwrap().each_permit();
    let config = Config::new(Upstream::parse(&books.url).unwrap(), naming).drain(LONG);
    let state = open(&format!("sqlite:{}", directory.path().join("fence.db").display())).await.unwrap();
    let metrics = Arc::new(FenceMetrics::default());
    let rollout = Arc::new(Rollout::new(Stage::Require, metrics.clone(), || WallTime(0)));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/books", listener.local_addr().unwrap());
    tokio::spawn(Proxy::new(config, state, rollout, metrics).serve(listener, None, std::future::pending()));
    let post = async |what: &str, token: &str, permit: &str| {
        let headers = [("X-Fencing-Token", token), ("X-Fencing-Permit", permit)];
        send("POST", &format!("{url}/{what}"), &headers, "x").await.status
    };
    let held = async { post("hold", "5", "0").await };
    let other = async {
        books.until_begun(1).await;
        assert_eq!(post("write", "9", "1").await, 200, "the other permit's holder is not held");
        assert_eq!(post("write", "4", "0").await, 409);
        books.go.add_permits(1);
    };
    let (held, ()) = timeout(LIMIT, futures_util::future::join(held, other)).await.expect("both in time");
    assert_eq!(held, 200);
    assert_eq!(post("write", "5", "0").await, 200);
    assert_eq!(send("POST", &format!("{url}/write"), &[("X-Fencing-Token", "99")], "").await.status, 409);
}

#[tokio::test]
async fn a_state_in_memory_is_for_tests() {
    let books = Books::start().await;
    let looking = start(&books, "memory:", Stage::Shadow, LONG).await;
    assert_eq!(looking.post("write", 34).await.status, 200);
    assert_eq!(looking.post("write", 33).await.status, 200);
    assert!(looking.metric("fencing_shadow_reject_total{prefix=\"books\",result=\"stale\"} 1").await);
    let enforcing = start(&books, "memory:", Stage::Enforce, LONG).await;
    assert_eq!(enforcing.post("write", 34).await.status, 503);
}

/// Bodies pass as they come, both ways: the first piece is back before the second is sent.
#[tokio::test]
async fn bodies_are_streamed() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let books = Books::start().await;
    let proxy = start(&books, &state, Stage::Enforce, LONG).await;
    let (pieces, body) = tokio::sync::mpsc::channel::<&str>(1);
    let stream = futures_util::stream::unfold(body, |mut body| async move {
        let piece = body.recv().await?;
        Some((Ok::<_, std::io::Error>(Bytes::from(piece)), body))
    });
    let request = http::Request::post(format!("{}/books/echo", proxy.url)).header("X-Fencing-Token", "33");
    let request = request.body(Body::from_stream(stream)).unwrap();
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new());
    let asked = tokio::spawn(client.build_http().request(request));
    pieces.send("one").await.unwrap();
    let mut response = timeout(LIMIT, asked).await.unwrap().unwrap().unwrap();
    let mut piece = async || {
        let frame = timeout(LIMIT, response.body_mut().frame()).await.expect("a piece in time");
        frame.map(|frame| frame.unwrap().into_data().unwrap())
    };
    assert_eq!(piece().await.unwrap(), "one");
    pieces.send("two").await.unwrap();
    assert_eq!(piece().await.unwrap(), "two");
    drop(pieces);
    assert!(piece().await.is_none());
}

/// It ends after what is under way, and refuses what is too large without asking anybody.
#[tokio::test]
async fn it_ends_in_order() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let books = Books::start().await;
    let mut proxy = start(&books, &state, Stage::Enforce, LONG).await;
    let length = (65 * 1024 * 1024).to_string();
    let large = [("X-Fencing-Token", "33"), ("Content-Length", &length)];
    let refused = raw(&proxy.url, &large).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");
    let held = proxy.spawn("hold", 33);
    books.until_begun(1).await;
    proxy.stop.take().unwrap().send(()).unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!proxy.task.is_finished(), "a request is under way");
    books.go.add_permits(1);
    assert_eq!(answer(held).await.status, 200);
    timeout(LIMIT, proxy.task).await.expect("it ends").unwrap().unwrap();
}

/// Sends only a head, and reads what comes.
async fn raw(url: &str, headers: &[(&str, &str)]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("POST /books/write HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = vec![0; 512];
    let read = timeout(LIMIT, stream.read(&mut answer)).await.expect("an answer in time").unwrap();
    String::from_utf8_lossy(&answer[..read]).into_owned()
}
