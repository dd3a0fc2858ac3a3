//! HTTP: `X-Fencing-Token` checked in front of a service, as a tower layer for axum, hyper and tonic.
//!
//! Two ways, with two guarantees:
//! - [`FenceLayer::extracting`] reads the headers and leaves an [`Asked`] in the request's extensions; the handler asks
//!   the fence in its own transaction. Guarantee: atomic, that of the handler's fence.
//! - [`FenceLayer::checking`] asks a stored [`Maximum`] before the handler runs. Guarantee: admission only. A request
//!   that was admitted and then paused *inside the handler* still writes after a newer one; what reaches the handler
//!   never goes down in token, what the handler does with it may.
//!
//! Headers: `X-Fencing-Token`, a number, or with [`FenceLayer::signed`] what the service signed; `X-Fencing-Resource`, the lock it is of, when it is not the one that guards
//! the fence anyway; `X-Fencing-Permit`, for a semaphore's grant; `X-Fencing-Step`, for a counted write (with
//! `extracting` alone). Requests that only read (GET, HEAD, OPTIONS, TRACE) pass.

pub(crate) mod headers;
pub(crate) mod layer;
mod maximum;
pub(crate) mod problem;

pub use headers::{Asked, InvalidHeader, PERMIT_HEADER, RESOURCE_HEADER, STEP_HEADER, TOKEN_HEADER};
pub use layer::{FenceLayer, FenceService};
#[cfg(feature = "postgres")]
pub use maximum::PostgresMaximum;
#[cfg(feature = "redis")]
pub use maximum::RedisMaximum;
#[cfg(feature = "sqlite")]
pub use maximum::SqliteMaximum;
pub use maximum::{Failure, Maximum};
pub use problem::refusal;
