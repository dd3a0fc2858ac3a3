//! The audit log: a hash chain over every operator's action. An entry commits with its effect because both are one
//! fact (S19).

use leasehold_types::{ResourceKey, WallTime};

/// One action of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// `FORCE_RELEASE`, `SESSION_END`, `RECOVER`.
    pub action: AuditAction,
    /// Which tenant; empty for actions on the whole journal.
    pub tenant: Box<str>,
    /// What, where it was about a resource.
    pub resource: Option<ResourceKey>,
    /// Who says so.
    pub actor: Box<str>,
    /// The authenticated caller.
    pub identity: Option<Box<str>>,
    /// Why.
    pub reason: Box<str>,
    /// Tokens that ended by it.
    pub tokens: Vec<u64>,
    /// For people.
    pub at: WallTime,
    /// The hash of the entry before.
    pub prev_hash: [u8; 32],
    /// The hash of this one.
    pub hash: [u8; 32],
}

/// What an operator did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AuditAction {
    /// Took a resource away from its holders.
    ForceRelease,
    /// Ended a session.
    SessionEnd,
    /// Raised generation and token floor.
    Recover,
}

impl AuditAction {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ForceRelease => "FORCE_RELEASE",
            Self::SessionEnd => "SESSION_END",
            Self::Recover => "RECOVER",
        }
    }
}
