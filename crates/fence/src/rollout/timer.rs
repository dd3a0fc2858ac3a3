//! How long a check takes.

use std::time::{Duration, Instant};

/// Measures for metrics alone: nothing is decided from it.
pub(crate) struct Timer(Instant);

impl Timer {
    #[expect(clippy::disallowed_methods, reason = "a measurement; nothing is decided from it")]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
