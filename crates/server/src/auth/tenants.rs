//! What is kept for each tenant at the door: places for event streams, and how often it may ask. What a tenant may *have*
//! is the table's affair.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::Command;
use leasehold_node::Clock;
use leasehold_types::TenantName;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::config::{TenantLimit, TenantLimits};

/// Every tenant that was heard of. There are as many as credentials name, so not too many to keep.
pub(crate) struct Tenants {
    limits: TenantLimits,
    clock: Arc<dyn Clock>,
    /// Places for event streams of all tenants together.
    watchers: Arc<Semaphore>,
    rooms: Mutex<HashMap<TenantName, Arc<TenantRoom>>>,
}

/// One tenant's share.
pub(crate) struct TenantRoom {
    clock: Arc<dyn Clock>,
    all_watchers: Arc<Semaphore>,
    watchers: Arc<Semaphore>,
    rate: Option<Bucket>,
    limit: TenantLimit,
}

/// A place for one event stream.
#[derive(Debug)]
pub(crate) struct WatchPlace {
    _of_all: OwnedSemaphorePermit,
    _of_tenant: OwnedSemaphorePermit,
}

impl Tenants {
    pub(crate) fn new(limits: TenantLimits, watchers: usize, clock: Arc<dyn Clock>) -> Self {
        Self { limits, clock, watchers: Arc::new(Semaphore::new(watchers)), rooms: Mutex::default() }
    }

    /// The share of this tenant.
    pub(crate) fn room(&self, tenant: &TenantName) -> Arc<TenantRoom> {
        let mut rooms = self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(room) = rooms.get(tenant) {
            return Arc::clone(room);
        }
        let limit = self.limits.of(tenant);
        let room = Arc::new(TenantRoom {
            clock: Arc::clone(&self.clock),
            all_watchers: Arc::clone(&self.watchers),
            watchers: Arc::new(Semaphore::new(limit.watchers.min(Semaphore::MAX_PERMITS))),
            rate: limit.rate.map(Bucket::new),
            limit,
        });
        rooms.insert(tenant.clone(), Arc::clone(&room));
        room
    }
}

impl TenantRoom {
    /// What the tenant may have.
    pub(crate) fn limit(&self) -> &TenantLimit {
        &self.limit
    }

    /// Takes a place for an event stream.
    pub(crate) fn place_to_watch(&self) -> Result<WatchPlace, Problem> {
        let taken = Arc::clone(&self.watchers).try_acquire_owned();
        let of_tenant = taken.map_err(|_| {
            Problem::new(ErrorCode::QuotaExceeded, "the tenant has all the event streams that it may have")
        })?;
        let of_all = Arc::clone(&self.all_watchers)
            .try_acquire_owned()
            .map_err(|_| Problem::new(ErrorCode::Overloaded, "too many event streams are open"))?;
        Ok(WatchPlace { _of_all: of_all, _of_tenant: of_tenant })
    }

    /// Counts one more command. What keeps something alive or gives it back is never held up (N8).
    pub(crate) fn count(&self, command: &Command) -> Result<(), Problem> {
        let Some(rate) = &self.rate else { return Ok(()) };
        let is_counted = matches!(command, Command::Acquire(_) | Command::OpenSession(_) | Command::Query(_));
        match !is_counted || rate.take(self.clock.read().monotonic) {
            true => Ok(()),
            false => Err(Problem::new(ErrorCode::RateLimited, "the tenant asks more often than it may")),
        }
    }
}

/// Fills at a steady rate and holds what comes in one second; each command takes one.
struct Bucket {
    per_second: u64,
    level: Mutex<Level>,
}

struct Level {
    /// Thousandths of a command, so that slow rates fill evenly.
    thousandths: u64,
    at: Duration,
}

impl Bucket {
    fn new(per_second: u32) -> Self {
        let per_second = u64::from(per_second);
        Self { per_second, level: Mutex::new(Level { thousandths: per_second * 1_000, at: Duration::ZERO }) }
    }

    fn take(&self, now: Duration) -> bool {
        let mut level = self.level.lock().unwrap_or_else(PoisonError::into_inner);
        let since_ms = u64::try_from(now.saturating_sub(level.at).as_millis()).unwrap_or(u64::MAX);
        if since_ms > 0 {
            level.at = now;
            let filled = level.thousandths.saturating_add(since_ms.saturating_mul(self.per_second));
            level.thousandths = filled.min(self.per_second * 1_000);
        }
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
        let bucket = Bucket::new(10);
        let at = |ms: u64| Duration::from_millis(10_000 + ms);
        let taken = |now, tries: usize| (0..tries).filter(|_| bucket.take(now)).count();
        assert_eq!(taken(at(0), 20), 10);
        assert_eq!(taken(at(99), 5), 0);
        assert_eq!(taken(at(100), 5), 1);
        assert_eq!(taken(at(1_100), 20), 10, "no more than one second is saved up");
    }
}
