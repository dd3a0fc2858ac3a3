//! Signed tokens: a fence that is told everything by the caller can still know that the service said it.
//!
//! A plain token is a number, and whoever can count can make one up. A signed token carries tenant, resource, kind of
//! grant, generation and number under a MAC, so that a forged, a foreign or a pre-restore token is refused offline,
//! before the fence is asked. It proves what was granted, not that the grant still stands: that is for the fence.
//!
//! The form is `lh1.<key id>.<payload>.<mac>`, payload and MAC in URL-safe base64 without padding. The MAC is BLAKE3 in
//! its keyed mode over everything before it. [`Keyring`] makes and checks them, and is read from a file that service and
//! fences share; keys rotate by their ids. [`Checker`] is what a fence has: a keyring, and what it accepts.

mod checker;
mod keyfile;
mod keyring;
mod payload;

pub use crate::contract::Refusal;
pub use checker::Checker;
pub use keyfile::{InvalidKeys, KeyFileError};
pub use keyring::{InvalidKeyId, Key, KeyId, Keyring};
pub use payload::Signed;
