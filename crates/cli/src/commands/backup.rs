//! `backup`: first it is noted in the audit log, then the copy is taken, so that the copy holds its own entry.

use std::io::Write as _;

use leasehold_api::{BACKUPS_FORMAT, NoteBackupAnswer, NoteBackupRequest, StatusAnswer};
use leasehold_server::maintenance::Backup;
use leasehold_server::{BackupNote, BackupSummary};
use serde_json::json;

use super::maintain::{audited, failure, named};
use crate::client::{Call, Client};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};
use crate::plan::{BackupPlan, Operator};

/// Notes and makes a backup.
pub(crate) async fn backup(out: &mut Out, plan: BackupPlan) -> Result<Exit, Failure> {
    let BackupPlan { site, file, operator, servers } = plan;
    let site = named(&site)?;
    let backup = Backup::prepare(&site, &file).await.map_err(failure)?;
    let note = match servers {
        Some(servers) => note_at(&Client::new(servers), &backup, operator).await.map_err(how_else)?,
        None => backup.note_unserved(audited(operator)).await.map_err(failure)?,
    };
    let audit_seq = match note {
        BackupNote::Noted { audit_seq } => Some(audit_seq),
        BackupNote::FormatTooOld { format } => {
            warn(&format!(
                "not in the audit log: the journal has format {format}, which cannot hold that; `leasehold upgrade finish` raises it"
            ));
            None
        }
    };
    let summary = backup.take().await.map_err(failure)?;
    told(out, &summary, audit_seq)?;
    Ok(Exit::Done)
}

/// Has the active node note it. The status is asked for first: a node of another journal must not note what it has no
/// part in.
async fn note_at(client: &Client, backup: &Backup<'_>, operator: Operator) -> Result<BackupNote, Failure> {
    let status: StatusAnswer = client.call(&Call::get("/v1/status")).await?.read()?;
    backup.must_be_served_by(status.cluster_id).map_err(failure)?;
    let request = NoteBackupRequest { actor_id: operator.actor, reason: operator.reason };
    let call = Call::post("/v1/backups", &request, "look with `leasehold audit`, and try again");
    match client.call(&call).await {
        Ok(answer) => {
            let NoteBackupAnswer { audit_seq, cluster_id } = answer.read()?;
            backup.must_be_served_by(cluster_id).map_err(failure)?;
            Ok(BackupNote::Noted { audit_seq })
        }
        // A node of an older version does not know the path, one of this version says that the format is in the way.
        Err(Failure::Problem(problem))
            if problem.may_be_of_the_format() && status.format < BACKUPS_FORMAT =>
        {
            Ok(BackupNote::FormatTooOld { format: status.format })
        }
        Err(failure) => Err(failure),
    }
}

/// Nobody was there to note it: there is a second way.
fn how_else(failure: Failure) -> Failure {
    match failure {
        Failure::Unreachable { tried, error } => Failure::Unavailable(format!(
            "no server at {tried}: {error}; the backup was not made, because it is noted in the audit log first; name a node with --server, or say --unserved where no node serves this journal"
        )),
        other => other,
    }
}

fn warn(line: &str) {
    // Whoever closed standard error does not want to know.
    drop(writeln!(std::io::stderr(), "leasehold: {line}"));
}

fn told(out: &mut Out, summary: &BackupSummary, audit_seq: Option<u64>) -> Result<(), Failure> {
    if out.format() == Format::Json {
        return out.json(&json!({
            "clusterId": summary.cluster.to_string(),
            "epoch": summary.epoch.0,
            "slot": summary.tail.slot.0,
            "snapshotSlot": summary.snapshot.0,
            "bytes": summary.bytes,
            "auditSeq": audit_seq,
        }));
    }
    out.pairs(&[
        ("cluster", summary.cluster.to_string()),
        ("up to slot", summary.tail.slot.to_string()),
        ("bytes", summary.bytes.to_string()),
        ("audit entry", or_dash(audit_seq)),
    ])
}
