//! A collector of traces: takes OTLP over HTTP, and keeps what it was sent.
//!
//! It reads the protobuf by field numbers, with no code of the side that writes it, so that both can be wrong only apart.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long [`Collector::until`] waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// See the module. Its threads end with the process.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    kept: Arc<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    spans: Mutex<Vec<CollectedSpan>>,
    more: Condvar,
}

/// A span as it was sent; ids in hex, attributes as text.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CollectedSpan {
    /// `service.name` of whoever sent it.
    pub service: String,
    /// The trace.
    pub trace_id: String,
    /// Itself.
    pub span_id: String,
    /// What it is part of; empty at the root.
    pub parent_id: String,
    /// What was done.
    pub name: String,
    /// 1 internal, 2 server, 3 client.
    pub kind: u64,
    /// Nanoseconds since 1970.
    pub start_ns: u64,
    /// Nanoseconds since 1970.
    pub end_ns: u64,
    /// What else is known.
    pub attributes: BTreeMap<String, String>,
    /// 2 is an error.
    pub status: u64,
}

impl Collector {
    /// Listens on a free port.
    ///
    /// # Panics
    /// Without one.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let kept = Arc::<Kept>::default();
        let keeping = Arc::clone(&kept);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&keeping);
                // Whoever sends is told nothing of what went wrong with it; the test finds it missing.
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { address, kept }
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was sent so far.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.kept.spans.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until what it was sent is as wanted.
    ///
    /// # Panics
    /// With everything that it was sent, if that does not come.
    pub fn until<T>(&self, what: &str, wanted: impl Fn(&[CollectedSpan]) -> Option<T>) -> T {
        let mut spans = self.kept.spans.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(found) = wanted(&spans) {
                return found;
            }
            let waited = self.kept.more.wait_timeout(spans, PATIENCE).unwrap_or_else(PoisonError::into_inner);
            assert!(!waited.1.timed_out(), "never {what}: {:#?}", waited.0);
            spans = waited.0;
        }
    }

    /// Waits for a span of this name in this trace.
    pub fn span(&self, trace_id: &str, name: &str) -> CollectedSpan {
        self.until(&format!("{name} in {trace_id}"), |spans| {
            spans.iter().find(|span| span.trace_id == trace_id && span.name == name).cloned()
        })
    }

    /// Waits for the span of this name that is part of another one in this trace.
    pub fn part(&self, trace_id: &str, of: &str, name: &str) -> CollectedSpan {
        self.until(&format!("{name} in {of} in {trace_id}"), |spans| {
            let is_it = |span: &&CollectedSpan| span.parent_id == of && span.name == name;
            spans.iter().filter(|span| span.trace_id == trace_id).find(is_it).cloned()
        })
    }
}

fn serve(stream: TcpStream, kept: &Kept) -> std::io::Result<()> {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone()?), stream);
    loop {
        let (mut head, mut length) = (String::new(), 0);
        while reader.read_line(&mut head)? > 0 && !head.ends_with("\r\n\r\n") {}
        if head.is_empty() {
            return Ok(());
        }
        for line in head.to_ascii_lowercase().lines() {
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let is_otlp = head.starts_with("POST /v1/traces ") && head.contains("application/x-protobuf");
        let status = if is_otlp { "200 OK" } else { "400 Bad Request" };
        if is_otlp {
            let mut spans = kept.spans.lock().unwrap_or_else(PoisonError::into_inner);
            spans.extend(spans_of(&body));
            kept.more.notify_all();
        }
        writer.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes())?;
    }
}

/// `ExportTraceServiceRequest`.
fn spans_of(request: &[u8]) -> Vec<CollectedSpan> {
    let mut spans = Vec::new();
    for resource_spans in parts(request, 1) {
        let resource = parts(resource_spans, 1).next().unwrap_or_default();
        let service = attributes(resource, 1).remove("service.name").unwrap_or_default();
        for scope_spans in parts(resource_spans, 2) {
            spans.extend(
                parts(scope_spans, 2)
                    .map(|bytes| CollectedSpan { service: service.clone(), ..span_of(bytes) }),
            );
        }
    }
    spans
}

/// `Span`.
fn span_of(bytes: &[u8]) -> CollectedSpan {
    let text = |number| String::from_utf8_lossy(parts(bytes, number).next().unwrap_or_default()).into_owned();
    let id = |number| hex(parts(bytes, number).next().unwrap_or_default());
    let status = parts(bytes, 15).next().unwrap_or_default();
    CollectedSpan {
        service: String::new(),
        trace_id: id(1),
        span_id: id(2),
        parent_id: id(4),
        name: text(5),
        kind: number(bytes, 6),
        start_ns: number(bytes, 7),
        end_ns: number(bytes, 8),
        attributes: attributes(bytes, 9),
        status: number(status, 3),
    }
}

/// The `KeyValue`s of a field: texts and whole numbers.
fn attributes(message: &[u8], field: u64) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let pair = |pair: &[u8]| {
        let key = text(parts(pair, 1).next().unwrap_or_default());
        let value = parts(pair, 2).next().unwrap_or_default();
        let value = parts(value, 1).next().map_or_else(|| number(value, 3).to_string(), text);
        (key, value)
    };
    parts(message, field).map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Every field of a message with its number; stops at what it does not understand.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    let mut fields = Vec::new();
    while let Some(key) = varint(&mut bytes) {
        let field = match key & 7 {
            0 => varint(&mut bytes).map(Field::Number),
            1 => fixed(&mut bytes, 8).map(Field::Number),
            2 => varint(&mut bytes)
                .and_then(|length| bytes.split_at_checked(usize::try_from(length).ok()?))
                .map(|(piece, rest)| {
                    bytes = rest;
                    Field::Bytes(piece)
                }),
            5 => fixed(&mut bytes, 4).map(Field::Number),
            _ => None,
        };
        let Some(field) = field else { break };
        fields.push((key >> 3, field));
    }
    fields
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

fn fixed(bytes: &mut &[u8], length: usize) -> Option<u64> {
    let (piece, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(piece.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

fn parts(message: &[u8], wanted: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).into_iter().filter_map(move |(number, field)| match field {
        Field::Bytes(bytes) if number == wanted => Some(bytes),
        _ => None,
    })
}

fn number(message: &[u8], wanted: u64) -> u64 {
    fields(message)
        .into_iter()
        .find_map(|(number, field)| match field {
            Field::Number(value) if number == wanted => Some(value),
            _ => None,
        })
        .unwrap_or(0)
}
