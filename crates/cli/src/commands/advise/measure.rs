//! Pauses of this machine and round trips of renewals, measured side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use serde_json::{Value, json};

use crate::bench::Connection;
use crate::client::Server;
use crate::failure::Failure;
use crate::owner::default_owner;

/// How often is looked whether time passed as it should.
const LOOK: Duration = Duration::from_millis(1);
/// Between two renewals: many samples in a few seconds, and no load worth the name.
const BETWEEN: Duration = Duration::from_millis(5);
/// The session that is renewed lives this long if this process dies.
const TTL_MS: u64 = 5_000;

/// What was measured.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) pause: Spread,
    pub(super) renewal: Spread,
    pub(super) took_ms: u64,
}

/// One histogram, rounded up to milliseconds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spread {
    pub(super) samples: u64,
    pub(super) p99_ms: u64,
    pub(super) p999_ms: u64,
    pub(super) longest_ms: u64,
}

impl Spread {
    fn of(micros: &Histogram<u64>, samples: u64) -> Self {
        let ms = |micros: u64| micros.div_ceil(1_000);
        Self {
            samples,
            p99_ms: ms(micros.value_at_quantile(0.99)),
            p999_ms: ms(micros.value_at_quantile(0.999)),
            longest_ms: ms(micros.max()),
        }
    }
}

/// Measures for this long.
pub(super) async fn measure(server: &Server, measure_for: Duration) -> Result<Measured, Failure> {
    let mut renewing = Renewing::open(server).await?;
    let stop = Arc::new(AtomicBool::new(false));
    let looking = std::thread::spawn({
        let stop = Arc::clone(&stop);
        move || pauses(&stop)
    });
    let began = now_us();
    let renewed = renewing.until(began + micros(measure_for)).await;
    let took_ms = (now_us() - began) / 1_000;
    stop.store(true, Ordering::Relaxed);
    let pause = looking.join().expect("the looking thread does not panic");
    renewing.close().await;
    Ok(Measured { pause, renewal: renewed?, took_ms })
}

/// Sleeps a little again and again and records how much longer it took. A long pause is counted for each look that it
/// swallowed, as a holder meets it at a random moment.
#[expect(clippy::disallowed_methods, reason = "how late a sleeping thread wakes up is what is measured")]
fn pauses(stop: &AtomicBool) -> Spread {
    let (mut micros, mut looks, look) = (histogram(), 0, micros(LOOK));
    while !stop.load(Ordering::Relaxed) {
        let before = now_us();
        std::thread::sleep(LOOK);
        let late = (now_us() - before).saturating_sub(look);
        micros.saturating_record(late.max(1));
        let swallowed = (1..).map(|n| late.saturating_sub(n * look)).take_while(|left| *left >= look);
        swallowed.for_each(|left| micros.saturating_record(left));
        looks += 1;
    }
    Spread::of(&micros, looks)
}

/// A session that is renewed on one connection.
struct Renewing {
    connection: Connection,
    path: String,
}

impl Renewing {
    async fn open(server: &Server) -> Result<Self, Failure> {
        let mut connection = Connection::open(server).await?;
        let owner = format!("advise {}", default_owner());
        let body = json!({ "ownerId": owner, "ttlMs": TTL_MS }).to_string();
        let answer: Value =
            serde_json::from_slice(connection.call("POST", "/v1/sessions", &body).await?).unwrap_or_default();
        let Some(session) = answer["sessionId"].as_str() else {
            let (server, error) = (server.to_string(), "no session id".to_owned());
            return Err(Failure::Garbled { server, error });
        };
        Ok(Self { path: format!("/v1/sessions/{session}"), connection })
    }

    /// Renews until this moment.
    async fn until(&mut self, end_us: u64) -> Result<Spread, Failure> {
        let (mut micros, mut trips) = (histogram(), 0);
        let path = format!("{}/renew", self.path);
        while now_us() < end_us {
            let sent = now_us();
            self.connection.call("POST", &path, "{}").await?;
            micros.saturating_record((now_us() - sent).max(1));
            trips += 1;
            tokio::time::sleep(BETWEEN).await;
        }
        Ok(Spread::of(&micros, trips))
    }

    /// Leaves nothing behind; if that fails, the session ends by itself.
    async fn close(mut self) {
        drop(self.connection.call("DELETE", &self.path, "").await);
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("the bounds are valid")
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// The clock that goes on while the machine is suspended: that is a pause as well.
fn now_us() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000
}
