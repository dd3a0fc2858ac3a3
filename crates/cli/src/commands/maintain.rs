//! `backup`, `restore` and `recover`.

use leasehold_server::maintenance::{self, MaintenanceError};
use leasehold_server::{BackupSummary, Recovered};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::{Maintain, Operator};

const RESTORED: &str = "restored";

/// Works on a data directory.
pub(crate) async fn maintain(out: &mut Out, maintain: Maintain) -> Result<Exit, Failure> {
    match maintain {
        Maintain::Backup { data, file } => {
            let summary = maintenance::backup(&data, &file).await.map_err(failure)?;
            backed_up(out, &summary)?;
        }
        Maintain::Restore { data, file, operator } => {
            let restored = maintenance::restore(&file, &data, audited(operator)).await.map_err(failure)?;
            recovered(out, RESTORED, &restored)?;
        }
        Maintain::Recover { data, operator } => {
            let done = maintenance::recover(&data, audited(operator)).await.map_err(failure)?;
            recovered(out, "recovered", &done)?;
        }
    }
    Ok(Exit::Done)
}

fn audited(operator: Operator) -> leasehold_server::Operator {
    leasehold_server::Operator { actor: operator.actor.into(), reason: operator.reason.into() }
}

fn failure(error: MaintenanceError) -> Failure {
    let told = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    match error {
        MaintenanceError::Open(_) | MaintenanceError::Recover(_) => Failure::RefusedToStart(told),
        MaintenanceError::Backup(_) | MaintenanceError::Restore(_) | MaintenanceError::NoJournal(_) => {
            Failure::Failed(told)
        }
    }
}

fn backed_up(out: &mut Out, summary: &BackupSummary) -> Result<(), Failure> {
    if out.format() == Format::Json {
        return out.json(&json!({
            "clusterId": summary.cluster.to_string(),
            "epoch": summary.epoch.0,
            "slot": summary.tail.slot.0,
            "snapshotSlot": summary.snapshot.0,
            "bytes": summary.bytes,
        }));
    }
    out.pairs(&[
        ("cluster", summary.cluster.to_string()),
        ("up to slot", summary.tail.slot.to_string()),
        ("bytes", summary.bytes.to_string()),
    ])
}

fn recovered(out: &mut Out, word: &str, done: &Recovered) -> Result<(), Failure> {
    if out.format() == Format::Json {
        return out.json(&json!({
            word: true,
            "clusterId": done.cluster.to_string(),
            "generation": done.generation.0,
            "epoch": done.epoch.0,
            "tokenFloor": done.token_floor,
            "loss": done.loss,
        }));
    }
    let mut pairs = vec![
        (word, done.cluster.to_string()),
        ("generation", done.generation.to_string()),
        ("tokens", format!("above {}", done.token_floor)),
    ];
    match word {
        // Nobody knows how much that is; the backup does not.
        RESTORED => pairs.push(("lost", "whatever was granted or released after the backup was made".into())),
        _ => pairs.extend(done.loss.clone().map(|loss| ("lost", loss))),
    }
    out.pairs(&pairs)
}
