//! What is kept for each tenant at the door: places for event streams, and how often it may ask. What a tenant may *have*
//! is the table's affair.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::Command;
use leasehold_node::Clock;
use leasehold_types::TenantName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{TenantLimit, TenantLimits};

/// Every tenant that was heard of. There are as many as credentials name, so not too many to keep.
pub(crate) struct Tenants {
    clock: Arc<dyn Clock>,
    /// Places for event streams of all tenants together.
    watchers: Arc<Semaphore>,
    known: Mutex<Known>,
}

struct Known {
    limits: TenantLimits,
    rooms: HashMap<TenantName, Arc<TenantRoom>>,
}

/// One tenant's share.
pub(crate) struct TenantRoom {
    clock: Arc<dyn Clock>,
    all_watchers: Arc<Semaphore>,
    /// Event streams of the tenant.
    watching: Arc<AtomicUsize>,
    rate: Bucket,
    limit: RwLock<TenantLimit>,
}

/// A place for one event stream.
#[derive(Debug)]
pub(crate) struct WatchPlace {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: Watching,
}

/// One event stream of a tenant, counted while it is there.
#[derive(Debug)]
struct Watching(Arc<AtomicUsize>);

impl Drop for Watching {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl Tenants {
    pub(crate) fn new(limits: TenantLimits, watchers: usize, clock: Arc<dyn Clock>) -> Self {
        let known = Known { limits, rooms: HashMap::new() };
        Self { clock, watchers: Arc::new(Semaphore::new(watchers)), known: Mutex::new(known) }
    }

    /// The share of this tenant.
    pub(crate) fn room(&self, tenant: &TenantName) -> Arc<TenantRoom> {
        let mut known = self.known();
        if let Some(room) = known.rooms.get(tenant) {
            return Arc::clone(room);
        }
        let limit = known.limits.of(tenant);
        let room = Arc::new(TenantRoom {
            clock: Arc::clone(&self.clock),
            all_watchers: Arc::clone(&self.watchers),
            watching: Arc::default(),
            rate: Bucket::new(limit.rate),
            limit: RwLock::new(limit),
        });
        known.rooms.insert(tenant.clone(), Arc::clone(&room));
        room
    }

    /// What every tenant may have.
    pub(crate) fn limits(&self) -> TenantLimits {
        self.known().limits.clone()
    }

    /// From now on this; streams that are open stay.
    pub(crate) fn set_limits(&self, limits: TenantLimits) {
        let mut known = self.known();
        for (tenant, room) in &known.rooms {
            room.set_limit(limits.of(tenant));
        }
        known.limits = limits;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantRoom {
    /// What the tenant may have.
    pub(crate) fn limit(&self) -> TenantLimit {
        *self.limit.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_limit(&self, limit: TenantLimit) {
        *self.limit.write().unwrap_or_else(PoisonError::into_inner) = limit;
        self.rate.set(limit.rate);
    }

    /// Takes a place for an event stream.
    pub(crate) fn place_to_watch(&self) -> Result<WatchPlace, Problem> {
        let most = self.limit().watchers;
        let one_more = |open: usize| (open < most).then_some(open + 1);
        if self.watching.fetch_update(Relaxed, Relaxed, one_more).is_err() {
            let detail = "the tenant has all the event streams that it may have";
            return Err(Problem::new(ErrorCode::QuotaExceeded, detail));
        }
        let of_tenant = Watching(Arc::clone(&self.watching));
        let of_all = Arc::clone(&self.all_watchers)
            .try_acquire_owned()
            .map_err(|_| Problem::new(ErrorCode::Overloaded, "too many event streams are open"))?;
        Ok(WatchPlace { _of_all: of_all, _of_tenant: of_tenant })
    }

    /// Counts one more command. What keeps something alive or gives it back is never held up (N8).
    pub(crate) fn count(&self, command: &Command) -> Result<(), Problem> {
        let is_counted = matches!(command, Command::Acquire(_) | Command::OpenSession(_) | Command::Query(_));
        match !is_counted || !self.rate.is_bounded() || self.rate.take(self.clock.read().monotonic) {
            true => Ok(()),
            false => Err(Problem::new(ErrorCode::RateLimited, "the tenant asks more often than it may")),
        }
    }
}

/// Fills at a steady rate and holds what comes in one second; each command takes one.
struct Bucket {
    /// 0: as many as one likes.
    per_second: AtomicU64,
    level: Mutex<Level>,
}

struct Level {
    /// Thousandths of a command, so that slow rates fill evenly.
    thousandths: u64,
    at: Duration,
}

impl Bucket {
    /// A full one.
    fn new(rate: Option<u32>) -> Self {
        let bucket = Self {
            per_second: AtomicU64::new(0),
            level: Mutex::new(Level { thousandths: u64::MAX, at: Duration::ZERO }),
        };
        bucket.set(rate);
        bucket
    }

    /// From now on it fills at this rate, and holds no more than that.
    fn set(&self, rate: Option<u32>) {
        self.per_second.store(rate.map_or(0, u64::from), Relaxed);
    }

    fn is_bounded(&self) -> bool {
        self.per_second.load(Relaxed) > 0
    }

    fn take(&self, now: Duration) -> bool {
        let per_second = self.per_second.load(Relaxed);
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ms = u64::try_from(now.saturating_sub(level.at).as_millis()).unwrap_or(u64::MAX);
        if since_ms > 0 {
            level.at = now;
            level.thousandths = level.thousandths.saturating_add(since_ms.saturating_mul(per_second));
        }
        level.thousandths = level.thousandths.min(per_second * 1_000);
        let has_one = level.thousandths >= 1_000;
        if has_one {
            level.thousandths -= 1_000;
        }
        has_one
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_a_burst_and_then_its_rate() {
        let bucket = Bucket::new(Some(10));
        let at = |ms: u64| Duration::from_millis(10_000 + ms);
        let taken = |now, tries: usize| (0..tries).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(at(0), 20), 10);
        assert_eq!(taken(at(99), 5), 0);
        assert_eq!(taken(at(100), 5), 1);
        assert_eq!(taken(at(1_100), 20), 10, "no more than one second is saved up");
        bucket.set(Some(2));
        assert_eq!(taken(at(9_000), 20), 2, "nor of a rate that was larger");
    }
}
