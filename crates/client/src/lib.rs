//! The Rust client of Leasehold: locks whose holder knows when to stop.
//!
//! A lease is a right for a limited time. This client renews it in the background, counts on its own clock how long it
//! is *surely* still held, and stops the work before the lease can have ended, by default. What it cannot do is to stop
//! a write that is already on its way: send the fencing token with every write, and let the protected resource refuse
//! old ones.
//!
//! - [`Client::acquire`] asks for a resource and gives a [`LeaseGuard`].
//! - [`LeaseGuard::run`] runs work and cancels it when the lease is no longer sure; [`LeaseGuard::checkpoint`] asks
//!   before each side effect whether there is time left, without a round trip.
//! - [`Session`] is one liveness scope for many leases; [`Client`] keeps one for each ttl.
//! - [`Client::election`] is leader election: [`Leadership`] is such a guard, and its token is the term.
//! - [`deadline`] and [`retry`] are the arithmetic behind it, without clocks or sockets.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let client = leasehold::Client::new("http://127.0.0.1:7420")?;
//! let guard = client.acquire("reports/daily").await?;
//! let token = guard.checkpoint(std::time::Duration::from_millis(200))?;
//! // … write to the store, with the token …
//! # let _ = token;
//! guard.release().await?;
//! # Ok(())
//! # }
//! ```

mod acquire;
mod calls;
mod client;
mod clock;
mod connections;
pub mod deadline;
mod election;
mod error;
mod guard;
pub mod retry;
mod security;
mod session;
#[cfg(feature = "testing")]
pub mod testing;

pub use acquire::{Acquire, RunError, WhenUnavailable};
pub use client::{Client, ClientBuilder, DEFAULT_ENDPOINT, InvalidClient};
pub use election::{
    Campaign, Election, ElectionError, HandOverError, Leader, LeaderChange, Leadership, Observer, Standing,
};
pub use error::{
    AcquireError, CheckpointError, Holder, Lost, LostReason, NotAcquired, Refused, ReleaseError,
};
pub use guard::{LeaseGuard, LeaseState};
pub use leasehold_api::ErrorCode;
pub use leasehold_trace::{Settings as TraceSettings, TraceContext, Tracer};
pub use leasehold_types::{Class, EndReason, FencingToken, Guarantee, LeaseId, Mode};
pub use security::{Security, Unreadable};
pub use session::Session;
