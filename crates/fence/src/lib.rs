//! Fences: the protected side refuses the writes of a holder whose lease has ended.
//!
//! A lease alone cannot stop a holder that was paused: it wakes up, still believes, and writes. A fence can. It keeps
//! the highest fencing token it has seen and, *in the same atomic step as the write*, rejects every lower one. Since
//! each grant has a larger token than all before it, the first write (or claim) of a successor shuts out everyone
//! before it, for ever.
//!
//! - [`Fence`] declares a fence: its name, the lock that guards it, its [`Policy`].
//! - [`Grant`] is what a holder presents; [`Grant::write`] and [`Grant::step`] make an [`Ask`] of it.
//! - [`decide`] is the contract as a pure function. Every adapter gives its verdict, and the suite in `conformance`
//!   (a feature) shows it.
//! - [`Admitted`] is the proof of a check, bound to the open transaction: write paths take it, so that a write without
//!   a check does not compile.
//!
//! Adapters stand behind features of the same name; none is on by default. `proxy` fences a service that nobody can
//! change, `storage` is a service with a fence; `rollout` switches fences on by stages, in one process or many.
//!
//! What it does not do: it never asks the lock service, knows no deadline and no clock. It cannot help a thing that
//! can compare nothing at all; such a thing has no fence, whatever stands before it.
//!
//! ```
//! use leasehold_fence::{Fence, Grant, Rejection, Verdict, decide};
//! use leasehold_types::{FencingToken, ResourceName};
//!
//! let books = ResourceName::new("books/2026")?;
//! let fence = Fence::of(&books);
//! let paused = Grant::exclusive(books.clone(), FencingToken::new(33)?);
//! let successor = Grant::exclusive(books, FencingToken::new(34)?);
//!
//! let Verdict::Admitted(row) = decide(&fence, None, Some(&successor.write())) else { panic!("the first write") };
//! let late = decide(&fence, row.as_ref(), Some(&paused.write()));
//! assert!(matches!(late, Verdict::Rejected(Rejection::Stale { .. })));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cas;
#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "_connection")]
mod connection;
mod contract;
#[cfg(feature = "dynamodb")]
pub mod dynamodb;
pub mod effects;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "mariadb")]
pub mod mariadb;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "object-store")]
pub mod object;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "proxy")]
pub mod proxy;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(feature = "reports")]
pub mod reports;
pub mod rollout;
#[cfg(feature = "_serve")]
mod serve;
#[cfg(feature = "signed")]
pub mod signed;
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(feature = "storage")]
pub mod storage;

pub use contract::{
    Admitted, AdmittedMut, Ask, Fence, FenceError, Grant, Kind, Policy, Refusal, Rejection, Row, SharedSteps,
    Span, Verdict, decide, decide_claim,
};

/// The pages of the guide, whose examples are tests of this crate.
#[cfg(doctest)]
mod guide {
    #[cfg(feature = "dynamodb")]
    #[doc = include_str!("../../../docs/guide/fences/dynamodb.md")]
    struct Dynamodb;
    #[cfg(feature = "etcd")]
    #[doc = include_str!("../../../docs/guide/fences/etcd.md")]
    struct Etcd;
    #[cfg(all(feature = "http", feature = "sqlite"))]
    #[doc = include_str!("../../../docs/guide/fences/http.md")]
    struct Http;
    #[cfg(feature = "conformance")]
    #[doc = include_str!("../../../docs/guide/fences/key-value.md")]
    struct KeyValue;
    #[cfg(feature = "mariadb")]
    #[doc = include_str!("../../../docs/guide/fences/mariadb.md")]
    struct Mariadb;
    #[cfg(feature = "object-store")]
    #[doc = include_str!("../../../docs/guide/fences/object-storage.md")]
    struct ObjectStorage;
    #[cfg(feature = "postgres")]
    #[doc = include_str!("../../../docs/guide/fences/postgres.md")]
    struct Postgres;
    #[cfg(feature = "proxy")]
    #[doc = include_str!("../../../docs/guide/fences/proxy.md")]
    struct Proxy;
    #[cfg(feature = "redis")]
    #[doc = include_str!("../../../docs/guide/fences/redis.md")]
    struct Redis;
    #[cfg(all(feature = "shared-rollout", feature = "sqlite"))]
    #[doc = include_str!("../../../docs/guide/fences/rollout.md")]
    struct Rollout;
    #[cfg(all(feature = "effects", feature = "sqlite"))]
    #[doc = include_str!("../../../docs/guide/fences/side-effects.md")]
    struct SideEffects;
    #[cfg(feature = "signed")]
    #[doc = include_str!("../../../docs/guide/fences/signed-tokens.md")]
    struct SignedTokens;
    #[cfg(feature = "sqlite")]
    #[doc = include_str!("../../../docs/guide/fences/sqlite.md")]
    struct Sqlite;
    #[cfg(feature = "sqlx")]
    #[doc = include_str!("../../../docs/guide/fences/sqlx.md")]
    struct Sqlx;
    #[cfg(feature = "storage")]
    #[doc = include_str!("../../../docs/guide/fences/storage.md")]
    struct Storage;
}
