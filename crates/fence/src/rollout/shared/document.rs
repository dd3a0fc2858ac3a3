//! What the processes share, as one JSON document.

use std::collections::BTreeMap;

use leasehold_types::WallTime;
use serde::{Deserialize, Serialize};

use super::super::{Counters, Override, Stage};

/// How many changes are remembered: for people who look, not as the audit log of record.
const CHANGES: usize = 200;
/// How many prefixes are kept; those that were only seen make room first. As many as a process counts apart.
const PREFIXES: usize = 1_000;

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Document {
    /// Drawn anew for every put, so that the same bytes never come twice.
    pub put: String,
    pub prefixes: BTreeMap<String, Prefix>,
    pub changes: Vec<Change>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Prefix {
    pub stage: String,
    /// How often the stage was switched: what was counted before belongs to another stage. 0: never declared.
    pub switched: u64,
    pub counters: Counts,
    pub in_force: Option<InForce>,
    pub drill: Option<Drill>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Counts {
    accepted: u64,
    rejected: u64,
    would_reject: u64,
    wrong_scope: u64,
    without_token: u64,
    overridden: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct InForce {
    pub actor: String,
    pub reason: String,
    pub ends_at_ms: u64,
}

/// A drill that was made on a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Drill {
    /// Whether the stale writer was refused.
    pub passed: bool,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

/// One change that somebody made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Change {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// `stage`, `override`, `override_end` or `drill`.
    pub action: String,
    /// The prefix.
    pub prefix: String,
    /// Who.
    pub actor: String,
    /// Why, or what was changed.
    pub detail: String,
}

impl Document {
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    pub(super) fn encode(&mut self, put: [u8; 16]) -> Vec<u8> {
        self.put = put.iter().map(|byte| format!("{byte:02x}")).collect();
        let surplus = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..surplus);
        while self.prefixes.len() > PREFIXES {
            let seen_only = self.prefixes.iter().find(|(_, prefix)| prefix.switched == 0);
            let Some(name) = seen_only.map(|(name, _)| name.clone()) else { break };
            self.prefixes.remove(&name);
        }
        serde_json::to_vec_pretty(self).expect("a document has nothing that JSON has not")
    }

    /// The prefix, as it is or as one that was only seen at this stage.
    pub(super) fn prefix(&mut self, prefix: &str, stage: Stage) -> &mut Prefix {
        self.prefixes.entry(prefix.to_owned()).or_insert_with(|| Prefix {
            stage: stage.to_string(),
            switched: 0,
            counters: Counts::default(),
            in_force: None,
            drill: None,
        })
    }

    pub(super) fn note(&mut self, now: WallTime, action: &str, prefix: &str, actor: &str, detail: String) {
        let (action, prefix, actor) = (action.to_owned(), prefix.to_owned(), actor.to_owned());
        self.changes.push(Change { at_ms: now.0, action, prefix, actor, detail });
    }
}

impl Prefix {
    /// A stage that this program does not know stops as much as any.
    pub(super) fn stage(&self) -> Stage {
        Stage::parse(&self.stage).unwrap_or(Stage::Require)
    }

    pub(super) fn in_force(&self, now: WallTime) -> Option<Override> {
        let made = self.in_force.as_ref().filter(|made| made.ends_at_ms > now.0)?;
        Override::new(&made.actor, &made.reason, WallTime(made.ends_at_ms)).ok()
    }
}

impl Counts {
    pub(super) fn add(&mut self, more: Counters) {
        self.accepted += more.accepted;
        self.rejected += more.rejected;
        self.would_reject += more.would_reject;
        self.wrong_scope += more.wrong_scope;
        self.without_token += more.without_token;
        self.overridden += more.overridden;
    }

    pub(super) fn counters(self) -> Counters {
        Counters {
            accepted: self.accepted,
            rejected: self.rejected,
            would_reject: self.would_reject,
            wrong_scope: self.wrong_scope,
            without_token: self.without_token,
            overridden: self.overridden,
        }
    }
}
