//! F12: watchers that read slowly, and watchers that hang up and come back all the time. Nobody misses an event without
//! being told, nobody is shown one twice, and those who work notice nothing.
//!
//! `cargo xtask drill watchers EVENTS` runs it for longer.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use leasehold_history::Record;
use leasehold_tests::{Http, Seed, Server, Story, until};

const EVENTS: u64 = 1_000;
/// Those who come back all the time, beside one that stays and one that begins to read when all is over.
const RESTLESS: u64 = 18;
const WORKERS: u64 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// Longer than any drill.
const DRILL: Duration = Duration::from_secs(24 * 3_600);
/// What is taken when everything else is done: whoever has seen it has seen all.
const LAST: &str = "last";

/// How a watcher reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// One connection from the beginning to the end.
    Steady,
    /// Hangs up after at most so many events, and resumes.
    Restless(u64),
    /// Connects at the beginning, and reads nothing until all is over.
    Late,
}

/// One watcher, over all its connections.
struct Watcher<'a> {
    name: String,
    port: u16,
    story: &'a Story,
    /// The last event that it was shown.
    last: String,
    connections: u64,
}

/// Why a watcher stopped reading.
#[derive(PartialEq, Eq)]
enum Pause {
    /// It has seen the last event.
    Done,
    /// It has read enough for now, or the server has closed the connection.
    HungUp,
}

#[test]
fn nobody_misses_an_event_without_being_told() {
    let seed = Seed::from_env(1_732);
    let events: u64 = std::env::var("LEASEHOLD_EVENTS").map_or(EVENTS, |text| text.parse().unwrap());
    println!("to repeat: LEASEHOLD_SEED={} cargo xtask drill watchers {events}", seed.number());
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let (story, made) = (Story::begin("watchers"), AtomicU64::new(0));
    let (over, given_up) = (AtomicBool::new(false), AtomicBool::new(false));
    let restless = (0..RESTLESS).map(|number| Manner::Restless(1 + seed.part(number).below(40)));
    let manners: Vec<Manner> = [Manner::Steady, Manner::Late].into_iter().chain(restless).collect();
    let connections: u64 = std::thread::scope(|scope| {
        let _given_up = OnPanic(&given_up);
        let watchers: Vec<_> = manners
            .iter()
            .enumerate()
            .map(|(number, manner)| {
                let (story, over, given_up, port) = (&story, &over, &given_up, server.port());
                let name = format!("w{number}");
                let mut watcher = Watcher { name, port, story, last: "0.0".into(), connections: 0 };
                scope.spawn(move || watcher.watch(*manner, over, given_up))
            })
            .collect();
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (made, http, seed) = (&made, server.http(), seed.part(1_000 + number));
                scope.spawn(move || work(http, number, seed, made, events))
            })
            .collect();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
        let last = server.http().acquire(LAST, &seed.part(2_000).uuid(), 600_000).unwrap();
        assert!(last.is_acquired(), "{}", last.body);
        over.store(true, Ordering::Relaxed);
        watchers.into_iter().map(|watcher| watcher.join().unwrap()).sum()
    });
    assert!(
        connections > manners.len() as u64 + RESTLESS,
        "only {connections} connections: nobody came back"
    );
    let verdict = story.judge();
    println!("{} events, {} watchers, {connections} connections", made.into_inner(), manners.len());
    let examined = verdict.examined.iter().find(|(promise, _)| promise.to_string() == "S14");
    assert!(examined.is_some_and(|(_, count)| *count >= events), "too little was seen: {examined:?}");
}

/// When a worker has failed nobody waits for the last event any more.
struct OnPanic<'a>(&'a AtomicBool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        self.0.store(std::thread::panicking(), Ordering::Relaxed);
    }
}

/// Takes and gives back until so many events were made: two of them each time.
fn work(mut http: Http, number: u64, mut seed: Seed, made: &AtomicU64, events: u64) {
    while made.fetch_add(2, Ordering::Relaxed) < events {
        let lease = seed.uuid();
        let granted = http.acquire(&format!("watched/{number}"), &lease, 600_000).unwrap();
        assert!(granted.is_acquired(), "{}", granted.body);
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        assert_eq!(released.status, 200, "{}", released.body);
    }
}

impl Watcher<'_> {
    /// Watches until it has seen the last event; how often it connected.
    fn watch(&mut self, manner: Manner, over: &AtomicBool, given_up: &AtomicBool) -> u64 {
        let most = match manner {
            Manner::Restless(most) => most,
            Manner::Steady | Manner::Late => u64::MAX,
        };
        loop {
            let stream = self.connect();
            if manner == Manner::Late {
                let is_over = || over.load(Ordering::Relaxed) || given_up.load(Ordering::Relaxed);
                until("all to be over", DRILL, || is_over().then_some(()));
            }
            if self.read(stream, most) == Pause::Done || given_up.load(Ordering::Relaxed) {
                return self.connections;
            }
        }
    }

    fn connect(&mut self) -> BufReader<TcpStream> {
        self.connections += 1;
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let request =
            format!("GET /v1/events HTTP/1.1\r\nhost: 127.0.0.1\r\nlast-event-id: {}\r\n\r\n", self.last);
        stream.write_all(request.as_bytes()).unwrap();
        BufReader::new(stream)
    }

    /// Reads at most so many events. A piece of the stream is one chunk, so that no line is torn by the coding around it.
    fn read(&mut self, mut stream: BufReader<TcpStream>, most: u64) -> Pause {
        let (mut event, mut id) = (String::new(), None);
        let mut seen = 0;
        while seen < most {
            let mut line = String::new();
            if !stream.read_line(&mut line).is_ok_and(|bytes| bytes > 0) {
                return Pause::HungUp;
            }
            let line = line.trim_end();
            if let Some(kind) = line.strip_prefix("event: ") {
                (event, id) = (kind.to_owned(), None);
            } else if let Some(text) = line.strip_prefix("id: ") {
                id = Some(text.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                seen += 1;
                self.shown(&event, id.take(), data);
                if data.contains(&format!("\"resource\":\"{LAST}\"")) {
                    return Pause::Done;
                }
            }
        }
        Pause::HungUp
    }

    fn shown(&mut self, event: &str, id: Option<String>, data: &str) {
        let (at, stream) = (self.story.at(), self.name.as_str().into());
        match id {
            Some(id) => {
                let (slot, n) = parts(&id);
                self.story.add(&Record::Event { at, stream, slot, n });
                self.last = id;
            }
            None if event == "compacted" => {
                let oldest: serde_json::Value = serde_json::from_str(data).unwrap();
                let (slot, _) = oldest["oldest"].as_str().map_or((0, 0), parts);
                self.story.add(&Record::Compacted { at, stream, slot });
            }
            // Events without an id may be missed.
            None => {}
        }
    }
}

fn parts(id: &str) -> (u64, u32) {
    let (slot, n) = id.split_once('.').unwrap_or_else(|| panic!("{id} is not slot.n"));
    (slot.parse().unwrap(), n.parse().unwrap())
}
