//! A blocking HTTP client on one keep-alive connection, which can also send what no decent client would.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Longer than any wait that a test asks for.
const PATIENCE: Duration = Duration::from_secs(90);

/// A client of one server.
pub struct Http {
    address: SocketAddr,
    patience: Duration,
    connection: Option<BufReader<TcpStream>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// Header lines, lower case names.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The body as JSON; `null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    /// The problem's code, or an empty text.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether the acquire was granted.
    pub fn is_acquired(&self) -> bool {
        self.status == 200 && self.json()["acquired"] == json!(true)
    }

    /// The fencing token in the body.
    pub fn token(&self) -> u64 {
        self.json()["fencingToken"].as_u64().unwrap_or_else(|| panic!("no fencing token in {}", self.body))
    }

    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Http {
    /// A client of the server on this port of 127.0.0.1. Connects with the first request.
    pub fn new(port: u16) -> Self {
        Self::at(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// The same for a server elsewhere, such as in a network namespace.
    pub fn at(address: SocketAddr) -> Self {
        Self { address, patience: PATIENCE, connection: None }
    }

    /// Gives an answer up after this time, where an answer may never come.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// A question.
    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        self.call("GET", path, None)
    }

    /// A change.
    pub fn post(&mut self, path: &str, body: &Value) -> io::Result<Answer> {
        self.call("POST", path, Some(&body.to_string()))
    }

    /// An ending.
    pub fn delete(&mut self, path: &str) -> io::Result<Answer> {
        self.call("DELETE", path, None)
    }

    /// An acquire without waiting, with a lease id of the caller's.
    pub fn acquire(&mut self, resource: &str, lease_id: &str, ttl_ms: u64) -> io::Result<Answer> {
        let body = json!({ "resource": resource, "ownerId": "test", "leaseId": lease_id, "ttlMs": ttl_ms });
        self.post("/v1/locks/acquire", &body)
    }

    /// Everything that is held under a prefix, page by page: resource to token.
    pub fn held(&mut self, prefix: &str) -> io::Result<BTreeMap<String, u64>> {
        let first = format!("/v1/locks?pageSize=1000&prefix={}", encoded(prefix));
        let (mut held, mut path) = (BTreeMap::new(), first.clone());
        loop {
            let answer = self.get(&path)?;
            if answer.status != 200 {
                return Err(io::Error::other(answer.body));
            }
            let page = answer.json();
            for lock in page["locks"].as_array().into_iter().flatten() {
                let name = lock["resource"].as_str().unwrap_or_default().to_owned();
                held.insert(name, lock["fencingToken"].as_u64().unwrap_or_default());
            }
            match page["nextCursor"].as_str() {
                Some(next) => path = format!("{first}&cursor={}", encoded(next)),
                None => return Ok(held),
            }
        }
    }

    /// One request and its answer. After an error the next request uses a new connection; whether the failed one
    /// happened is unknown.
    pub fn call(&mut self, method: &str, path: &str, body: Option<&str>) -> io::Result<Answer> {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(body) = body {
            request += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        }
        request += "\r\n";
        request += body.unwrap_or_default();
        self.raw(request.as_bytes())
    }

    /// Sends these bytes and reads one answer, even if the server stops reading half-way.
    pub fn raw(&mut self, request: &[u8]) -> io::Result<Answer> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => connect(self.address, self.patience)?,
        };
        let sent = connection.get_mut().write_all(request);
        let answer = match read_answer(&mut connection) {
            Ok(answer) => answer,
            Err(error) => return Err(sent.err().unwrap_or(error)),
        };
        if sent.is_ok() && answer.header("connection") != Some("close") {
            self.connection = Some(connection);
        }
        Ok(answer)
    }

    /// Leaves without waiting for anything that is under way.
    pub fn hang_up(&mut self) {
        self.connection = None;
    }
}

fn connect(address: SocketAddr, patience: Duration) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&address, patience)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(patience))?;
    Ok(BufReader::new(stream))
}

/// Percent-encoded, every byte.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn read_answer(from: &mut impl BufRead) -> io::Result<Answer> {
    let status_line = line(from)?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("not a status line: {status_line}")))?;
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        match line.split_once(':') {
            Some((name, value)) => headers.push((name.to_ascii_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let mut answer = Answer { status, headers, body: String::new() };
    let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    answer.body = String::from_utf8_lossy(&body).into_owned();
    Ok(answer)
}

fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(line.trim_end().to_owned()),
    }
}
