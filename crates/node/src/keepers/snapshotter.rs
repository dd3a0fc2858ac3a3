//! Makes snapshots beside the loop: reads the last snapshot and the committed slots after it, replays them into a state
//! of its own, and stores that. The live table is neither copied nor stopped.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use leasehold_core::codec;
use leasehold_journal::{Outcome, ReadError};
use tokio::runtime::Runtime;

use super::SnapshotStart;
use crate::replay::Replay;
use crate::{Clock, NodeConfig, Observer, StartError};

/// How much less the snapshotter's thread asks of the processor than the loop's: it is in no hurry.
const NICE: i32 = 10;

/// In a crash loop a snapshot is made before the node serves, or each restart would have more to replay than the last;
/// from so many bytes on, this part of what makes one due otherwise, since fewer are replayed in a moment.
const WORTH_IT: u64 = 8;

/// What the loop and the snapshotter share.
#[derive(Debug, Default)]
struct Gauge {
    /// Bytes of facts after the current snapshot. The loop adds, the snapshotter takes away.
    bytes: AtomicU64,
    /// The next snapshot is due at so many bytes; `u64::MAX` while one is being made.
    due_at: AtomicU64,
    stop: AtomicBool,
}

impl Gauge {
    /// Whether a snapshot that covers so many bytes, and stays `behind` the tail, covers nothing but what the loop knows to
    /// be committed.
    fn knows(&self, covered: u64, behind: u64) -> bool {
        self.bytes.load(Relaxed) >= covered + behind
    }
}

/// The thread.
pub(crate) struct Snapshotter {
    gauge: Arc<Gauge>,
    orders: SyncSender<()>,
    thread: JoinHandle<()>,
}

impl Snapshotter {
    pub(crate) fn start(
        config: &NodeConfig,
        start: SnapshotStart,
        clock: &Arc<dyn Clock>,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        let (orders, inbox) = sync_channel(1);
        let gauge = Arc::new(Gauge::default());
        gauge.bytes.store(start.bytes, Relaxed);
        let mut maker = Maker {
            gauge: Arc::clone(&gauge),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(StartError::Thread)?,
            at_least: config.snapshot_bytes,
            resume_bytes: config.resume_bytes,
            clock: Arc::clone(clock),
            observer: Arc::clone(observer),
            start,
        };
        let due_at = maker.due_after(maker.start.snapshot_bytes);
        gauge.due_at.store(due_at, Relaxed);
        let is_overdue = maker.start.is_in_a_crash_loop && maker.start.bytes >= due_at / WORTH_IT;
        let (serve, caught_up) = sync_channel::<Infallible>(0);
        let builder = std::thread::Builder::new().name("leasehold-keeper".to_owned());
        let thread = builder
            .spawn(move || {
                if is_overdue {
                    maker.make_next();
                }
                drop(serve);
                maker.run(&inbox);
            })
            .map_err(StartError::Thread)?;
        // Comes to its end when the other is dropped.
        let _ = caught_up.recv();
        Ok(Self { gauge, orders, thread })
    }

    /// Counts what the loop has committed, and orders a snapshot when one is due; never waits.
    pub(crate) fn committed(&self, bytes: usize) {
        let bytes = self.gauge.bytes.fetch_add(bytes as u64, Relaxed) + bytes as u64;
        if bytes >= self.gauge.due_at.load(Relaxed) {
            self.gauge.due_at.store(u64::MAX, Relaxed);
            // There is room: an order is given only after the last one was finished.
            let _ = self.orders.try_send(());
        }
    }

    /// Lets a snapshot that is being made end early, and does not wait for it.
    pub(crate) fn abandon(self) {
        self.gauge.stop.store(true, Relaxed);
    }

    pub(crate) fn finish(self) {
        self.gauge.stop.store(true, Relaxed);
        drop(self.orders);
        self.thread.join().expect("the snapshot thread does not panic");
    }
}

/// What runs on the thread.
struct Maker {
    gauge: Arc<Gauge>,
    runtime: Runtime,
    at_least: u64,
    resume_bytes: u64,
    clock: Arc<dyn Clock>,
    observer: Arc<dyn Observer>,
    start: SnapshotStart,
}

/// Why there is no snapshot.
enum Failure {
    /// The node stops.
    Stopped,
    Start(StartError),
    Store(ReadError),
    Install(Outcome),
}

impl Maker {
    fn run(mut self, orders: &Receiver<()>) {
        // Best effort: at equal priority a snapshot is merely less polite.
        let _ = rustix::process::setpriority_process(None, NICE);
        while orders.recv().is_ok() {
            self.make_next();
        }
    }

    /// Makes one, and says when the next is due. A node that stops has dropped what orders come from.
    fn make_next(&mut self) {
        let due_at = match self.make_apart() {
            Ok(bytes) => self.due_after(bytes),
            Err(Failure::Stopped) => return,
            Err(failure) => {
                self.observer.trouble("no snapshot was made", &failure.detail());
                self.gauge.bytes.load(Relaxed) + self.at_least
            }
        };
        self.gauge.due_at.store(due_at, Relaxed);
    }

    /// A snapshot costs about its own size, so it is made only when twice that much was written since.
    fn due_after(&self, snapshot_bytes: u64) -> u64 {
        self.at_least.max(2 * snapshot_bytes) + self.resume_bytes
    }

    /// Makes one on a thread of its own. What the allocator keeps for a thread is given back when that ends, and a snapshot
    /// needs as much as the table itself: a thread that stays would keep that for ever.
    fn make_apart(&mut self) -> Result<u64, Failure> {
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new().name("leasehold-snapshot".to_owned());
            let thread = builder.spawn_scoped(scope, || self.make()).map_err(StartError::Thread)?;
            thread.join().expect("making a snapshot does not panic")
        })
    }

    /// Makes one; its size.
    fn make(&mut self) -> Result<u64, Failure> {
        let began = self.clock.monotonic();
        let replay = self.rebuild()?;
        let bytes = self.store(&replay)?;
        self.gauge.bytes.fetch_sub(replay.bytes, Relaxed);
        let took = self.clock.monotonic().saturating_sub(began);
        self.observer.snapshot(replay.tail.slot.0, bytes, took);
        Ok(bytes)
    }

    /// The state some way behind the tail: what was committed after it is replayed by a restart, and so gives watchers
    /// their newest events again. Never beyond what the loop knows to be committed: a slot in doubt it appends again (J3), and
    /// must find it there.
    fn rebuild(&self) -> Result<Replay, Failure> {
        let mut reader = self.runtime.block_on(self.start.journal.reader()).map_err(StartError::from)?;
        let mut replay = self.runtime.block_on(Replay::from_snapshot(&mut *reader))?;
        loop {
            let slots = self.runtime.block_on(replay.next_slots(&mut *reader))?;
            if slots.is_empty() {
                return Ok(replay);
            }
            for slot in &slots {
                self.go_on()?;
                let with_this = replay.bytes + slot.body.len() as u64;
                if !self.gauge.knows(with_this, self.resume_bytes) {
                    return Ok(replay);
                }
                replay.apply_untold(slot)?;
            }
        }
    }

    fn store(&mut self, replay: &Replay) -> Result<u64, Failure> {
        let (gauge, runtime, writer) = (&self.gauge, &self.runtime, &mut self.start.writer);
        runtime.block_on(writer.begin(replay.tail)).map_err(Failure::Store)?;
        let mut bytes = 0;
        codec::encode_snapshot(&replay.state, self.start.chunk_bytes, &mut |chunk| {
            if gauge.stop.load(Relaxed) {
                return Err(Failure::Stopped);
            }
            bytes += chunk.len() as u64;
            runtime.block_on(writer.chunk(chunk)).map_err(Failure::Store)
        })?;
        match runtime.block_on(writer.install(replay.tail.slot.next())) {
            Outcome::Committed => Ok(bytes),
            other => Err(Failure::Install(other)),
        }
    }

    fn go_on(&self) -> Result<(), Failure> {
        if self.gauge.stop.load(Relaxed) { Err(Failure::Stopped) } else { Ok(()) }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl Failure {
    fn detail(&self) -> String {
        match self {
            Self::Stopped => "the node stops".to_owned(),
            Self::Start(error) => error.to_string(),
            Self::Store(error) => error.to_string(),
            Self::Install(outcome) => format!("making it current: {outcome:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It is in the journal, and the loop may have to append it again and find it there (J3).
    #[test]
    fn a_slot_in_doubt_is_not_covered_however_close_a_snapshot_may_come() {
        let gauge = Gauge { bytes: AtomicU64::new(100), ..Gauge::default() };
        assert!(gauge.knows(100, 0) && gauge.knows(60, 40));
        assert!(!gauge.knows(101, 0) && !gauge.knows(61, 40));
    }
}
