//! `/v1/credentials`: who the callers are and what they may do. For admins.

use leasehold_types::{CredentialId, PrincipalName, Role, Scope, TenantName};
use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::wire;

/// `POST /v1/credentials`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateCredentialRequest {
    /// Who it stands for. Leases and sessions are bound to the principal, so that one credential of it can replace
    /// another.
    #[serde(with = "wire::text")]
    pub principal: PrincipalName,
    /// Whose names it is about; that of the caller by default.
    #[serde(default, with = "wire::text_option", skip_serializing_if = "Option::is_none")]
    pub tenant: Option<TenantName>,
    /// What it may do.
    #[serde(with = "wire::text")]
    pub role: Role,
    /// With which names, such as `orders/` or `acquire,read:orders/`; none: all of the tenant.
    #[serde(default, with = "wire::text_list", skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<Scope>,
    /// Not a secret but a client certificate with this alternative name.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub san: Option<String>,
    /// For how long it is accepted; without it, until it is revoked.
    #[serde(default, deserialize_with = "wire::whole", skip_serializing_if = "Option::is_none")]
    pub expires_in_seconds: Option<u64>,
    /// Who says so; the caller by default.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<String>,
    /// Why, for the audit log.
    #[serde(default, deserialize_with = "wire::present", skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A credential as it is shown: without its secret.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialRecord {
    /// Its name.
    #[serde(with = "wire::text")]
    pub credential_id: CredentialId,
    /// Who it stands for.
    #[serde(with = "wire::text")]
    pub principal: PrincipalName,
    /// Whose names it is about.
    #[serde(with = "wire::text")]
    pub tenant: TenantName,
    /// What it may do.
    #[serde(with = "wire::text")]
    pub role: Role,
    /// With which names; none: all of the tenant.
    #[serde(with = "wire::text_list")]
    pub scopes: Vec<Scope>,
    /// The alternative name of the certificate that is shown for it.
    pub san: Option<String>,
    /// For people.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Option<Timestamp>,
}

/// A credential was created.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateCredentialAnswer {
    /// What was created.
    pub credential: CredentialRecord,
    /// What the caller has to show, shown here and never again; `null` for a certificate.
    pub secret: Option<String>,
    /// The audit entry that says so.
    pub audit_seq: u64,
}

/// A credential is not accepted any more.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokeCredentialAnswer {
    /// What was revoked.
    pub credential: CredentialRecord,
    /// The audit entry that says so.
    pub audit_seq: u64,
}

/// `GET /v1/credentials`: one page.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsPage {
    /// By id.
    pub credentials: Vec<CredentialRecord>,
    /// Ask with `cursor` set to this for more; `null` at the end.
    pub next_cursor: Option<String>,
}
