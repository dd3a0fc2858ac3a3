//! The vocabulary of Leasehold: the words that every other crate speaks.
//!
//! A value of these types is known to be valid: each has one fallible constructor, and what it checks is never checked
//! again. This crate has no clock, no IO, no async; it knows nothing of locks beyond their names and numbers.
//!
//! Start at [`FencingToken`], [`ResourceName`] and [`LeaseId`]; every bound stands in [`limits`].

mod access;
mod awake;
pub mod ids;
pub mod limits;
pub mod names;
pub mod time;
pub mod token;
mod words;

pub use access::{CredentialId, InvalidCredentialId, InvalidScope, Scope};
pub use awake::Awake;
pub use ids::{ClusterId, Epoch, Generation, LeaseId, Nonce, SessionId, Slot};
pub use names::{
    InvalidName, Labels, OwnerId, PrincipalName, RequestKey, ResourceKey, ResourceName, TenantName, prefix_of,
};
pub use time::{InvalidTtl, Now, Time, Ttl, TtlBounds, WallTime};
pub use token::{FencingToken, InvalidToken, Permit};
pub use words::{Class, Durability, EndReason, Guarantee, Mode, Role, Verb};
