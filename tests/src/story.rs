//! What happened in a drill, written as a history, and the checker's verdict on it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_history::{Answer, Call, Checker, FileVerdict, Id, Mode, Record, Verdict, Writer, check_file};
use tempfile::TempDir;

use crate::Stopwatch;

/// The history of one drill. Its file is gone with it, unless `LEASEHOLD_HISTORY_DIR` names a place where it is kept, for
/// `leasehold check-history` and for the eye.
pub struct Story {
    writer: Writer,
    file: PathBuf,
    watch: Stopwatch,
    ops: AtomicU64,
    _dir: Option<TempDir>,
}

impl Story {
    /// Begins now. The name is the file's.
    pub fn begin(name: &str) -> Self {
        let kept = std::env::var_os("LEASEHOLD_HISTORY_DIR").map(PathBuf::from);
        let dir = kept.is_none().then(|| tempfile::tempdir().unwrap());
        let place = dir.as_ref().map(|dir| dir.path().to_owned()).or(kept).unwrap_or_default();
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let file = place.join(format!("{name}-{}-{number}.jsonl", std::process::id()));
        let writer = Writer::create(&file).unwrap();
        Self { writer, file, watch: Stopwatch::start(), ops: AtomicU64::new(0), _dir: dir }
    }

    /// Microseconds since the beginning.
    pub fn at(&self) -> u64 {
        u64::try_from(self.watch.elapsed().as_micros()).unwrap()
    }

    /// Adds anything.
    pub fn add(&self, record: &Record) {
        self.writer.write(record).unwrap();
    }

    /// An attempt is about to be sent; its number.
    pub fn asks(&self, client: &str, call: Call) -> u64 {
        let op = self.next_op();
        self.add(&Record::Invoke { at: self.at(), op, client: client.into(), call });
        op
    }

    /// Its answer has come.
    pub fn told(&self, op: u64, answer: Answer) {
        self.add(&Record::Answer { at: self.at(), op, epoch: None, answer });
    }

    /// [`asks`](Self::asks) for a resource.
    pub fn acquires(&self, client: &str, resource: &str, lease: &str) -> u64 {
        self.asks(client, Call::Acquire { resource: resource.into(), lease: id(lease), session: None })
    }

    /// [`asks`](Self::asks) to keep a lease alive.
    pub fn renews(&self, client: &str, lease: &str) -> u64 {
        self.asks(client, Call::Renew { life: id(lease) })
    }

    /// [`asks`](Self::asks) to give a lease back.
    pub fn releases(&self, client: &str, lease: &str) -> u64 {
        self.asks(client, Call::Release { lease: id(lease) })
    }

    /// A client believed from then until now that it holds this alone.
    pub fn held_since(&self, from: u64, client: &str, resource: &str, token: u64) {
        let (at, mode) = (self.at(), Mode::Exclusive);
        let (client, resource) = (client.into(), resource.into());
        self.add(&Record::Held { at, from, until: at, client, resource, token, mode, permit: None });
    }

    /// The number of the next attempt.
    pub fn next_op(&self) -> u64 {
        self.ops.fetch_add(1, Ordering::Relaxed)
    }

    /// The verdict, or the promise that is broken with the lines that show it.
    ///
    /// # Errors
    /// Begins with the promise.
    pub fn verdict(&self) -> Result<Verdict, String> {
        match check_file(&self.file, Checker::default()).unwrap() {
            FileVerdict::Held(verdict) => Ok(verdict),
            FileVerdict::Broken { violation, excerpt } => Err(format!("{violation}\n{excerpt:#?}")),
        }
    }

    /// The same for a drill that has nothing else to say about a broken promise.
    ///
    /// # Panics
    /// If one is.
    pub fn judge(&self) -> Verdict {
        let verdict = self.verdict().unwrap_or_else(|broken| panic!("PROMISE BROKEN: {broken}"));
        eprintln!("{} records, {} unknown outcomes, every promise held", verdict.records, verdict.unknown);
        verdict
    }
}

/// A lease id as histories have it.
pub fn id(lease: &str) -> Id {
    Id::parse(lease).unwrap()
}
