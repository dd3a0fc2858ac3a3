//! The HTTP surface over real sockets: every call, every class of error, streams, waiters, slow and large requests.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod backups;
mod bad_input;
mod calls;
mod cluster;
mod deploy;
mod docs;
mod elections;
mod engines;
mod events;
mod fences;
mod guard;
mod journals;
mod limits;
mod observe;
mod retries;
mod security;
mod sessions;
mod settings;
mod support;
mod traces;
mod waiters;
