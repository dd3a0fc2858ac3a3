//! What each client does, again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::lockers::{Locker, Wait};
use crate::measured::{Measured, Taken};

/// Each client goes round so many names, so that an engine sees many locks but does not only grow.
const NAMES: u64 = 64;
/// Names that every client of the mixed workload wants now and then.
const HOT_NAMES: u64 = 8;

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Workload {
    /// Acquire and release locks that nobody else wants.
    Cycle,
    /// All wait for the same lock and release it at once. Counted is how often it goes from one client to another.
    Handoff,
    /// Renew one lock each.
    Renew,
    /// Eight renewals, one cycle, one try at a lock that others want too.
    Mixed,
}

impl Workload {
    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Cycle => "cycle",
            Self::Handoff => "hand-off",
            Self::Renew => "renew",
            Self::Mixed => "mixed",
        }
    }
}

/// Runs every client for the length of a turn. Latencies are those of acquires, or of renewals where nothing else is done.
///
/// Cancel-safe in that no client goes on; what they hold then ends with its ttl.
pub(crate) async fn turn<L: Locker>(
    workload: Workload,
    lockers: &mut Vec<L>,
    length: Duration,
) -> anyhow::Result<Measured> {
    let began = Instant::now();
    let until = began + length;
    let mut tasks = JoinSet::new();
    let last_holder = Arc::new(LastHolder::among(lockers.len()));
    for (number, locker) in std::mem::take(lockers).into_iter().enumerate() {
        tasks.spawn(client(workload, locker, number, Arc::clone(&last_holder), until));
    }
    let mut measured = Measured::new();
    while let Some(task) = tasks.join_next().await {
        let (locker, own) = task.context("a client panicked")??;
        measured.add(&own);
        lockers.push(locker);
    }
    measured.took = began.elapsed();
    Ok(measured)
}

async fn client<L: Locker>(
    workload: Workload,
    mut locker: L,
    number: usize,
    last_holder: Arc<LastHolder>,
    until: Instant,
) -> anyhow::Result<(L, Measured)> {
    let mut measured = Measured::new();
    let own = match workload {
        Workload::Renew | Workload::Mixed => {
            let held = locker.acquire(&format!("own/{number}"), Wait::No).await?;
            Some(held.context("a lock of one's own is free")?)
        }
        Workload::Cycle | Workload::Handoff => None,
    };
    let mut count = 0;
    while Instant::now() < until {
        let began = Instant::now();
        match (workload, &own) {
            (Workload::Handoff, _) => {
                let held = locker.acquire("hand-off", Wait::Yes).await?;
                let held = held.context("whoever waits gets it")?;
                measured.take(began.elapsed(), last_holder.becomes(number));
                locker.release(held).await?;
            }
            (Workload::Renew, Some(own)) => {
                locker.renew(own).await?;
                measured.note(began.elapsed());
            }
            (Workload::Mixed, Some(own)) if count % 10 < 8 => {
                locker.renew(own).await?;
                measured.count();
            }
            (Workload::Mixed, _) if count % 10 == 8 => {
                let name = format!("hot/{}", (count / 10 + number as u64) % HOT_NAMES);
                cycle(&mut locker, &name, Wait::No, &mut measured).await?;
            }
            _ => {
                let name = format!("cycle/{number}/{}", count % NAMES);
                cycle(&mut locker, &name, Wait::No, &mut measured).await?;
            }
        }
        count += 1;
    }
    if let Some(own) = own {
        locker.release(own).await?;
    }
    Ok((locker, measured))
}

async fn cycle<L: Locker>(
    locker: &mut L,
    name: &str,
    wait: Wait,
    measured: &mut Measured,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let held = locker.acquire(name, wait).await?;
    measured.note(began.elapsed());
    match held {
        Some(held) => locker.release(held).await,
        // Somebody else has it: an answer like any other.
        None => Ok(()),
    }
}

/// Who had the lock that all want. Told by its holder alone, so that nobody comes in between.
struct LastHolder {
    number: AtomicUsize,
    clients: usize,
}

impl LastHolder {
    const NOBODY: usize = usize::MAX;

    fn among(clients: usize) -> Self {
        Self { number: AtomicUsize::new(Self::NOBODY), clients }
    }

    /// Another holder, or the same again. With one client alone every take counts.
    fn becomes(&self, number: usize) -> Taken {
        let last = self.number.swap(number, Ordering::Relaxed);
        if last == number && self.clients > 1 { Taken::Again } else { Taken::FromAnother }
    }
}
