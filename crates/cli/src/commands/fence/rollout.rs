//! `fence status`, `fence stage`, `fence override`: how far fences are switched on, over all processes that share a
//! roll-out.

use leasehold_api::Timestamp;
use leasehold_fence::rollout::shared::{Documents, Report, SharedRollout};
use leasehold_fence::rollout::{Counters, Override, Stage};
use leasehold_types::{ResourceName, WallTime};
use serde_json::{Value, json};

use super::args::{OverrideArgs, StageArgs, StatusArgs};
use super::{stage, wall_time};
use crate::duration::ms;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};
use crate::owner::default_owner;

/// What is asked of a roll-out.
pub(crate) struct RolloutPlan {
    store: String,
    act: Act,
}

enum Act {
    Status { prefix: Option<String> },
    Switch { prefix: String, stage: Stage, actor: String, anyway: bool },
    Override { prefix: String, made: Override },
    EndOverride { prefix: String, actor: String },
}

impl RolloutPlan {
    pub(super) fn status(args: &StatusArgs) -> Self {
        Self { store: args.rollout.rollout.clone(), act: Act::Status { prefix: args.prefix.clone() } }
    }

    pub(super) fn stage(args: &StageArgs) -> Result<Self, Failure> {
        let act = Act::Switch {
            prefix: args.prefix.clone(),
            stage: stage("STAGE", &args.stage)?,
            actor: actor(args.actor.as_ref()),
            anyway: args.anyway,
        };
        Ok(Self { store: args.rollout.rollout.clone(), act })
    }

    pub(super) fn overriding(args: &OverrideArgs) -> Result<Self, Failure> {
        let (prefix, actor) = (args.prefix.clone(), actor(args.actor.as_ref()));
        if args.lasts.is_zero() {
            return Err(Failure::Usage("--for must be more than 0".into()));
        }
        let act = match (args.end, &args.reason) {
            (true, _) => Act::EndOverride { prefix, actor },
            (false, reason) => {
                let ends_at = WallTime(wall_time().0.saturating_add(ms(args.lasts)));
                let made = Override::new(&actor, reason.as_deref().unwrap_or_default(), ends_at);
                Act::Override { prefix, made: made.map_err(|error| Failure::Usage(error.to_string()))? }
            }
        };
        Ok(Self { store: args.rollout.rollout.clone(), act })
    }
}

/// A prefix for people: the empty one is that of every name.
fn shown(prefix: &str) -> &str {
    if prefix.is_empty() { "every name" } else { prefix }
}

fn actor(named: Option<&String>) -> String {
    named.cloned().unwrap_or_else(|| default_owner().to_string())
}

/// Opens the roll-out of this address.
pub(crate) async fn open(store: &str) -> Result<SharedRollout<Documents>, Failure> {
    let documents = Documents::open(store).await;
    documents
        .map(SharedRollout::new)
        .map_err(|error| Failure::Fence(format!("cannot open the roll-out: {error}")))
}

/// Whoever only looks makes no new file by a slip of the pen.
fn exists(store: &str) -> Result<(), Failure> {
    match store.strip_prefix("sqlite:").or_else(|| store.strip_prefix("file:")) {
        Some(path) if !std::path::Path::new(path).exists() => Err(Failure::Fence(format!(
            "there is no roll-out in {path}; name it with --rollout, or begin one with `leasehold fence stage`"
        ))),
        _ => Ok(()),
    }
}

/// The roll-out gave no answer.
fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Fence(format!("the roll-out cannot be read or changed: {error}"))
}

/// Notes a drill where `fence status` finds it: under the longest prefix that is known, else the name's own.
pub(crate) async fn note_drill(
    store: &str,
    resource: &ResourceName,
    passed: bool,
) -> Result<String, Failure> {
    let (shared, now) = (open(store).await?, wall_time());
    let reports = shared.report(now).await.map_err(failed)?;
    let fits = reports
        .iter()
        .map(|report| &report.status)
        .filter(|status| resource.as_str().starts_with(&status.prefix));
    let longest = fits.max_by_key(|status| status.prefix.len());
    let prefix = longest.map_or(resource.prefix(), |status| status.prefix.as_str()).to_owned();
    let stage = longest.map_or(Stage::Count, |status| status.stage);
    shared.note_drill(&prefix, stage, passed, &actor(None), now).await.map_err(failed)?;
    Ok(prefix)
}

/// Does it.
pub(super) async fn rollout(out: &mut Out, plan: RolloutPlan) -> Result<Exit, Failure> {
    if matches!(plan.act, Act::Status { .. }) {
        exists(&plan.store)?;
    }
    let (shared, now) = (open(&plan.store).await?, wall_time());
    match plan.act {
        Act::Status { prefix } => {
            let mut reports = shared.report(now).await.map_err(failed)?;
            reports.retain(|report| {
                prefix.as_ref().is_none_or(|prefix| report.status.prefix.starts_with(prefix))
            });
            show(out, &reports)?;
            let safe = !reports.is_empty() && reports.iter().all(Report::next_stage_is_safe);
            Ok(if safe { Exit::Done } else { Exit::Failed })
        }
        Act::Switch { prefix, stage, actor, anyway } => {
            let reports = shared.report(now).await.map_err(failed)?;
            let before = reports.iter().find(|report| report.status.prefix == prefix);
            if let Some(before) = before.filter(|before| !anyway && stage > before.status.stage) {
                check(before, stage)?;
            }
            shared.switch(&prefix, stage, &actor, now).await.map_err(failed)?;
            let from = before.map_or_else(|| "undeclared".into(), |before| before.status.stage.to_string());
            told(
                out,
                json!({ "prefix": prefix, "from": from, "stage": stage.to_string(), "actorId": actor }),
                || format!("{}: {from} -> {stage}, everywhere within a second", shown(&prefix)),
            )
        }
        Act::Override { prefix, made } => {
            shared.set_override(&prefix, Stage::Count, &made, now).await.map_err(failed)?;
            let until = Timestamp(made.ends_at()).to_string();
            let report = json!({ "prefix": prefix, "actorId": made.actor(), "reason": made.reason(), "endsAt": until });
            told(out, report, || {
                format!("{}: every write passes until {until}, and is counted", shown(&prefix))
            })
        }
        Act::EndOverride { prefix, actor } => {
            shared.end_override(&prefix, &actor, now).await.map_err(failed)?;
            told(out, json!({ "prefix": prefix, "actorId": actor }), || {
                format!("{prefix}: no override is in force")
            })
        }
    }
}

/// A later stage is taken only when nothing speaks against it.
fn check(before: &Report, stage: Stage) -> Result<(), Failure> {
    match before.next_stage_is_safe() {
        true => Ok(()),
        false => Err(Failure::Failed(format!(
            "{}: {stage} is not safe: {}; `fence status` shows it, --anyway switches all the same",
            before.status.prefix,
            against(before).unwrap_or("something speaks against it")
        ))),
    }
}

fn told(out: &mut Out, report: Value, line: impl FnOnce() -> String) -> Result<Exit, Failure> {
    match out.format() {
        Format::Json => out.json(&report)?,
        Format::Table => out.line(&line())?,
    }
    Ok(Exit::Done)
}

/// What speaks against the next stage, the first of it.
fn against(report: &Report) -> Option<&'static str> {
    if report.next_stage_is_safe() {
        return None;
    }
    let (status, seen) = (&report.status, &report.status.counters);
    Some(match status.stage {
        _ if status.in_force.is_some() => "an override is in force",
        _ if seen.overridden > 0 => "an override let writes through",
        _ if report.last_drill.is_some_and(|drill| !drill.passed) => "the last drill failed",
        Stage::Shadow | Stage::Canary(_) if seen.would_reject > 0 => "it would stop writes",
        Stage::Enforce if seen.without_token > 0 => "there are writes without a token",
        _ => "no write was seen yet",
    })
}

fn show(out: &mut Out, reports: &[Report]) -> Result<(), Failure> {
    if out.format() == Format::Json {
        let prefixes: Vec<Value> = reports.iter().map(as_json).collect();
        return out.json(&json!({ "prefixes": prefixes }));
    }
    let headings = [
        "PREFIX",
        "STAGE",
        "ACCEPTED",
        "REJECTED",
        "WOULD REJECT",
        "NO TOKEN",
        "OVERRIDE",
        "LAST DRILL",
        "NEXT STAGE",
    ];
    let rows: Vec<Vec<String>> = reports.iter().map(as_row).collect();
    out.table(&headings, &rows)
}

fn as_row(report: &Report) -> Vec<String> {
    let (status, seen) = (&report.status, &report.status.counters);
    let override_by = status
        .in_force
        .as_ref()
        .map(|made| format!("by {} until {}", made.actor(), Timestamp(made.ends_at())));
    let drill = report.last_drill.map(|drill| {
        let word = if drill.passed { "passed" } else { "FAILED" };
        format!("{word} {}", Timestamp(WallTime(drill.at_ms)))
    });
    vec![
        status.prefix.clone(),
        status.stage.to_string(),
        seen.accepted.to_string(),
        seen.rejected.to_string(),
        seen.would_reject.to_string(),
        seen.without_token.to_string(),
        or_dash(override_by),
        or_dash(drill),
        against(report).map_or_else(|| "safe".into(), |why| format!("not safe: {why}")),
    ]
}

fn as_json(report: &Report) -> Value {
    let (status, seen): (_, &Counters) = (&report.status, &report.status.counters);
    let in_force = status.in_force.as_ref().map(|made| {
        let ends_at = Timestamp(made.ends_at()).to_string();
        json!({ "actorId": made.actor(), "reason": made.reason(), "endsAt": ends_at })
    });
    let drill = report
        .last_drill
        .map(|drill| json!({ "passed": drill.passed, "at": Timestamp(WallTime(drill.at_ms)).to_string() }));
    json!({
        "prefix": status.prefix,
        "stage": status.stage.to_string(),
        "accepted": seen.accepted,
        "rejected": seen.rejected,
        "wouldReject": seen.would_reject,
        "wrongScope": seen.wrong_scope,
        "withoutToken": seen.without_token,
        "overridden": seen.overridden,
        "override": in_force,
        "lastDrill": drill,
        "nextStageIsSafe": report.next_stage_is_safe(),
        "against": against(report),
    })
}
