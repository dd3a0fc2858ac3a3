//! The gRPC surface of Leasehold: messages and stubs of `leasehold.v1`, made from `proto/leasehold/v1/locks.proto`.
//!
//! The generated code is committed, so that building needs neither `protoc` nor a generator; a test of this crate makes
//! it anew and compares (`LEASEHOLD_BLESS=1` writes it). Nothing is decided and nothing is converted here.
//!
//! [`v1::locks_client`] and [`v1::locks_server`] are the stubs, [`DESCRIPTORS`] is for reflection.

mod codec;

pub use codec::{Codec, Reads, Writes, append, append_field};

#[allow(missing_docs, clippy::all, unreachable_pub, reason = "generated; the proto file is the documentation")]
#[rustfmt::skip]
#[path = "generated/leasehold.v1.rs"]
pub mod v1;

/// The encoded file descriptors, as a reflection service wants them.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/descriptors.bin");
