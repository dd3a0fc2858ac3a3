//! What end to end tests share: the real binary as a process, a small HTTP client that can also misbehave, and the
//! runner of console blocks.
//!
//! Nothing here is linked to the server: tests see what a user sees, over sockets, files and exit codes. Every server
//! has its own port and temporary directory, and is stopped by its own pid when its [`Server`] is dropped.
//!
//! Start at [`Server::start`] and [`Http::new`]; [`console::check`] runs a document.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a harness for tests: whatever fails, fails the test"
)]

pub mod binary;
pub mod console;
mod http;
mod server;
mod story;
mod wait;

pub use http::{Answer, Http};
pub use leasehold_testbed::{Seed, free_port};
pub use server::Server;
pub use story::{Story, id};
pub use wait::{StopOnDrop, Stopwatch, hold_to, until};

/// Pages of the guide whose Rust examples are run: `cargo test -p leasehold-tests --doc`.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../docs/guide/api-without-fence.md")]
    struct ApiWithoutFence;
    #[doc = include_str!("../../docs/guide/billing-close.md")]
    struct BillingClose;
    #[doc = include_str!("../../docs/guide/leader.md")]
    struct Leader;
    #[doc = include_str!("../../docs/guide/long-job.md")]
    struct LongJob;
    #[doc = include_str!("../../docs/guide/rust.md")]
    struct Rust;
}
