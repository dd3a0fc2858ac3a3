//! Logs: one line for everything that happens to a lock, and for the life of the server. JSON for machines, plain text
//! on a terminal.
//!
//! Nobody who logs ever waits (N9): lines and lock events go through a bounded channel to a thread of its own, which
//! formats and writes. When that thread cannot keep up, or its output is blocked, lines are dropped and counted.

mod lock_line;

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use leasehold_core::{Event, EventKind};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::config::ConfigError;
use lock_line::write_lock_event;

/// Lines that may wait to be written: a second of full load.
const LINES: usize = 65_536;
/// Lines written with one call.
const WRITE_TOGETHER: usize = 1_024;
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
    Lock(Box<Event>),
    Flush(SyncSender<()>),
}

/// The way to the log. Cheap to clone; never blocks.
#[derive(Clone, Debug)]
pub struct LogSink {
    lines: Option<SyncSender<Line>>,
    dropped: Arc<AtomicU64>,
}

impl LogSink {
    /// Forgets everything.
    pub fn none() -> Self {
        Self { lines: None, dropped: Arc::default() }
    }

    /// Writes to `output` on a thread of its own.
    ///
    /// # Errors
    /// The operating system gives no thread.
    pub fn to(output: impl Write + Send + 'static, format: LogFormat) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(LINES);
        std::thread::Builder::new()
            .name("leasehold-log".into())
            .spawn(move || write_lines(&waiting, output, format))?;
        Ok(Self { lines: Some(lines), dropped: Arc::default() })
    }

    /// Lines that were lost.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Relaxed)
    }

    /// Logs what happened to a lock.
    pub(crate) fn lock_event(&self, event: &Event) {
        if self.lines.is_some() {
            self.send(Line::Lock(Box::new(event.clone())));
        }
    }

    /// Waits, but not for long, until everything handed in so far is written.
    pub fn flush(&self) {
        let (done, written) = sync_channel(1);
        self.send(Line::Flush(done));
        // A blocked output may not hold up the end of the process.
        let _ = written.recv_timeout(FLUSH);
    }

    fn send(&self, line: Line) {
        if let Some(lines) = &self.lines
            && let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = lines.try_send(line)
        {
            self.dropped.fetch_add(1, Relaxed);
        }
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

fn write_lines(waiting: &Receiver<Line>, mut output: impl Write, format: LogFormat) {
    let mut text = Vec::new();
    let mut flushed: Vec<SyncSender<()>> = Vec::new();
    while let Ok(first) = waiting.recv() {
        for line in std::iter::once(first).chain(waiting.try_iter().take(WRITE_TOGETHER)) {
            match line {
                Line::Text(line) => text.extend_from_slice(&line),
                Line::Lock(event) => write_lock_event(&mut text, &event, format),
                Line::Flush(done) => flushed.push(done),
            }
        }
        // A log that cannot be written must not stop the service; there is nowhere to complain.
        drop(output.write_all(&text).and_then(|()| output.flush()));
        text.clear();
        // Whoever asked may have stopped waiting.
        for done in flushed.drain(..) {
            let _ = done.try_send(());
        }
        std::thread::park_timeout(REST);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc::channel;

    use leasehold_types::{
        EndReason, FencingToken, LeaseId, Mode, OwnerId, ResourceKey, ResourceName, TenantName, ids,
    };

    use super::*;

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
        }
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
        sink.lock_event(&ended);
        sink.flush();
        let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.trim_end()).unwrap();
        assert_eq!(line["event"], "lock_force_released");
        assert_eq!(line["leaseId"], ended.lease_id.short());
        assert_eq!((&line["fencingToken"], &line["heldMs"]), (&7.into(), &42.into()));
        assert!(!text.contains(&ended.lease_id.to_string()), "the capability stays out of logs");
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
        let granted = event(EventKind::Granted { waited_ms: 0 });
        for _ in 0..LINES + 3 * WRITE_TOGETHER {
            sink.lock_event(&granted);
        }
        assert!(sink.dropped() > 0);
        drop(unblock);
    }
}
