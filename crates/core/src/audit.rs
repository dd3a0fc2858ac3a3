//! The audit log: a hash chain over every operator's action. An entry commits with its effect because both are one
//! fact (S19).

use std::collections::VecDeque;

use leasehold_types::{ResourceKey, WallTime, limits};

use crate::codec::Encoder;
use crate::command::Operator;
use crate::reply::AuditVerified;

/// One action of an operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuditEntry {
    /// Its number, from 1, without gaps.
    pub seq: u64,
    /// `FORCE_RELEASE`, `SESSION_END`, `RECOVER`, `UPGRADE_FINISH`, `CREDENTIAL_CREATE`, `CREDENTIAL_REVOKE`,
    /// `SETTINGS_CHANGE`, `BACKUP`.
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
    /// Raised the format of facts.
    UpgradeFinish,
    /// Created a credential.
    CredentialCreate,
    /// Revoked a credential.
    CredentialRevoke,
    /// Gave a node other policies or quotas.
    SettingsChange,
    /// Made a backup.
    Backup,
}

impl AuditAction {
    /// Every action; its place in this list is its byte in journals.
    pub(crate) const ALL: [Self; 8] = [
        Self::ForceRelease,
        Self::SessionEnd,
        Self::Recover,
        Self::UpgradeFinish,
        Self::CredentialCreate,
        Self::CredentialRevoke,
        Self::SettingsChange,
        Self::Backup,
    ];

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ForceRelease => "FORCE_RELEASE",
            Self::SessionEnd => "SESSION_END",
            Self::Recover => "RECOVER",
            Self::UpgradeFinish => "UPGRADE_FINISH",
            Self::CredentialCreate => "CREDENTIAL_CREATE",
            Self::CredentialRevoke => "CREDENTIAL_REVOKE",
            Self::SettingsChange => "SETTINGS_CHANGE",
            Self::Backup => "BACKUP",
        }
    }
}

impl AuditEntry {
    /// The hash that this entry should have: over all of it but `hash` itself.
    fn expected_hash(&self) -> [u8; 32] {
        let mut encoder = Encoder::default();
        encoder.audit_entry_without_hash(self);
        *blake3::hash(&encoder.into_bytes()).as_bytes()
    }
}

/// What an entry says, before it has its place in the chain.
pub(crate) struct Action<'a> {
    pub(crate) action: AuditAction,
    pub(crate) tenant: &'a str,
    pub(crate) resource: Option<ResourceKey>,
    pub(crate) operator: &'a Operator,
    pub(crate) identity: Option<&'a str>,
    pub(crate) tokens: Vec<u64>,
    pub(crate) at: WallTime,
}

/// The newest entries and both ends of their chain.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditLog {
    pub(crate) entries: VecDeque<AuditEntry>,
    /// The hash before the oldest kept entry.
    pub(crate) anchor: [u8; 32],
    /// The hash of the newest entry.
    pub(crate) head: [u8; 32],
    /// How many there ever were.
    pub(crate) count: u64,
}

impl AuditLog {
    /// Adds an action to the chain; returns its number.
    pub(crate) fn add(&mut self, action: Action<'_>) -> u64 {
        let mut entry = AuditEntry {
            seq: self.count + 1,
            action: action.action,
            tenant: action.tenant.into(),
            resource: action.resource,
            actor: action.operator.actor.clone(),
            identity: action.identity.map(Into::into),
            reason: action.operator.reason.clone(),
            tokens: action.tokens,
            at: action.at,
            prev_hash: self.head,
            hash: [0; 32],
        };
        entry.hash = entry.expected_hash();
        self.push(entry);
        self.count
    }

    /// Takes an entry as it stands, in its place: for [`AuditLog::add`] and for snapshots.
    pub(crate) fn push(&mut self, entry: AuditEntry) {
        self.count = entry.seq;
        self.head = entry.hash;
        self.entries.push_back(entry);
        if self.entries.len() > limits::AUDIT_ENTRIES {
            let oldest = self.entries.pop_front().expect("the log is longer than its bound");
            self.anchor = oldest.hash;
        }
    }

    /// Recomputes the chain of what is kept.
    pub(crate) fn verify(&self) -> AuditVerified {
        let mut prev = self.anchor;
        let mut seq = self.count - self.entries.len() as u64;
        let mut first_bad = None;
        for entry in &self.entries {
            seq += 1;
            if entry.seq != seq || entry.prev_hash != prev || entry.hash != entry.expected_hash() {
                first_bad = Some(seq);
                break;
            }
            prev = entry.hash;
        }
        let intact = first_bad.is_none() && prev == self.head;
        AuditVerified { intact, entries: self.entries.len() as u64, first_bad, head: self.head }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(n: u64) -> AuditLog {
        let mut log = AuditLog::default();
        for number in 1..=n {
            let operator = Operator { actor: "ops".into(), reason: format!("reason {number}").into() };
            let action = Action {
                action: AuditAction::ForceRelease,
                tenant: "default",
                resource: None,
                operator: &operator,
                identity: None,
                tokens: vec![number],
                at: WallTime(number),
            };
            assert_eq!(log.add(action), number);
        }
        log
    }

    #[test]
    fn a_chain_verifies_and_any_change_is_found() {
        assert!(log(5).verify().intact);
        let mut flipped = log(5);
        flipped.entries[2].reason = "another".into();
        assert_eq!(flipped.verify().first_bad, Some(3));
        let mut removed = log(5);
        removed.entries.remove(1);
        assert!(!removed.verify().intact);
        let mut reordered = log(5);
        reordered.entries.swap(3, 4);
        assert_eq!(reordered.verify().first_bad, Some(4));
        let mut cut = log(5);
        cut.entries.pop_back();
        assert!(!cut.verify().intact);
        let mut elsewhere = log(5);
        elsewhere.head = log(4).head;
        let verified = elsewhere.verify();
        assert_eq!((verified.intact, verified.first_bad), (false, None));
    }

    #[test]
    fn the_oldest_entries_leave_and_the_rest_still_verifies() {
        let log = log(limits::AUDIT_ENTRIES as u64 + 3);
        assert_eq!(log.entries.len(), limits::AUDIT_ENTRIES);
        assert_eq!(log.entries[0].seq, 4);
        assert!(log.verify().intact);
    }
}
