//! `/v1/backups`.

use leasehold_api as api;
use leasehold_core::{Command, Reply};

use super::answer::{Answer, Failure, json};
use super::received::Received;
use super::{App, convert, unexpected};

/// `POST /v1/backups`.
pub(super) async fn note(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let (key, request) = received.change::<api::NoteBackupRequest>().await?;
    let operator = convert::operator(&request.actor_id, &request.reason)?;
    match app.submit(key, Command::NoteBackup(operator)).await? {
        Reply::BackupNoted { audit_seq } => {
            let cluster_id = app.handle.status().cluster;
            Ok(json(&api::NoteBackupAnswer { audit_seq, cluster_id }))
        }
        other => unexpected(&other),
    }
}
