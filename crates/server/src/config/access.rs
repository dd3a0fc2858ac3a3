//! Who may come in, and how: TLS, authentication, and what each tenant may have.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use leasehold_core::{Quota, Quotas};
use leasehold_types::TenantName;
use serde::{Deserialize, Serialize};

use super::ConfigError;

/// Certificates as they are written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTls {
    /// The server's certificate chain, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// Its private key, as PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Authorities whose client certificates are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// Authorities of the other nodes' certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_ca: Option<PathBuf>,
}

/// Where certificates are. The files are read again when they change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The server's certificate chain.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Authorities whose client certificates are accepted; none are without it.
    pub client_ca: Option<PathBuf>,
    /// Authorities of the other nodes' certificates; without it, those of `client_ca`, else those of this node's chain.
    pub peer_ca: Option<PathBuf>,
}

impl RawTls {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn under(self, over: Self) -> Self {
        Self {
            cert: over.cert.or(self.cert),
            key: over.key.or(self.key),
            client_ca: over.client_ca.or(self.client_ca),
            peer_ca: over.peer_ca.or(self.peer_ca),
        }
    }

    pub(super) fn resolve(self) -> Result<Option<TlsFiles>, ConfigError> {
        let Self { cert, key, client_ca, peer_ca } = self;
        match (cert, key) {
            (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key, client_ca, peer_ca })),
            (None, None) if client_ca.is_none() && peer_ca.is_none() => Ok(None),
            _ => {
                Err(ConfigError::new("tls", "cert and key are given together, and before any of the others"))
            }
        }
    }
}

/// What one tenant may have, as it is written; what is left out has no bound of its own.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawTenant {
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
    pub watchers: Option<usize>,
    /// Bytes of names, labels and values of live leases and sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Acquires, session openings and questions in a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

/// What one tenant may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TenantLimit {
    /// What the table keeps to.
    pub quota: Quota,
    /// Event streams.
    pub watchers: usize,
    /// Acquires, session openings and questions in a second.
    pub rate: Option<u32>,
}

impl Default for TenantLimit {
    fn default() -> Self {
        Self { quota: Quota::default(), watchers: usize::MAX, rate: None }
    }
}

impl TenantLimit {
    fn spelled_out(&self, tenant: &str) -> String {
        let Quota { leases, sessions, waiters, bytes } = self.quota;
        let watchers = u64::try_from(self.watchers).unwrap_or(u64::MAX);
        let rate = self.rate.map_or(u64::MAX, u64::from);
        let bounds = [
            ("locks", leases),
            ("sessions", sessions),
            ("waiters", waiters),
            ("watchers", watchers),
            ("bytes", bytes),
            ("rate", rate),
        ];
        let mut line = format!("tenant {tenant}");
        for (name, bound) in bounds.into_iter().filter(|(_, bound)| *bound != u64::MAX) {
            line.push_str(&format!(" {name} {bound}"));
        }
        line
    }
}

impl From<&RawTenant> for TenantLimit {
    fn from(raw: &RawTenant) -> Self {
        let most = |written: Option<u64>| written.unwrap_or(u64::MAX);
        Self {
            quota: Quota {
                leases: most(raw.locks),
                sessions: most(raw.sessions),
                waiters: most(raw.waiters),
                bytes: most(raw.bytes),
            },
            watchers: raw.watchers.unwrap_or(usize::MAX),
            rate: raw.rate,
        }
    }
}

/// What every tenant may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TenantLimits {
    others: TenantLimit,
    named: BTreeMap<TenantName, TenantLimit>,
}

/// In the file, stands for every tenant that is not named.
const OTHERS: &str = "*";

impl TenantLimits {
    pub(super) fn resolve(written: &BTreeMap<String, RawTenant>) -> Result<Self, ConfigError> {
        let mut limits = Self::default();
        for (name, raw) in written {
            if raw.rate == Some(0) {
                return Err(ConfigError::new(format!("tenants.{name}.rate"), "must be at least 1"));
            }
            if name == OTHERS {
                limits.others = raw.into();
                continue;
            }
            let tenant = TenantName::new(name)
                .map_err(|error| ConfigError::new(format!("tenants.{name}"), error.to_string()))?;
            limits.named.insert(tenant, raw.into());
        }
        Ok(limits)
    }

    /// What every tenant may have, as text: the same settings give the same text.
    pub(super) fn spelled_out(&self) -> Vec<String> {
        let named = self.named.iter().map(|(tenant, limit)| limit.spelled_out(tenant.as_str()));
        let others = (self.others != TenantLimit::default()).then(|| self.others.spelled_out(OTHERS));
        named.chain(others).collect()
    }

    /// What this tenant may have.
    pub fn of(&self, tenant: &TenantName) -> TenantLimit {
        self.named.get(tenant).copied().unwrap_or(self.others)
    }

    /// What the table keeps to.
    pub fn quotas(&self) -> Quotas {
        let named = self.named.iter().map(|(tenant, limit)| (tenant.clone(), limit.quota)).collect();
        Quotas { others: self.others.quota, named }
    }
}

/// Whether callers must say who they are. An address that others reach wants it, and TLS beside it, unless it is said
/// that neither is wanted.
pub(super) fn is_protected(
    listen: SocketAddr,
    auth: Option<bool>,
    has_tls: bool,
    insecure: bool,
) -> Result<bool, ConfigError> {
    let is_reached_by_others = !listen.ip().is_loopback();
    let auth = auth.unwrap_or(is_reached_by_others && !insecure);
    if is_reached_by_others && !insecure && !(auth && has_tls) {
        let missing = if auth { "no certificate (tls.cert, tls.key)" } else { "no authentication (auth)" };
        return Err(ConfigError::new(
            "listen",
            format!(
                "{listen} can be reached by others, and there is {missing}: give what is missing, listen on a \
                 loopback address, or accept with --insecure that whoever reaches it may listen in or do everything"
            ),
        ));
    }
    Ok(auth)
}
