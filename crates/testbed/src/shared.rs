//! One engine for several tests of a process.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::Server;

/// Starts an engine for the first user and ends it after the last: tests that run at the same time share it, and a
/// plain `static` does not keep it beyond them.
///
/// ```
/// use leasehold_testbed::{Shared, redis};
/// static REDIS: Shared = Shared::new(redis);
/// let (first, second) = (REDIS.server(), REDIS.server());
/// assert_eq!(first.url(), second.url());
/// ```
#[derive(Debug)]
pub struct Shared {
    start: fn() -> Server,
    current: Mutex<Weak<Server>>,
}

impl Shared {
    /// Names how to start the engine; starts nothing yet.
    pub const fn new(start: fn() -> Server) -> Self {
        Self { start, current: Mutex::new(Weak::new()) }
    }

    /// The running engine, or a new one.
    pub fn server(&self) -> Arc<Server> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.upgrade().unwrap_or_else(|| {
            let server = Arc::new((self.start)());
            *current = Arc::downgrade(&server);
            server
        })
    }
}
