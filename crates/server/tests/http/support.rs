//! A server on a free port, and a client that sees every byte.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use leasehold_journal::MemoryJournal;
use leasehold_node::RealClock;
use leasehold_server::logs::LogSink;
use leasehold_server::{Components, RawConfig, Server};
use leasehold_types::Durability;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than anything here takes on a busy machine; a test that hangs fails instead.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct TestServer {
    pub(crate) server: Server,
    pub(crate) journal: Arc<MemoryJournal>,
    pub(crate) data: TempDir,
}

impl TestServer {
    pub(crate) async fn start() -> Self {
        Self::with(RawConfig::default()).await
    }

    pub(crate) async fn with(raw: RawConfig) -> Self {
        Self::on(Arc::new(MemoryJournal::with_durability(Durability::Durable)), raw).await
    }

    pub(crate) async fn on(journal: Arc<MemoryJournal>, raw: RawConfig) -> Self {
        Self::logging(journal, raw, LogSink::none()).await
    }

    pub(crate) async fn logging(journal: Arc<MemoryJournal>, raw: RawConfig, log: LogSink) -> Self {
        let data = TempDir::new().unwrap();
        let listen = Some("127.0.0.1:0".to_owned());
        let raw = RawConfig { listen, data: Some(data.path().to_owned()), node: Some("test".into()), ..raw };
        let shared: Arc<dyn leasehold_journal::Journal> = journal.clone();
        let components = Components { journal: shared, clock: Arc::new(RealClock), log };
        let server = Server::start(raw.resolve().unwrap(), components).await.unwrap();
        Self { server, journal, data }
    }

    pub(crate) async fn connect(&self) -> Client {
        Client::connect(self.server.address()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.connect().await.get(path).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Answer {
        self.connect().await.post(path, body).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        self.connect().await.delete(path).await
    }

    /// A grant of `resource` to `owner`.
    pub(crate) async fn acquire(&self, resource: &str, owner: &str) -> Value {
        let answer = self.post("/v1/locks/acquire", json!({"resource": resource, "ownerId": owner})).await;
        assert_eq!(answer.json()["acquired"], true, "{answer:?}");
        answer.json()
    }

    /// Waits until this line is on the page of metrics.
    pub(crate) async fn until_counted(&self, line: &str) {
        let there = async {
            while !self.get("/metrics").await.text().lines().any(|found| found == line) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.unwrap_or_else(|_| panic!("never {line}"));
    }

    /// Waits until this many acquires are in queues.
    pub(crate) async fn until_waiting(&self, waiters: usize) {
        let there = async {
            while self.server.handle().status().counts.waiters != waiters {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, there).await.unwrap_or_else(|_| panic!("never {waiters} waiters"));
    }
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// Checks that this is a whole problem of this code, and gives its detail.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{} {}", self.status, String::from_utf8_lossy(&self.body));
        assert_eq!(self.header("content-type"), Some("application/problem+json"));
        let problem = self.json();
        assert_eq!((&problem["status"], &problem["code"]), (&status.into(), &code.into()));
        assert_eq!(problem["type"], format!("urn:leasehold:error:{code}"));
        let unknown = code == "outcome_unknown";
        assert_eq!(problem["sideEffects"], if unknown { "unknown" } else { "none" });
        assert_eq!(problem["retryable"], matches!(status, 429 | 503));
        problem["detail"].as_str().expect("a detail").to_owned()
    }
}

pub(crate) struct Client {
    pub(crate) stream: TcpStream,
    pub(crate) host: String,
    unread: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        Self { stream, host: address.to_string(), unread: Vec::new() }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.send("GET", path, &[], b"").await
    }

    pub(crate) async fn delete(&mut self, path: &str) -> Answer {
        self.send("DELETE", path, &[], b"").await
    }

    pub(crate) async fn post(&mut self, path: &str, body: Value) -> Answer {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes()).await
    }

    pub(crate) async fn post_keyed(&mut self, path: &str, key: &str, body: Value) -> Answer {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        self.send("POST", path, &headers, body.to_string().as_bytes()).await
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        self.write(method, path, headers, body).await;
        self.answer().await
    }

    /// Sends a request.
    pub(crate) async fn write(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            head.push_str(&format!("host: {}\r\n", self.host));
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() && !headers.iter().any(|(name, _)| *name == "content-length") {
            head.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        self.stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
    }

    /// Reads one answer.
    pub(crate) async fn answer(&mut self) -> Answer {
        tokio::time::timeout(PATIENCE, self.read_answer()).await.expect("an answer")
    }

    async fn read_answer(&mut self) -> Answer {
        let head = self.read_until(b"\r\n\r\n").await;
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("a header: {line:?}")))
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        answer.body = self.read_bytes(length).await;
        answer
    }

    /// Reads up to and with `end`.
    pub(crate) async fn read_until(&mut self, end: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = self.unread.windows(end.len()).position(|window| window == end) {
                return self.unread.drain(..at + end.len()).collect();
            }
            assert!(
                self.fill().await > 0,
                "the connection ended: {:?}",
                String::from_utf8_lossy(&self.unread)
            );
        }
    }

    async fn read_bytes(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            assert!(self.fill().await > 0, "the connection ended");
        }
        self.unread.drain(..count).collect()
    }

    async fn fill(&mut self) -> usize {
        self.stream.read_buf(&mut self.unread).await.unwrap()
    }

    /// Waits until the server has closed the connection.
    pub(crate) async fn until_closed(&mut self) {
        let closed =
            async { while matches!(self.stream.read_buf(&mut self.unread).await, Ok(n) if n > 0) {} };
        tokio::time::timeout(PATIENCE, closed).await.expect("the server closes");
    }
}

impl Client {
    /// The status of a HEAD request, whose answer must have no body.
    pub(crate) async fn send_head(&mut self, path: &str) -> u16 {
        self.write("HEAD", path, &[("connection", "close")], b"").await;
        let head = self.read_until(b"\r\n\r\n").await;
        self.until_closed().await;
        assert!(self.unread.is_empty(), "a body follows a HEAD");
        String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().parse().unwrap()
    }
}
