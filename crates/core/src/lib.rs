//! The lock table of Leasehold: a deterministic state machine that decides who holds what.
//!
//! It has no clock, no IO, no async, no threads, no randomness and no hash order: the same commands at the same times
//! give the same facts and replies on every machine. It does not make anything durable and answers nobody; the node
//! commits the facts of a [`Decision`] and only then lets its replies out.
//!
//! Two parts: [`Journaled`] is changed by facts alone ([`Journaled::replay`]) and is what snapshots hold. [`LockTable`]
//! puts the volatile part beside it (deadlines, queues, renewal counts), which is built anew by [`LockTable::restore`].
//!
//! To drive it: [`LockTable::decide`] for each command, [`LockTable::tick`] when [`LockTable::next_deadline`] has come.

mod acquire;
mod arena;
mod audit;
mod backup;
mod blocks;
mod chunked;
mod clocks;
pub mod codec;
mod command;
mod credential;
mod ending;
mod event;
mod fact;
mod fingerprint;
pub mod invariants;
mod journaled;
mod lease;
mod lease_ids;
mod narrow;
mod outcomes;
mod query;
mod queue;
mod recent;
mod renewal;
mod reply;
mod resource;
mod resources;
mod secret;
mod settings;
mod table;
mod usage;

pub use audit::{AuditAction, AuditEntry};
pub use command::*;
pub use credential::{Credential, Credentials, Proof};
pub use event::{Event, EventKind};
pub use fact::{
    CredentialChange, Fact, Forced, Granted, LifeId, RaisedBy, SessionBegan, SessionEnd, TookOver,
};
pub use journaled::Journaled;
pub use reply::*;
pub use secret::ClusterSecret;
pub use table::{Counts, Decision, EventAt, LockTable, Settings};
pub use usage::{Quota, Quotas, Usage};
