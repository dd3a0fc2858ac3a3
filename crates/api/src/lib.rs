//! The outside of Leasehold in Rust types: what travels as JSON over HTTP, version 1.
//!
//! Requests refuse unknown fields, duplicates and `null`; a field that is not wanted is left out. Answers are read
//! leniently, so that an older client understands a newer server. Names, ids and tokens are parsed while they are read:
//! a request that was read has only valid ones. What depends on the configuration of a server (ttl bounds, longest
//! wait) is checked by the server.
//!
//! This crate knows neither the lock table nor HTTP; it is shared by server, client and command line.
//!
//! Start at [`AcquireRequest`] and [`AcquireAnswer`]; errors are a [`Problem`] with an [`ErrorCode`]; [`OPENAPI`] is
//! the whole surface as a document.

mod audit;
mod backups;
mod credentials;
mod elections;
mod error;
mod events;
mod fences;
mod identity;
mod labels;
mod locks;
mod object;
mod problem;
mod resources;
mod sessions;
mod status;
mod timestamp;
mod tokens;
mod ttl;
mod wire;

pub use audit::{AuditPage, AuditRecord, AuditVerifyAnswer};
pub use backups::{BACKUPS_FORMAT, NoteBackupAnswer, NoteBackupRequest};
pub use credentials::{
    CreateCredentialAnswer, CreateCredentialRequest, CredentialRecord, CredentialsPage,
    RevokeCredentialAnswer,
};
pub use elections::{
    CampaignAnswer, CampaignRequest, ELECTION_PREFIX, ElectedAnswer, ElectionAnswer, Leader,
    NotElectedAnswer, ProclaimAnswer, ProclaimRequest, ResignAnswer, ResignRequest, VacantEvent,
};
pub use error::ErrorCode;
pub use events::{CompactedEvent, LockEvent, LockEventKind};
pub use fences::{FenceRejection, FenceReportAnswer, FenceReportRequest, FencesAnswer, KnownFence};
pub use identity::{IdentityAnswer, TenantQuota, TenantUsage};
pub use locks::{
    AcquireAnswer, AcquireRequest, GrantedAnswer, Holder, LockRecord, LocksPage, NotGrantedAnswer,
    ReleaseAnswer, RenewAnswer, RenewRequest, RenewedLock,
};
pub use object::Object;
pub use problem::{CONTENT_TYPE as PROBLEM_CONTENT_TYPE, Problem, SideEffects};
pub use resources::{EndingRecord, ExplainAnswer, ForceReleaseAnswer, ForceReleaseRequest, WaiterRecord};
pub use sessions::{
    CloseSessionAnswer, EndedLease, OpenSessionAnswer, OpenSessionRequest, RenewSessionAnswer,
    RenewSessionRequest, SessionRecord, SessionsPage,
};
pub use status::{NodeSeen, Role, StatusAnswer, UpgradeFinishAnswer, UpgradeFinishRequest};
pub use timestamp::{InvalidTimestamp, Timestamp};
pub use tokens::{ValidateAnswer, ValidateRequest};
pub use ttl::{BothTtls, asked_ttl_ms};
pub use wire::{No, Yes};

/// The header that every answer carries: `<cluster id>/<epoch>`.
pub const EPOCH_HEADER: &str = "leasehold-epoch";
/// The header by which every answer says what an acknowledged commit survives: `durable`, `lossy` …
pub const DURABILITY_HEADER: &str = "leasehold-durability";
/// The header that makes a retry the same command.
pub const REQUEST_KEY_HEADER: &str = "idempotency-key";
/// The OpenAPI 3.1 document of the whole surface.
pub const OPENAPI: &str = include_str!("../openapi.json");
