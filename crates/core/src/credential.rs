//! Who the callers are: credentials as journaled. Only hashes are kept, so a journal gives nobody away.

use std::collections::BTreeMap;

use leasehold_types::{
    CredentialId, Now, PrincipalName, RequestKey, Role, Scope, TenantName, WallTime, limits,
};

use crate::audit::{Action, AuditAction};
use crate::command::{AddCredential, Operator, RevokeCredential};
use crate::fact::{CredentialChange, Fact};
use crate::journaled::Journaled;
use crate::reply::{Refusal, Reply};
use crate::table::{Decision, LockTable};

/// One way for a principal to show who it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Credential {
    /// Its name; no secret.
    pub id: CredentialId,
    /// Who it stands for. Leases and sessions are bound to this, so that a credential can be replaced while they live.
    pub principal: PrincipalName,
    /// Whose names it is about.
    pub tenant: TenantName,
    /// What it may do.
    pub role: Role,
    /// With which names; empty: all of its tenant.
    pub scopes: Vec<Scope>,
    /// What the caller has to show.
    pub proof: Proof,
    /// For people.
    pub created_at: WallTime,
    /// Not accepted from then on.
    pub expires_at: Option<WallTime>,
}

/// What a caller has to show.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// A secret with this BLAKE3 hash. It has 256 random bits, so a fast hash is enough.
    Secret([u8; 32]),
    /// A client certificate with this alternative name, of an authority that the server trusts.
    San(Box<str>),
}

/// Every credential, for those who check them: by its id, and by the name in a certificate.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    by_id: BTreeMap<CredentialId, Credential>,
    by_san: BTreeMap<Box<str>, CredentialId>,
    /// How often one of them came or went.
    changes: u64,
}

impl Credentials {
    /// The credential of this id.
    pub fn by_id(&self, id: CredentialId) -> Option<&Credential> {
        self.by_id.get(&id)
    }

    /// The credential that a certificate with this name stands for.
    pub fn by_san(&self, san: &str) -> Option<&Credential> {
        self.by_san.get(san).and_then(|id| self.by_id(*id))
    }

    /// All of them by id.
    pub fn iter(&self) -> impl Iterator<Item = &Credential> {
        self.by_id.values()
    }

    /// Grows with every change, within one life of a table: tells cheaply whether anything is new.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// False if the id or the name in the certificate is taken.
    pub(crate) fn insert(&mut self, credential: Credential) -> bool {
        if self.is_taken(&credential) {
            return false;
        }
        if let Proof::San(san) = &credential.proof {
            self.by_san.insert(san.clone(), credential.id);
        }
        self.changes += 1;
        self.by_id.insert(credential.id, credential);
        true
    }

    fn remove(&mut self, id: CredentialId) -> Option<Credential> {
        let credential = self.by_id.remove(&id)?;
        self.changes += 1;
        if let Proof::San(san) = &credential.proof {
            self.by_san.remove(san);
        }
        Some(credential)
    }

    fn is_taken(&self, credential: &Credential) -> bool {
        let san_is_taken = match &credential.proof {
            Proof::San(san) => self.by_san.contains_key(san),
            Proof::Secret(_) => false,
        };
        san_is_taken || self.by_id.contains_key(&credential.id)
    }
}

impl Journaled {
    /// Who the callers are.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    pub(crate) fn add_credential(&mut self, credential: &Credential, change: &CredentialChange) {
        let is_new = self.credentials.insert(credential.clone());
        assert!(is_new, "a credential is added once");
        self.audit_credential(AuditAction::CredentialCreate, credential, change);
    }

    pub(crate) fn revoke_credential(&mut self, id: CredentialId, change: &CredentialChange) {
        let credential = self.credentials.remove(id).expect("a known credential is revoked");
        self.audit_credential(AuditAction::CredentialRevoke, &credential, change);
    }

    fn audit_credential(
        &mut self,
        action: AuditAction,
        credential: &Credential,
        change: &CredentialChange,
    ) -> u64 {
        let Credential { id, principal, role, .. } = credential;
        let reason = format!("{id} of {principal}, {role}: {}", change.operator.reason).into();
        self.audit.add(Action {
            action,
            tenant: credential.tenant.as_str(),
            resource: None,
            operator: &Operator { actor: change.operator.actor.clone(), reason },
            identity: change.identity.as_deref(),
            tokens: Vec::new(),
            at: change.at,
        })
    }
}

impl LockTable {
    pub(crate) fn add_credential(
        &mut self,
        add: AddCredential,
        identity: Option<Box<str>>,
        key: Option<&RequestKey>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let AddCredential { credential, operator } = add;
        if self.journaled.format < 2 {
            return Reply::Refused(Refusal::FormatTooOld);
        }
        // The secret is shown once; a retry cannot be told it again, and must not make a second one unnoticed.
        if !matches!(self.keyed(&credential.tenant, key), Ok(None)) {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        }
        let credentials = &self.journaled.credentials;
        if credentials.is_taken(&credential) {
            return Reply::Refused(Refusal::CredentialTaken);
        }
        if credentials.len() >= limits::CREDENTIALS {
            let limit = limits::CREDENTIALS as u64;
            return Reply::Refused(Refusal::QuotaExceeded { what: "credentials", limit });
        }
        let change = CredentialChange { operator, identity, at: now.wall };
        let credential = Credential { created_at: now.wall, ..*credential };
        self.record(Fact::CredentialAdded { credential: Box::new(credential), change }, now, out);
        Reply::CredentialAdded { audit_seq: self.journaled.audit.count }
    }

    pub(crate) fn revoke_credential(
        &mut self,
        revoke: RevokeCredential,
        identity: Option<Box<str>>,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let RevokeCredential { id, operator } = revoke;
        let Some(credential) = self.journaled.credentials.by_id(id).cloned() else {
            return Reply::Refused(Refusal::NotFound);
        };
        let change = CredentialChange { operator, identity, at: now.wall };
        self.record(Fact::CredentialRevoked { id, change }, now, out);
        let audit_seq = self.journaled.audit.count;
        Reply::CredentialRevoked { credential: Box::new(credential), audit_seq }
    }

    pub(crate) fn list_credentials(&self, after: Option<CredentialId>, page_size: usize) -> Reply {
        let page_size = page_size.clamp(1, limits::PAGE_SIZE);
        let after = |credential: &&Credential| after.is_none_or(|id| credential.id > id);
        let mut rest = self.journaled.credentials.iter().filter(after);
        let credentials: Vec<_> = rest.by_ref().take(page_size).cloned().collect();
        let next = rest.next().and_then(|_| credentials.last().map(|credential| credential.id));
        Reply::Credentials { credentials, next }
    }
}

/// What is bound to a principal may be used by it alone. What was made on an open server, and callers of an open server,
/// have none: there the id is the only key.
pub(crate) fn may_use(bound_to: Option<&str>, identity: Option<&str>) -> bool {
    bound_to.zip(identity).is_none_or(|(bound_to, identity)| bound_to == identity)
}
