//! The event stream: live, resumed, filtered, ended.

use serde_json::{Value, json};

use crate::support::{Client, TestServer};

/// How many events a node keeps for readers that resume.
const KEPT: usize = 16_384;
const CLIENTS: usize = 32;

struct Stream(Client);

#[derive(Debug)]
struct Seen {
    event: String,
    id: Option<String>,
    data: Value,
}

impl Stream {
    async fn open(server: &TestServer, path: &str, headers: &[(&str, &str)]) -> Self {
        let mut client = server.connect().await;
        let answer = client.send("GET", path, headers, b"").await;
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, Some("text/event-stream")),
            "{answer:?}"
        );
        let mut stream = Self(client);
        assert_eq!(stream.frame().await, ": watching");
        stream
    }

    async fn frame(&mut self) -> String {
        let frame = self.0.read_until(b"\n\n").await;
        let text = String::from_utf8(frame).unwrap();
        // Without the frame of the chunked coding around it.
        let lines: Vec<_> = text.lines().map(str::trim_end).filter(|line| line.contains(':')).collect();
        lines.join("\n")
    }

    async fn next(&mut self) -> Seen {
        let frame = tokio::time::timeout(crate::support::PATIENCE, self.frame()).await.expect("an event");
        let part = |name: &str| frame.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let data =
            serde_json::from_str(&part("data: ").unwrap_or_else(|| panic!("data in {frame:?}"))).unwrap();
        Seen { event: part("event: ").unwrap(), id: part("id: "), data }
    }
}

async fn cycle(server: &TestServer, resource: &str) -> Value {
    let grant = server.acquire(resource, "ann").await;
    server.delete(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await;
    grant
}

#[tokio::test]
async fn what_happens_is_told_and_a_reader_resumes_where_it_was() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&server, "/v1/events", &[]).await;
    let grant = cycle(&server, "a/1").await;
    let granted = stream.next().await;
    assert_eq!((granted.event.as_str(), &granted.data["resource"]), ("granted", &"a/1".into()));
    assert_eq!(granted.data["fencingToken"], grant["fencingToken"]);
    assert!(
        !granted.data.to_string().contains(grant["leaseId"].as_str().unwrap()),
        "no capability in a stream"
    );
    let released = stream.next().await;
    assert_eq!((released.event.as_str(), &released.data["reason"]), ("released", &"released".into()));
    drop(stream);

    cycle(&server, "b/1").await;
    let id = granted.id.expect("journaled events have an id");
    for (path, headers) in [
        (format!("/v1/events?after={id}"), vec![]),
        ("/v1/events".to_owned(), vec![("last-event-id", id.as_str())]),
        ("/v1/events?after=0.0".to_owned(), vec![("last-event-id", id.as_str())]),
    ] {
        let mut resumed = Stream::open(&server, &path, &headers).await;
        let events = [resumed.next().await, resumed.next().await, resumed.next().await];
        let told: Vec<_> = events
            .iter()
            .map(|seen| (seen.event.as_str(), seen.data["resource"].as_str().unwrap()))
            .collect();
        assert_eq!(told, [("released", "a/1"), ("granted", "b/1"), ("released", "b/1")]);
        assert_eq!(events[0].id, released.id);
    }
}

#[tokio::test]
async fn a_prefix_chooses_and_events_that_are_not_journaled_have_no_id() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&server, "/v1/events?prefix=b%2F", &[]).await;
    cycle(&server, "a/1").await;
    let grant = server.acquire("b/1", "ann").await;
    server.post(&format!("/v1/locks/{}/renew", grant["leaseId"].as_str().unwrap()), json!({})).await;
    server
        .post("/v1/resources/b%2F1/force-release", json!({"actorId": "op", "reason": "r", "all": true}))
        .await;
    let told = [stream.next().await, stream.next().await, stream.next().await];
    let names: Vec<_> = told.iter().map(|seen| seen.event.as_str()).collect();
    assert_eq!(names, ["granted", "renewed", "forced"]);
    assert!(told.iter().all(|seen| seen.data["resource"] == "b/1"));
    assert_eq!(told.iter().map(|seen| seen.id.is_some()).collect::<Vec<_>>(), [true, false, true]);
}

#[tokio::test]
async fn a_stream_ends_with_the_server() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&server, "/v1/events", &[]).await;
    server.server.shutdown().await.unwrap();
    stream.0.until_closed().await;
}

#[tokio::test]
async fn a_silent_stream_shows_that_it_is_alive() {
    let server = TestServer::start().await;
    let mut stream = Stream::open(&server, "/v1/events", &[]).await;
    // From here on the time of the server's tasks jumps to their next timer whenever all of them wait.
    tokio::time::pause();
    for _ in 0..3 {
        assert_eq!(stream.frame().await, ": still here");
    }
}

#[tokio::test]
async fn a_reader_behind_what_is_kept_is_told_and_goes_on() {
    let server = TestServer::start().await;
    let first = server.acquire("first", "ann").await;
    assert_eq!(first["fencingToken"], 1);
    // More events than are kept: two for each cycle.
    let cycles = |n: usize| {
        let server = &server;
        async move {
            let mut client = server.connect().await;
            for _ in 0..KEPT / 2 / CLIENTS + 1 {
                let body = json!({"resource": format!("a/{n}"), "ownerId": "ann"});
                let grant = client.post("/v1/locks/acquire", body).await.json();
                client.delete(&format!("/v1/locks/{}", grant["leaseId"].as_str().unwrap())).await;
            }
        }
    };
    futures_util::future::join_all((0..CLIENTS).map(cycles)).await;
    let mut stream = Stream::open(&server, "/v1/events?after=1.0", &[]).await;
    let compacted = stream.next().await;
    assert_eq!((compacted.event.as_str(), compacted.id), ("compacted", None));
    let next = stream.next().await;
    assert_eq!(compacted.data["oldest"].as_str(), next.id.as_deref(), "it goes on from the oldest kept");
    assert!(next.data["resource"].as_str().unwrap().starts_with("a/"));
}

#[tokio::test]
async fn streams_are_bounded() {
    let limits = leasehold_server::RawLimits { watchers: Some(1), ..Default::default() };
    let server = TestServer::with(leasehold_server::RawConfig { limits, ..Default::default() }).await;
    let first = Stream::open(&server, "/v1/events", &[]).await;
    server.get("/v1/events").await.problem(503, "overloaded");
    drop(first);
    // The place is free as soon as the server has noticed.
    for _ in 0..200 {
        let mut client = server.connect().await;
        if client.get("/v1/events").await.status == 200 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the place of a closed stream stays taken");
}
