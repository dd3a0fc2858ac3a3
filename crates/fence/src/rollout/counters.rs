//! What has been seen at a prefix.

use super::Decision;
use crate::Rejection;

/// Counts of decisions since the stage was switched on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Writes that the fence admitted (`fencing_accept_total`).
    pub accepted: u64,
    /// Writes that were stopped (`fencing_reject_total`).
    pub rejected: u64,
    /// Writes that went on although the fence rejected them (`fencing_shadow_reject_total`).
    pub would_reject: u64,
    /// Of both, those with a token of another lock (`fencing_wrong_scope_total`).
    pub wrong_scope: u64,
    /// Writes without a token, stopped or not (`critical_write_without_token_total`).
    pub without_token: u64,
    /// Writes that an override let through.
    pub overridden: u64,
}

impl Counters {
    /// What came since an earlier count. Counts start anew with a stage: then all of it is new.
    #[cfg(feature = "shared-rollout")]
    pub(super) fn since(self, before: Self) -> Self {
        let less = |now: u64, before: u64| now.checked_sub(before);
        let all = || {
            Some(Self {
                accepted: less(self.accepted, before.accepted)?,
                rejected: less(self.rejected, before.rejected)?,
                would_reject: less(self.would_reject, before.would_reject)?,
                wrong_scope: less(self.wrong_scope, before.wrong_scope)?,
                without_token: less(self.without_token, before.without_token)?,
                overridden: less(self.overridden, before.overridden)?,
            })
        };
        all().unwrap_or(self)
    }

    pub(super) fn add(&mut self, decision: Decision<'_>) {
        match decision {
            Decision::Accepted => self.accepted += 1,
            Decision::WithoutToken => self.without_token += 1,
            Decision::Rejected(_) => self.rejected += 1,
            Decision::WouldReject(_) => self.would_reject += 1,
            Decision::Overridden(_) => self.overridden += 1,
        }
        match decision {
            Decision::Rejected(why) | Decision::WouldReject(why) | Decision::Overridden(why) => {
                self.wrong_scope += u64::from(matches!(why, Rejection::WrongScope { .. }));
                self.without_token += u64::from(matches!(why, Rejection::MissingToken));
            }
            Decision::Accepted | Decision::WithoutToken => {}
        }
    }
}
