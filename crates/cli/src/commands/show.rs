//! `show`: everything about one resource.

use leasehold_api::{EndingRecord, ExplainAnswer, LockRecord};
use leasehold_types::ResourceName;

use crate::client::{Call, Client, encoded};
use crate::duration::column;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

/// Explains a resource.
pub(crate) async fn show(client: &Client, out: &mut Out, resource: &ResourceName) -> Result<Exit, Failure> {
    let answer = client.call(&Call::get(format!("/v1/resources/{}", encoded(resource.as_str())))).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let explained: ExplainAnswer = answer.read()?;
    summary(out, &explained)?;
    if !explained.holders.is_empty() {
        holders(out, &explained.holders)?;
    }
    if !explained.waiters.is_empty() {
        let waiters = explained.waiters.iter();
        let rows: Vec<_> =
            waiters.map(|w| vec![w.owner_id.to_string(), w.mode.to_string(), column(w.waiting_ms)]).collect();
        out.line("")?;
        out.table(&["WAITER", "MODE", "WAITING"], &rows)?;
    }
    if !explained.endings.is_empty() {
        endings(out, &explained.endings)?;
    }
    Ok(Exit::Done)
}

fn summary(out: &mut Out, explained: &ExplainAnswer) -> Result<(), Failure> {
    let state = match (explained.holders.is_empty(), explained.earliest_regrant_at) {
        (false, _) => "held".to_owned(),
        (true, Some(at)) => format!("closed by a lock delay until {at}"),
        (true, None) => "free".to_owned(),
    };
    let mut pairs = vec![
        ("resource", explained.resource.to_string()),
        ("state", state),
        ("last token", or_dash(explained.last_token)),
        ("contention", explained.contention.to_string()),
    ];
    if explained.fence_rejections > 0 {
        pairs.push(("fence rejections", explained.fence_rejections.to_string()));
    }
    out.pairs(&pairs)
}

fn holders(out: &mut Out, holders: &[LockRecord]) -> Result<(), Failure> {
    let row = |holder: &LockRecord| {
        let (held, left) = (column(holder.held_ms), column(holder.remaining_ms));
        vec![
            holder.owner_id.to_string(),
            holder.fencing_token.to_string(),
            holder.mode.to_string(),
            held,
            left,
        ]
    };
    out.line("")?;
    out.table(&["HOLDER", "TOKEN", "MODE", "HELD", "LEFT"], &holders.iter().map(row).collect::<Vec<_>>())
}

fn endings(out: &mut Out, endings: &[EndingRecord]) -> Result<(), Failure> {
    let row = |ending: &EndingRecord| {
        let reason = match ending.max_hold {
            true => format!("{} (max hold)", ending.reason),
            false => ending.reason.to_string(),
        };
        vec![ending.owner_id.to_string(), ending.fencing_token.to_string(), reason, ending.at.to_string()]
    };
    out.line("")?;
    out.table(&["EARLIER HOLDER", "TOKEN", "ENDED", "AT"], &endings.iter().map(row).collect::<Vec<_>>())
}
