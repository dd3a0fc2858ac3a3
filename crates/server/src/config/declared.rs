//! The policies and quotas that a node serves with, for the audit log: whoever changes the configuration of a node leaves a
//! trace of it in the journal, as whoever changes anything else does.

use leasehold_core::{Command, Operator, Quotas};
use leasehold_node::{Call, Handle, Role};
use leasehold_types::TenantName;
use tracing::{info, warn};

use super::{Policies, TenantLimits};

/// Longer than a few policies and tenants; the digest at the end tells apart what is cut off.
const MOST: usize = 1_500;

/// See the module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Declared {
    node: String,
    text: String,
    is_default: bool,
    quotas: Quotas,
}

impl Declared {
    /// What the settings of this node declare.
    pub(crate) fn new(node: &str, policies: &Policies, tenants: &TenantLimits) -> Self {
        let mut lines = policies.spelled_out();
        lines.extend(tenants.spelled_out());
        let whole = lines.join("; ").replace(char::is_control, " ");
        let digest = blake3::hash(whole.as_bytes()).to_hex();
        let mut shown = whole;
        if shown.len() > MOST {
            shown.truncate(shown.floor_char_boundary(MOST));
            shown.push('…');
        }
        let is_default = lines.is_empty();
        let what = if is_default { "no policies, no quotas".to_owned() } else { shown };
        let text = format!("{what} [{}]", &digest[..16]);
        Self { node: node.to_owned(), text, is_default, quotas: tenants.quotas() }
    }

    /// Gives them to the table, if this node is active, and notes them in the audit log, if the newest note there says
    /// something else.
    pub(crate) async fn note(self, handle: &Handle) {
        if handle.status().role != Role::Active {
            return;
        }
        let operator =
            Operator { actor: format!("config of {}", self.node).into(), reason: self.text.into() };
        let command = Command::NoteSettings { operator, is_default: self.is_default, quotas: self.quotas };
        let call = Call { tenant: TenantName::default_tenant(), identity: None, key: None, command };
        match handle.submit(call).await.map(leasehold_node::Durable::into_inner) {
            Ok(leasehold_core::Reply::SettingsNoted { audit_seq: Some(audit_seq) }) => {
                info!(event = "settings_changed", audit_seq, "policies or quotas are others than before");
            }
            Ok(_) => {}
            Err(error) => {
                warn!(event = "settings_not_noted", %error, "policies and quotas are not in the audit log");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::RawConfig;

    fn declared(text: &str) -> Declared {
        let config = RawConfig::from_toml(text).unwrap().resolve().unwrap();
        Declared::new(&config.node, &config.limits.policies.now(), &config.tenants)
    }

    #[test]
    fn what_is_declared_is_spelled_out_and_told_apart() {
        let nothing = declared("");
        assert!(nothing.is_default && nothing.text.starts_with("no policies"), "{nothing:?}");
        let policy = "[[policies]]\nprefix = \"billing/\"\nttl = \"30s\"\nclass = \"correctness\"\n";
        let quota = "[tenants.acme]\nlocks = 5\n";
        let both = declared(&format!("{policy}{quota}"));
        let begins = "policy billing/ ttl 30000 ms class correctness; tenant acme locks 5 [";
        assert!(both.text.starts_with(begins) && !both.is_default, "{both:?}");
        assert_eq!(both, declared(&format!("{quota}{policy}")), "the order of the file does not matter");
        assert_ne!(both.text, declared(quota).text);
    }

    #[test]
    fn what_is_cut_off_is_told_apart_by_the_digest() {
        let many = |last: &str| {
            (0..200).map(|n| format!("[[policies]]\nprefix = \"{n}/\"\n")).collect::<String>()
                + &format!("[[policies]]\nprefix = \"z\"\ndescription = \"{last}\"\n")
        };
        let (one, other) = (declared(&many("one")), declared(&many("other")));
        assert!(one.text.len() < MOST + 40);
        assert_ne!(one.text, other.text);
    }
}
