//! Policies and quotas live in the configuration of the nodes. What is journaled of them is that they changed: an entry of
//! the audit log, whenever the active node serves with others than the last such entry says.

use leasehold_types::{Now, WallTime};

use crate::audit::{Action, AuditAction};
use crate::command::Operator;
use crate::fact::Fact;
use crate::journaled::Journaled;
use crate::reply::Reply;
use crate::table::{Decision, LockTable};

impl Journaled {
    /// The settings as they were last noted.
    fn noted_settings(&self) -> Option<&str> {
        let entries = self.audit.entries.iter().rev();
        let mut changes = entries.filter(|entry| entry.action == AuditAction::SettingsChange);
        changes.next().map(|entry| &*entry.reason)
    }

    pub(crate) fn note_settings(&mut self, operator: &Operator, at: WallTime) {
        self.audit.add(Action {
            action: AuditAction::SettingsChange,
            tenant: "",
            resource: None,
            operator,
            identity: None,
            tokens: Vec::new(),
            at,
        });
    }
}

impl LockTable {
    /// Notes these settings, which the operator's reason spells out, if they are not those noted last.
    pub(crate) fn note_settings(
        &mut self,
        operator: Operator,
        is_default: bool,
        now: Now,
        out: &mut Decision,
    ) -> Reply {
        let noted = self.journaled.noted_settings();
        let is_known = noted == Some(&*operator.reason) || (noted.is_none() && is_default);
        if is_known || self.journaled.format < 2 {
            return Reply::SettingsNoted { audit_seq: None };
        }
        self.record(Fact::SettingsChanged { operator, at: now.wall }, now, out);
        Reply::SettingsNoted { audit_seq: Some(self.journaled.audit.count) }
    }
}
