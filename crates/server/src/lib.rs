//! The Leasehold server: HTTP in front of a node, with configuration, metrics and logs.
//!
//! It decodes requests, hands commands to the node and tells what came of them. It decides nothing about locks and
//! keeps no state of them. An open server listens on a loopback address; on any other, callers show who they are over TLS,
//! unless it was said that neither is wanted.
//!
//! - [`serve`] is what the command line calls: runs until a signal, in one call.
//! - [`Server`] runs inside a process, for tests and for those who embed it.
//! - [`RawConfig`] is what was written, [`Config`] what it means.
//! - [`maintenance`] backs up, restores, recovers and copies a journal.

mod auth;
mod config;
mod declarations;
mod error;
mod fences;
mod forwarding;
mod grpc;
mod http;
mod journal;
mod lives;
pub mod logs;
pub mod maintenance;
mod metrics;
mod observer;
mod peers;
mod place;
mod serve;
mod server;
mod signing;
mod survey;
mod tls;
mod traces;

/// Of the program, as status and other nodes are told.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

pub use config::{
    Config, ConfigError, DEFAULT_CLUSTER, DEFAULT_DATA, DEFAULT_LISTEN, DEFAULT_LOG, HostPolicy,
    InvalidDuration, JournalConfig, JournalUrl, Limits, Policies, Policy, PolicyBook, RawConfig, RawJournal,
    RawLimits, RawPolicy, RawTenant, RawTls, RawTraces, SETTINGS, Setting, TenantLimit, TenantLimits,
    TlsFiles, TraceSettings, Undeclared, WrittenDuration, check_variables, settings_table,
};
pub use error::ServeError;
pub use leasehold_core::Operator;
pub use leasehold_journal::archive::Summary as BackupSummary;
pub use leasehold_node::maintenance::{BackupNote, Recovered};
pub use serve::serve;
pub use server::{Components, Server};
