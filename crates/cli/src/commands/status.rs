//! `status`.

use leasehold_api::StatusAnswer;

use crate::client::{Call, Client};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};

/// Shows what the server is and does.
pub(crate) async fn status(client: &Client, out: &mut Out) -> Result<Exit, Failure> {
    let answer = client.call(&Call::get("/v1/status")).await?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::Done);
    }
    let status: StatusAnswer = answer.read()?;
    out.pairs(&[
        ("node", format!("{}, {}, version {}", status.node, status.role.as_str(), status.version)),
        ("cluster", status.cluster_id.to_string()),
        ("generation", status.generation.to_string()),
        ("epoch", status.epoch.to_string()),
        ("journal", format!("{}, {}, slot {}", status.journal, status.durability, status.slot)),
        ("commits", if status.stalled { "STALLED: renewals are refused" } else { "make progress" }.into()),
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
    ])?;
    Ok(Exit::Done)
}
