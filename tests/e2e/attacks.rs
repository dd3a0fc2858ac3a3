//! Attacks that a server on a network has to shrug off: slow connections (F15), floods of bytes and frames (F16), ten times
//! the load it can carry (F18), and a log that nobody reads (F19).

use std::cell::Cell;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use leasehold_tests::{Http, Seed, Server, StopOnDrop, Stopwatch, binary, free_port, until};
use serde_json::json;

const MIB: u64 = 1 << 20;
/// What an attack may cost the server at the most.
const MEMORY: u64 = 64 * MIB;
const PATIENCE: Duration = Duration::from_secs(60);

fn start(dir: &tempfile::TempDir) -> Server {
    Server::start(&dir.path().join("data"))
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// The slowest but one of 100 renewals.
fn p99_once(http: &mut Http, lease: &str) -> Duration {
    let mut took: Vec<_> = (0..100)
        .map(|_| {
            let watch = Stopwatch::start();
            let answer = http.post(&format!("/v1/locks/{lease}/renew"), &json!({})).unwrap();
            assert_eq!(answer.status, 200, "{}", answer.body);
            watch.elapsed()
        })
        .collect();
    took.sort_unstable();
    took[98]
}

/// The best of five, so that what else runs on the machine is left out.
fn p99(http: &mut Http, lease: &str) -> Duration {
    (0..5).map(|_| p99_once(http, lease)).min().unwrap()
}

/// Measures until the promise is kept, by a ratio of times. What else the machine does between two measurements makes single
/// ratios worse; an attack that costs too much makes all of them. On a machine that is busy all the time no ratio of times
/// says anything: there the same promise must hold for the processor time of the server, which nobody else can take (`cost`,
/// which has to stay below `most_cost`). By hand (`LEASEHOLD_STRICT`) that is not enough.
fn is_kept_once(
    what: &str,
    promised: &str,
    mut measure: impl FnMut() -> (f64, bool),
    (cost, most_cost): (impl FnOnce() -> f64, f64),
) {
    let mut seen = Vec::new();
    for _ in 0..6 {
        let (ratio, kept) = measure();
        seen.push(ratio);
        if kept {
            println!("{what}: {ratio:.2}, promised {promised}, seen {seen:.2?}");
            return;
        }
    }
    assert!(
        std::env::var_os("LEASEHOLD_STRICT").is_none(),
        "{what}: promised {promised}, measured {seen:.2?}"
    );
    let cost = cost();
    println!("{what}: promised {promised}, measured {seen:.2?}; {cost:.2} times the processor time");
    assert!(cost < most_cost, "{what}: {seen:.2?}, and {cost:.2} times the processor time");
}

/// Below this a ratio says more of the machine than of us.
const GRAIN: Duration = Duration::from_millis(5);

#[test]
fn five_hundred_slow_connections_slow_nobody_down() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir);
    let (mut http, lease) = (server.http(), Seed::from_env(15).uuid());
    http.acquire("held", &lease, 600_000).unwrap();
    let (mut before, mut during) = (Duration::MAX, Duration::MAX);
    let measure = || {
        // The best of all so far: whatever else the machine does makes a renewal slower, never faster.
        before = before.min(p99(&mut http, &lease)).max(GRAIN);
        let slow = slow_connections(&server, 500);
        during = during.min(p99(&mut http, &lease));
        drop(slow);
        let ratio = during.as_secs_f64() / before.as_secs_f64();
        (ratio, ratio < 2.0)
    };
    let cost = || {
        let alone = renewal_cost(&server, &lease);
        let _slow = slow_connections(&server, 500);
        renewal_cost(&server, &lease) / alone
    };
    is_kept_once("p99 beside 500 slow connections", "below 2 times that without", measure, (cost, 2.0));
}

/// Processor time of the server for a renewal, in seconds: the least of three measurements.
fn renewal_cost(server: &Server, lease: &str) -> f64 {
    // Many, since processor time is counted in hundredths of a second.
    const RENEWALS: u32 = 4_000;
    let mut http = server.http();
    let cost = |http: &mut Http| {
        let before = server.processor_time();
        for _ in 0..RENEWALS {
            assert_eq!(http.post(&format!("/v1/locks/{lease}/renew"), &json!({})).unwrap().status, 200);
        }
        (server.processor_time() - before).as_secs_f64() / f64::from(RENEWALS)
    };
    (0..3).map(|_| cost(&mut http)).fold(f64::MAX, f64::min)
}

/// Connections that never come to an end: without a first byte, in the head, in the body, in the answer.
fn slow_connections(server: &Server, number: usize) -> Vec<TcpStream> {
    let beginnings: [&[u8]; 5] = [
        b"",
        b"GET /v1/status HTTP/1.1\r\nhost: localh",
        b"POST /v1/locks/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 900\r\n\r\n{",
        b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ];
    (0..number)
        .map(|number| {
            let mut stream = connect(server);
            stream.write_all(beginnings[number % beginnings.len()]).unwrap();
            stream
        })
        .collect()
}

/// Runs an attack, and checks that the server is well afterwards and has not grown.
fn withstands(server: &Server, what: &str, attack: impl FnOnce(&Server)) {
    let before = server.resident_bytes();
    attack(server);
    let answer = server.http().get("/healthz").unwrap();
    assert_eq!(answer.status, 200, "after {what}");
    let grown = server.resident_bytes().saturating_sub(before);
    assert!(grown < MEMORY, "{what}: {} MiB more", grown / MIB);
}

/// Sends until the server has had enough, and gives what it said.
fn pour(server: &Server, head: &str, piece: &[u8], most_bytes: u64) -> String {
    let mut stream = connect(server);
    stream.write_all(head.as_bytes()).unwrap();
    let mut poured = 0;
    while poured < most_bytes && stream.write_all(piece).is_ok() {
        poured += piece.len() as u64;
    }
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    assert!(poured < most_bytes || !said.is_empty(), "all of it was taken");
    String::from_utf8_lossy(&said).into_owned()
}

const POST: &str = "POST /v1/locks/acquire HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";

#[test]
fn floods_of_bytes_are_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir);
    let piece = vec![b'x'; MIB as usize];
    withstands(&server, "a body of 1 GiB", |server| {
        let said = pour(server, &format!("{POST}content-length: {}\r\n\r\n", 1 << 30), &piece, 1 << 30);
        assert!(said.starts_with("HTTP/1.1 413") || said.is_empty(), "{said}");
    });
    withstands(&server, "a body without end", |server| {
        let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
        let said = pour(server, &format!("{POST}transfer-encoding: chunked\r\n\r\n"), &chunk, 1 << 30);
        assert!(said.starts_with("HTTP/1.1 413") || said.is_empty(), "{said}");
    });
    withstands(&server, "deep JSON", |server| {
        for open in ["[", "{\"a\":"] {
            let body = open.repeat(60_000 / open.len());
            let answer = server.http().call("POST", "/v1/locks/acquire", Some(&body)).unwrap();
            assert_eq!(answer.status, 400, "{}", answer.body);
        }
    });
    withstands(&server, "a name of 1 MB", |server| {
        let body = json!({"resource": "n".repeat(1_000_000), "ownerId": "w"}).to_string();
        let answer = server.http().call("POST", "/v1/locks/acquire", Some(&body)).unwrap();
        assert_eq!(answer.status, 413);
        let head = format!("GET /v1/resources/{} HTTP/1.1\r\nhost: x\r\n\r\n", "n".repeat(1_000_000));
        let said = pour(server, "", head.as_bytes(), 1 << 30);
        let status = said.split(' ').nth(1).unwrap_or("431");
        assert!(matches!(status, "400" | "414" | "431"), "{said}");
    });
}

/// A frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// `GET /v1/events` of `localhost`, which never ends by itself.
fn endless_request() -> Vec<u8> {
    let path = b"/v1/events";
    let host = b"localhost";
    let literal = |name: u8, value: &[u8]| [&[name, value.len() as u8][..], value].concat();
    [vec![0x82, 0x86], literal(0x04, path), literal(0x41, host)].concat()
}

fn http2(server: &Server) -> TcpStream {
    let mut stream = connect(server);
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, b"")].concat();
    stream.write_all(&begin).unwrap();
    // What the server says is read and dropped, so that it is never held up by us.
    let mut reader = stream.try_clone().unwrap();
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    stream
}

#[test]
fn floods_of_frames_end_their_connection_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir);
    withstands(&server, "rapid reset", |server| {
        let mut stream = http2(server);
        for number in 0..50_000_u32 {
            let id = 2 * number + 1;
            let request = frame(HEADERS, END_HEADERS | END_STREAM, id, &endless_request());
            let reset = frame(RST_STREAM, 0, id, &8_u32.to_be_bytes());
            if stream.write_all(&[request, reset].concat()).is_err() {
                break;
            }
        }
    });
    withstands(&server, "a flood of CONTINUATION", |server| {
        let mut stream = http2(server);
        let _ = stream.write_all(&frame(HEADERS, END_STREAM, 1, &[0x82, 0x86]));
        let piece = frame(CONTINUATION, 0, 1, &[0; 16_000]);
        let poured = (0..100_000).take_while(|_| stream.write_all(&piece).is_ok()).count();
        assert!(poured < 100_000, "1.6 GB of headers were taken");
    });
    withstands(&server, "ten thousand streams", |server| {
        let mut stream = http2(server);
        for number in 0..10_000_u32 {
            let request = frame(HEADERS, END_HEADERS | END_STREAM, 2 * number + 1, &endless_request());
            if stream.write_all(&request).is_err() {
                break;
            }
        }
    });
}

/// Frames without a meaning, which HTTP/2 wants ignored: nobody is refused, so everybody must have a turn.
#[test]
fn floods_of_empty_frames_hold_nobody_up() {
    /// What a call takes beside them, also on a busy machine: 4 to 8 ms on a quick one, 23 to 46 on one that was slow. Where a connection is
    /// read for as long as there is something to read it takes 300 and more on a quick one, until the server seems to be stuck and cuts them.
    const SOON: Duration = Duration::from_millis(100);
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir);
    let (mut http, lease) = (server.http(), Seed::from_env(16).uuid());
    http.acquire("held", &lease, 600_000).unwrap();
    let mut seen = Vec::new();
    let is_kept = (0..6).any(|_| {
        let over = AtomicBool::new(false);
        let beside = std::thread::scope(|scope| {
            let _over = StopOnDrop(&over);
            let floods = (0..64).map(|_| http2(&server)).collect();
            scope.spawn(|| flood(floods, &over));
            p99_once(&mut http, &lease)
        });
        seen.push(beside);
        beside < SOON
    });
    assert!(is_kept, "p99 of a renewal beside a flood of frames: {seen:.1?}");
}

/// Sends empty frames of an unknown kind on all of them, as many as they take.
fn flood(mut streams: Vec<TcpStream>, over: &AtomicBool) {
    const UNKNOWN: u8 = 0xfa;
    let piece = frame(UNKNOWN, 0, 0, b"").repeat(16_000);
    streams.iter().for_each(|stream| stream.set_nonblocking(true).unwrap());
    // Where a piece was cut, the next goes on.
    let mut taken = vec![0; streams.len()];
    while !over.load(Relaxed) {
        for (stream, taken) in streams.iter_mut().zip(&mut taken) {
            *taken = (*taken + stream.write(&piece[*taken..]).unwrap_or(0)) % piece.len();
        }
    }
}

/// What so many clients that acquire and release get done.
struct Goodput {
    /// Whole cycles in a second.
    rate: f64,
    /// Processor time of the server for one, in seconds.
    cost: f64,
}

fn goodput(server: &Server, clients: usize, length: Duration) -> Goodput {
    let (done, watch, before) = (AtomicU64::new(0), Stopwatch::start(), server.processor_time());
    std::thread::scope(|scope| {
        for client in 0..clients {
            let done = &done;
            scope.spawn(move || {
                let (mut http, mut seed) = (server.http(), Seed::from_env(1_800 + client as u64));
                while watch.elapsed() < length {
                    let lease = seed.uuid();
                    let Ok(answer) = http.acquire(&format!("load/{client}"), &lease, 10_000) else {
                        continue;
                    };
                    if answer.is_acquired()
                        && http.delete(&format!("/v1/locks/{lease}")).is_ok_and(|answer| answer.status == 200)
                    {
                        done.fetch_add(1, Relaxed);
                    }
                }
            });
        }
    });
    let (done, spent) = (done.load(Relaxed) as f64, server.processor_time() - before);
    Goodput { rate: done / watch.elapsed().as_secs_f64(), cost: spent.as_secs_f64() / done }
}

#[test]
fn ten_times_the_load_loses_no_live_session() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(&dir);
    let sessions: Vec<String> = (0..20)
        .map(|_| {
            let opened =
                server.http().post("/v1/sessions", &json!({"ownerId": "w", "ttlMs": 60_000})).unwrap();
            opened.json()["sessionId"].as_str().unwrap().to_owned()
        })
        .collect();
    let (over, renewals) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut http = server.http();
            while !over.load(Relaxed) {
                for session in &sessions {
                    let answer = http.post(&format!("/v1/sessions/{session}/renew"), &json!({})).unwrap();
                    assert_eq!(answer.status, 200, "a live session was lost: {}", answer.body);
                    renewals.fetch_add(1, Relaxed);
                }
            }
        });
        // The sessions are renewed all the time, also when this fails.
        let _over = StopOnDrop(&over);
        let least = Cell::new((f64::MAX, f64::MAX));
        let measure = || {
            let peak = goodput(&server, 8, Duration::from_secs(2));
            let over = goodput(&server, 80, Duration::from_secs(3));
            least.set((least.get().0.min(peak.cost), least.get().1.min(over.cost)));
            let ratio = over.rate / peak.rate;
            (ratio, ratio >= 0.8)
        };
        let cost = || least.get().1 / least.get().0;
        is_kept_once("goodput at 10 times the load", "at least 0.8 of the peak", measure, (cost, 1.0 / 0.8));
    });
    assert!(renewals.load(Relaxed) >= 20, "every session was renewed");
    assert_eq!(server.http().get("/v1/sessions").unwrap().json()["sessions"].as_array().unwrap().len(), 20);
}

#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    let dir = tempfile::tempdir().unwrap();
    let port = free_port();
    // Its standard error is a pipe that is never read: full after 64 KiB.
    let mut process = Command::new(binary::path())
        .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"])
        .arg(dir.path().join("data"))
        .env("LEASEHOLD_LOG", "debug")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut http = Http::new(port);
    until("a server to be ready", PATIENCE, || {
        http.get("/readyz").ok().filter(|answer| answer.status == 200)
    });
    let mut seed = Seed::from_env(19);
    for number in 0..1_000 {
        let lease = seed.uuid();
        let granted = http.acquire(&format!("a/{number}"), &lease, 10_000).unwrap();
        assert!(granted.is_acquired(), "{}", granted.body);
        assert_eq!(http.delete(&format!("/v1/locks/{lease}")).unwrap().status, 200);
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let mut stuck = Vec::new();
    process.stderr.take().unwrap().read_to_end(&mut stuck).unwrap();
    assert!(stuck.len() > 32 * 1024, "the pipe was full: {} bytes", stuck.len());
}
