//! `/v1/backups`.

use leasehold_types::ClusterId;
use serde::{Deserialize, Serialize};

use crate::wire;

/// The first format of a journal that can hold the note of a backup.
pub const BACKUPS_FORMAT: u8 = 3;

/// `POST /v1/backups`: a backup is about to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NoteBackupRequest {
    /// Who makes it.
    pub actor_id: String,
    /// Why.
    pub reason: String,
}

/// The backup is in the audit log, so a copy that is taken now holds that too.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NoteBackupAnswer {
    /// The audit entry that says so.
    pub audit_seq: u64,
    /// Of which journal: the copy must be of the same.
    #[serde(with = "wire::text")]
    pub cluster_id: ClusterId,
}
