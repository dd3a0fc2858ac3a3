//! Who a request comes from.

use std::sync::Arc;

use leasehold_core::Credential;
use leasehold_types::{CredentialId, PrincipalName, RequestKey, Role, Scope, TenantName, Verb, WallTime};

/// Who a request comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Caller {
    /// Somebody, on an open server.
    Open,
    /// Somebody who has shown nothing yet, on a protected server.
    Nobody,
    /// A principal that has shown who it is.
    Known(Arc<Principal>),
}

/// A principal and what it may do, by the credential that it showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Principal {
    pub(crate) name: PrincipalName,
    pub(crate) tenant: TenantName,
    pub(crate) role: Role,
    pub(crate) credential: CredentialId,
    scopes: Vec<Scope>,
    expires_at: Option<WallTime>,
}

impl Principal {
    /// Whom a credential stands for.
    pub(crate) fn of(credential: &Credential) -> Self {
        Self {
            name: credential.principal.clone(),
            tenant: credential.tenant.clone(),
            role: credential.role,
            credential: credential.id,
            scopes: credential.scopes.clone(),
            expires_at: credential.expires_at,
        }
    }

    /// Whether its credential is past its time.
    pub(crate) fn is_expired(&self, now: WallTime) -> bool {
        self.expires_at.is_some_and(|at| now >= at)
    }

    /// Whether it may do this with every name that begins with `prefix`.
    pub(crate) fn may(&self, verb: Verb, prefix: &str) -> bool {
        self.role.may(verb)
            && (self.scopes.is_empty() || self.scopes.iter().any(|scope| scope.covers(verb, prefix)))
    }

    /// A key of this principal as it is kept: two principals that choose the same key mean two commands, and neither
    /// learns what the other's came to.
    pub(crate) fn own_key(&self, key: &RequestKey) -> RequestKey {
        let mut hasher = blake3::Hasher::new_derive_key("leasehold request key of a principal");
        hasher.update(self.name.as_str().as_bytes());
        hasher.update(&[0]);
        hasher.update(key.as_str().as_bytes());
        RequestKey::new(&hasher.finalize().to_hex()).expect("64 hexadecimal digits are a key")
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::Proof;

    use super::*;

    fn principal(role: Role, scopes: &[&str]) -> Principal {
        Principal::of(&Credential {
            id: CredentialId::from_bytes([1; 8]),
            principal: PrincipalName::new("web").unwrap(),
            tenant: TenantName::default_tenant(),
            role,
            scopes: scopes.iter().map(|scope| scope.parse().unwrap()).collect(),
            proof: Proof::Secret([0; 32]),
            created_at: WallTime(0),
            expires_at: Some(WallTime(1_000)),
        })
    }

    #[test]
    fn scopes_narrow_what_the_role_allows() {
        let all = principal(Role::Client, &[]);
        assert!(all.may(Verb::Acquire, "a") && all.may(Verb::Read, "") && !all.may(Verb::Operate, "a"));
        let narrow = principal(Role::Client, &["acquire:orders/", "read:"]);
        assert!(narrow.may(Verb::Acquire, "orders/1") && !narrow.may(Verb::Acquire, "other"));
        assert!(narrow.may(Verb::Read, "other") && !narrow.may(Verb::Operate, "orders/1"));
    }

    #[test]
    fn a_credential_ends_at_its_time() {
        let known = principal(Role::Client, &[]);
        assert!(!known.is_expired(WallTime(999)) && known.is_expired(WallTime(1_000)));
    }

    #[test]
    fn keys_of_two_principals_never_meet() {
        let key = RequestKey::new("k").unwrap();
        let web = principal(Role::Client, &[]);
        let other = Principal { name: PrincipalName::new("batch").unwrap(), ..web.clone() };
        assert_eq!(web.own_key(&key), web.own_key(&key));
        assert_ne!(web.own_key(&key), other.own_key(&key));
    }
}
