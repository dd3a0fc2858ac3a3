//! Logs: one line for everything that happens to a lock, and for the life of the server. JSON for machines, plain text
//! on a terminal.
//!
//! Nobody who logs ever waits (N9): lines and lock events go through a bounded channel to a thread of its own, which
//! formats and writes. When that thread cannot keep up, or its output is blocked, lines are dropped and counted.

mod lock_line;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use leasehold_core::EventKind;
use leasehold_node::Happened;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::ConfigError;
use lock_line::write_lock_event;

/// Lines that may wait to be written: a second of full load.
const LINES: usize = 65_536;
/// Bytes beyond which no more lines are written with the same call.
const WRITE_TOGETHER: usize = 256 << 10;
/// The writer rests this long after each write, so that under load it is woken for many lines and not for each.
const REST: Duration = Duration::from_millis(5);
/// How long a flush at the end may take.
const FLUSH: Duration = Duration::from_secs(1);
/// The target of lock events in log directives.
const LOCKS: &str = "leasehold::locks";

/// How lines look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Plain,
}

enum Line {
    Text(Vec<u8>),
    /// Those of a commit that are to be logged, and how many they are.
    Locks(Arc<[Happened]>, LockLevels, usize),
    Flush(SyncSender<()>),
}

/// The way to the log. Cheap to clone; never blocks.
#[derive(Clone, Debug)]
pub struct LogSink {
    lines: Option<SyncSender<Line>>,
    /// Lines about locks that wait: one commit can be many.
    waiting: Arc<AtomicUsize>,
    dropped: Arc<AtomicU64>,
}

impl LogSink {
    /// Forgets everything.
    pub fn none() -> Self {
        Self { lines: None, waiting: Arc::default(), dropped: Arc::default() }
    }

    /// Writes to `output` on a thread of its own.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn to(output: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        let (lines, received) = sync_channel(LINES);
        let waiting = Arc::<AtomicUsize>::default();
        let writer = LineWriting { format, waiting: Arc::clone(&waiting), text: Vec::new() };
        std::thread::Builder::new()
            .name("leasehold-log".into())
            .spawn(move || writer.write_all(&received, output))?;
        Ok(Self { lines: Some(lines), waiting, dropped: Arc::default() })
    }

    /// Lines that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Logs what happened to locks, as far as `levels` say.
    pub(crate) fn lock_events(&self, events: &Arc<[Happened]>, levels: LockLevels) {
        let count = events.iter().filter(|happened| levels.has(happened.event.kind)).count();
        if self.lines.is_none() || count == 0 {
            return;
        }
        if self.waiting.fetch_add(count, Relaxed) + count > LINES {
            self.waiting.fetch_sub(count, Relaxed);
            self.dropped.fetch_add(count as u64, Relaxed);
            return;
        }
        if !self.send(Line::Locks(Arc::clone(events), levels, count)) {
            self.waiting.fetch_sub(count, Relaxed);
        }
    }

    /// Waits, but not for long, until everything handed in so far is written.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        self.send(Line::Flush(done));
        // A blocked output may not hold up the end of the process.
        let _ = written.recv_timeout(FLUSH);
    }

    /// Whether it will be written.
    fn send(&self, line: Line) -> bool {
        let Some(lines) = &self.lines else { return false };
        let Err(TrySendError::Full(line) | TrySendError::Disconnected(line)) = lines.try_send(line) else {
            return true;
        };
        let lost = if let Line::Locks(_, _, count) = line { count } else { 1 };
        self.dropped.fetch_add(lost as u64, Relaxed);
        false
    }
}

/// One line of the tracing subscriber.
#[derive(Debug)]
pub struct LineWriter {
    sink: LogSink,
    line: Vec<u8>,
}

impl Write for LineWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for LineWriter {
    fn drop(&mut self) {
        self.sink.send(Line::Text(std::mem::take(&mut self.line)));
    }
}

impl<'a> MakeWriter<'a> for LogSink {
    type Writer = LineWriter;

    fn make_writer(&'a self) -> LineWriter {
        LineWriter { sink: self.clone(), line: Vec::new() }
    }
}

/// Sends the lines of this process to standard error, as `directives` choose. Call once.
///
/// # Errors
/// Directives that make no sense, or no thread to write with.
pub fn init(directives: &str) -> Result<LogSink, ConfigError> {
    let filter =
        EnvFilter::try_new(directives).map_err(|error| ConfigError::new("log", error.to_string()))?;
    let format = if io::stderr().is_terminal() { LogFormat::Plain } else { LogFormat::Json };
    let sink =
        LogSink::to(io::stderr(), format).map_err(|error| ConfigError::new("log", error.to_string()))?;
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(sink.clone()).with_ansi(false);
    let set = match format {
        LogFormat::Json => lines.json().flatten_event(true).with_target(false).try_init(),
        LogFormat::Plain => lines.with_target(false).try_init(),
    };
    // Somebody who embeds the server may have chosen a subscriber before: then that one has the lines.
    drop(set);
    Ok(sink)
}

/// Which lock events are logged, as far as the directives say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct LockLevels {
    grants_and_endings: bool,
    everything: bool,
}

impl LockLevels {
    /// As the subscriber of this process has it.
    pub(crate) fn of_subscriber() -> Self {
        Self {
            grants_and_endings: tracing::enabled!(target: LOCKS, tracing::Level::INFO),
            everything: tracing::enabled!(target: LOCKS, tracing::Level::DEBUG),
        }
    }

    /// Whether this event is logged.
    pub(crate) const fn has(self, kind: EventKind) -> bool {
        if kind.is_journaled() { self.grants_and_endings } else { self.everything }
    }
}

/// The writing thread's side.
struct LineWriting {
    format: LogFormat,
    waiting: Arc<AtomicUsize>,
    text: Vec<u8>,
}

impl LineWriting {
    fn write_all(mut self, received: &Receiver<Line>, mut output: impl Write) {
        let mut flushed: Vec<SyncSender<()>> = Vec::new();
        while let Ok(first) = received.recv() {
            let mut next = Some(first);
            while let Some(line) = next {
                flushed.extend(self.add(line));
                let has_room = self.text.len() < WRITE_TOGETHER;
                next = if has_room { received.try_recv().ok() } else { None };
            }
            // A log that cannot be written must not stop the service; there is nowhere to complain.
            drop(output.write_all(&self.text).and_then(|()| output.flush()));
            self.text.clear();
            // Whoever asked may have stopped waiting.
            for done in flushed.drain(..) {
                let _ = done.try_send(());
            }
            std::thread::park_timeout(REST);
        }
    }

    /// Whoever is to be told when everything so far is written.
    fn add(&mut self, line: Line) -> Option<SyncSender<()>> {
        match line {
            Line::Text(line) => self.text.extend_from_slice(&line),
            Line::Locks(events, levels, count) => {
                for happened in events.iter().filter(|happened| levels.has(happened.event.kind)) {
                    write_lock_event(&mut self.text, happened, self.format);
                }
                self.waiting.fetch_sub(count, Relaxed);
            }
            Line::Flush(done) => return Some(done),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use leasehold_core::Event;
    use leasehold_types::{
        EndReason, FencingToken, LeaseId, Mode, OwnerId, ResourceKey, ResourceName, TenantName, WallTime, ids,
    };

    use super::*;

    const ALL: LockLevels = LockLevels { grants_and_endings: true, everything: true };

    fn event(kind: EventKind) -> Event {
        Event {
            kind,
            resource: ResourceKey::new(
                &TenantName::default_tenant(),
                &ResourceName::new("billing/close").unwrap(),
            ),
            owner: OwnerId::new("ann@host:1").unwrap(),
            lease_id: LeaseId::from_bytes(ids::random()),
            token: FencingToken::new(7).ok(),
            mode: Mode::Exclusive,
            permit: None,
            ttl_ms: 15_000,
            session: None,
        }
    }

    fn commit(event: &Event) -> Arc<[Happened]> {
        [Happened { id: None, at: WallTime(1), event: event.clone() }].into()
    }

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lock_events_are_lines_with_a_shortened_lease_id() {
        let output = Shared::default();
        let sink = LogSink::to(output.clone(), LogFormat::Json).unwrap();
        let ended = event(EventKind::Ended { reason: EndReason::Forced, max_hold: false, held_ms: 42 });
        sink.lock_events(&commit(&ended), ALL);
        sink.flush();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(
            line["timestamp"], "1970-01-01T00:00:00.001Z",
            "when it happened, not when it was written"
        );
        assert_eq!(line["event"], "lock_force_released");
        assert_eq!(line["leaseId"], ended.lease_id.short());
        assert_eq!((&line["fencingToken"], &line["heldMs"]), (&7.into(), &42.into()));
        assert!(!text.contains(&ended.lease_id.to_string()), "the capability stays out of logs");
    }

    #[test]
    fn events_below_the_level_are_no_lines() {
        let output = Shared::default();
        let sink = LogSink::to(output.clone(), LogFormat::Json).unwrap();
        let levels = LockLevels { grants_and_endings: true, everything: false };
        let mut events = commit(&event(EventKind::Queued)).to_vec();
        events.extend_from_slice(&commit(&event(EventKind::Granted { waited_ms: 0 })));
        sink.lock_events(&events.into(), levels);
        sink.flush();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        assert!(text.contains("lock_acquired") && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn a_blocked_output_loses_lines_and_holds_nobody_up() {
        struct Blocked(std::sync::mpsc::Receiver<()>);
        impl Write for Blocked {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                // Until the test ends.
                let _ = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (unblock, blocked) = channel();
        let sink = LogSink::to(Blocked(blocked), LogFormat::Plain).unwrap();
        let granted = commit(&event(EventKind::Granted { waited_ms: 0 }));
        for _ in 0..2 * LINES {
            sink.lock_events(&granted, ALL);
        }
        assert!(sink.dropped() > 0);
        drop(unblock);
    }
}
