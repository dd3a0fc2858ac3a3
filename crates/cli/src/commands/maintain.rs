//! `restore`, `recover` and `journal copy`.

use leasehold_server::maintenance::{self, MaintenanceError, Site};
use leasehold_server::{JournalConfig, Recovered};
use leasehold_types::FencingToken;
use serde_json::json;

use super::backup;
use crate::args::SiteArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::{Maintain, Operator, usage};

const RESTORED: &str = "restored";

/// Works on a journal.
pub(crate) async fn maintain(out: &mut Out, maintain: Maintain) -> Result<Exit, Failure> {
    match maintain {
        Maintain::Backup(plan) => return backup::backup(out, plan).await,
        Maintain::Restore { site, file, operator } => {
            let done = maintenance::restore(&file, &named(&site)?, audited(operator)).await;
            recovered(out, RESTORED, &done.map_err(failure)?)?;
        }
        Maintain::Recover { site, token_floor, operator } => {
            let done =
                maintenance::recover(&named(&site)?, audited(operator), token_floor.map(FencingToken::get))
                    .await;
            recovered(out, "recovered", &done.map_err(failure)?)?;
        }
        Maintain::Copy { from, to, operator } => {
            let done = maintenance::copy(&named(&from)?, &named(&to)?, audited(operator)).await;
            recovered(out, "copied", &done.map_err(failure)?)?;
        }
    }
    Ok(Exit::Done)
}

/// The journal that was named; nothing is opened yet.
pub(super) fn named(site: &SiteArgs) -> Result<Site, Failure> {
    let journal = JournalConfig::from_url(&site.journal, &site.cluster);
    journal.map(|journal| Site::new(&site.data, &journal)).map_err(usage)
}

/// Who and why, as the audit log has it.
pub(super) fn audited(operator: Operator) -> leasehold_server::Operator {
    leasehold_server::Operator { actor: operator.actor.into(), reason: operator.reason.into() }
}

/// What to tell of it, and how the command ends.
pub(super) fn failure(error: MaintenanceError) -> Failure {
    let told = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    match error {
        _ if error.is_unavailable() => Failure::Unavailable(told),
        _ if error.is_refused() => Failure::RefusedToStart(told),
        MaintenanceError::Open(_) | MaintenanceError::Recover(_) | MaintenanceError::Note(_) => {
            Failure::RefusedToStart(told)
        }
        MaintenanceError::Backup(_)
        | MaintenanceError::Archive(_)
        | MaintenanceError::Restore(_)
        | MaintenanceError::Copy(_)
        | MaintenanceError::OtherCluster { .. }
        | MaintenanceError::NoJournal(_) => Failure::Failed(told),
    }
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
