//! `status`.

use leasehold_api::{NodeSeen, Role, StatusAnswer};

use crate::client::{Call, Client};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

/// Shows what the server is and does. Ends as unavailable while commits make no progress.
pub(crate) async fn status(client: &Client, out: &mut Out) -> Result<Exit, Failure> {
    let answer = client.call(&Call::get("/v1/status")).await?;
    let status: StatusAnswer = answer.read()?;
    let exit = if status.stalled { Exit::Unavailable } else { Exit::Done };
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(exit);
    }
    out.pairs(&[
        ("node", format!("{}, {}, version {}", status.node, status.role.as_str(), status.version)),
        ("cluster", status.cluster_id.to_string()),
        ("generation", status.generation.to_string()),
        ("epoch", status.epoch.to_string()),
        ("journal", format!("{}, {}, slot {}", status.journal, status.durability, status.slot)),
        ("commits", commits(&status).into()),
        (
            "room",
            if status.room { "for grants" } else { "DISK FULL: acquires are refused, releases work" }.into(),
        ),
        (
            "locks",
            format!(
                "{} held, {} waiters, last token {}",
                status.locks_held, status.waiters, status.last_token
            ),
        ),
        ("sessions", status.sessions_open.to_string()),
        ("format", format(&status)),
    ])?;
    out.line("")?;
    out.table(&HEADINGS, &status.nodes.iter().map(row).collect::<Vec<_>>())?;
    Ok(exit)
}

fn commits(status: &StatusAnswer) -> &'static str {
    match (status.stalled, status.role) {
        (false, _) => "make progress",
        (true, Role::Active) => "STALLED: renewals are refused",
        (true, Role::Standby) => "STALLED: nobody serves, as far as this node can tell; GET /readyz says why",
    }
}

const HEADINGS: [&str; 7] = ["NODE", "ROLE", "ADDRESS", "VERSION", "FORMAT", "LAG", "SEEN"];

fn row(seen: &NodeSeen) -> Vec<String> {
    vec![
        seen.node.clone(),
        seen.role.as_str().to_owned(),
        or_dash(seen.address.as_ref()),
        or_dash(seen.version.as_ref()),
        seen.known_format.to_string(),
        seen.lag.to_string(),
        if seen.last_seen_ms == 0 { "now".into() } else { format!("{} ms ago", seen.last_seen_ms) },
    ]
}

fn format(status: &StatusAnswer) -> String {
    match status.format < status.known_format {
        false => status.format.to_string(),
        true => format!(
            "{}, this node knows {}: `leasehold upgrade finish` when every node does",
            status.format, status.known_format
        ),
    }
}
