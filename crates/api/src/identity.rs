//! `GET /v1/identity`: whom the service takes the caller for, and what its tenant has and may have.

use serde::{Deserialize, Serialize};

/// Who asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdentityAnswer {
    /// Whether the server is open: then everybody may do everything.
    pub open: bool,
    /// The principal's name; empty on an open server.
    pub name: String,
    /// Whose names are meant by the caller's.
    pub tenant: String,
    /// `client`, `observer`, `operator` or `admin`.
    pub role: String,
    /// What the tenant has.
    pub usage: TenantUsage,
    /// What it may have.
    pub quota: TenantQuota,
}

/// What a tenant has now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantUsage {
    /// Live leases.
    pub locks: u64,
    /// Live sessions.
    pub sessions: u64,
    /// Waiting acquires.
    pub waiters: u64,
    /// Bytes of names, labels and values of live leases and sessions.
    pub bytes: u64,
}

/// What a tenant may have; what is not there has no bound but those of the whole node.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantQuota {
    /// Live leases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locks: Option<u64>,
    /// Live sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u64>,
    /// Waiting acquires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiters: Option<u64>,
    /// Event streams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watchers: Option<u64>,
    /// Bytes of names, labels and values of live leases and sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Acquires, session openings and questions in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<u64>,
}
