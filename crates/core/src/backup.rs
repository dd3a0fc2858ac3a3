//! A backup changes nothing in the table. What is journaled of one is that it was made: an entry of the audit log, which is
//! durable before the copy is taken, so that the copy holds it too.

use leasehold_types::{Now, RequestKey, TenantName, WallTime};

use crate::audit::{Action, AuditAction};
use crate::command::Operator;
use crate::fact::Fact;
use crate::journaled::Journaled;
use crate::reply::{Refusal, Reply};
use crate::table::{Decision, LockTable};

impl Journaled {
    pub(crate) fn note_backup(&mut self, operator: &Operator, identity: Option<&str>, at: WallTime) {
        self.audit.add(Action {
            action: AuditAction::Backup,
            tenant: "",
            resource: None,
            operator,
            identity,
            tokens: Vec::new(),
            at,
        });
    }
}

impl LockTable {
    /// Notes that a backup is about to be made. Nothing is remembered under the key: whoever asks again is noted again,
    /// and may well have made two backups.
    pub(crate) fn note_backup(
        &mut self,
        operator: Operator,
        identity: Option<Box<str>>,
        (tenant, key): (&TenantName, Option<&RequestKey>),
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        if !matches!(self.keyed(tenant, key), Ok(None)) {
            return Reply::Refused(Refusal::IdempotencyMismatch);
        }
        let fact = Fact::BackedUp { operator, identity, at: now.wall };
        if self.journaled.format < fact.format() {
            return Reply::Refused(Refusal::FormatTooOld);
        }
        self.record(fact, now, out);
        Reply::BackupNoted { audit_seq: self.journaled.audit.count }
    }
}
