//! `audit`, `audit verify`, `audit export`.

use leasehold_api::{AuditPage, AuditRecord, AuditVerifyAnswer};
use leasehold_types::ResourceName;
use serde::Serialize;

use crate::client::{Call, Client, with_query};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

/// Shows what operators did.
pub(crate) async fn list(
    client: &Client,
    out: &mut Out,
    resource: Option<ResourceName>,
    after: u64,
) -> Result<Exit, Failure> {
    let mut entries = Vec::new();
    pages(client, resource, after, |page| {
        entries.extend(page);
        Ok(())
    })
    .await?;
    match out.format() {
        Format::Json => out.json(&Entries { entries: &entries })?,
        Format::Table => {
            let rows: Vec<_> = entries.iter().map(row).collect();
            out.table(&["SEQ", "AT", "ACTION", "RESOURCE", "TOKEN", "ACTOR", "REASON"], &rows)?;
        }
    }
    Ok(Exit::Done)
}

/// All pages together.
#[derive(Serialize)]
struct Entries<'a> {
    entries: &'a [AuditRecord],
}

/// Writes every kept entry, one JSON object a line, whatever the output format.
pub(crate) async fn export(
    client: &Client,
    out: &mut Out,
    resource: Option<ResourceName>,
    after: u64,
) -> Result<Exit, Failure> {
    pages(client, resource, after, |page| page.iter().try_for_each(|entry| out.json(entry))).await?;
    Ok(Exit::Done)
}

/// Has the server recompute the chain.
pub(crate) async fn verify(client: &Client, out: &mut Out) -> Result<Exit, Failure> {
    let answer = client.call(&Call::get("/v1/audit/verify")).await?;
    let verified: AuditVerifyAnswer = answer.read()?;
    match (out.format(), verified.first_bad) {
        (Format::Json, _) => out.line(&answer.text)?,
        (Format::Table, None) => {
            out.line(&format!("intact: {} entries, head {}", verified.entries, verified.head))?;
        }
        (Format::Table, Some(seq)) => out.line(&format!("BROKEN at entry {seq} of {}", verified.entries))?,
    }
    Ok(if verified.intact { Exit::Done } else { Exit::Failed })
}

/// Asks for page after page.
async fn pages(
    client: &Client,
    resource: Option<ResourceName>,
    after: u64,
    mut each: impl FnMut(Vec<AuditRecord>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let resource = resource.map(|resource| resource.to_string());
    let mut next = Some(after);
    while let Some(after) = next {
        let path =
            with_query("/v1/audit", &[("resource", resource.clone()), ("after", Some(after.to_string()))]);
        let page: AuditPage = client.call(&Call::get(path)).await?.read()?;
        each(page.entries)?;
        next = page.next_after;
    }
    Ok(())
}

fn row(entry: &AuditRecord) -> Vec<String> {
    let tokens: Vec<String> = entry.fencing_tokens.iter().map(u64::to_string).collect();
    vec![
        entry.seq.to_string(),
        entry.created_at.to_string(),
        entry.action.clone(),
        or_dash(entry.resource.as_deref()),
        or_dash(Some(tokens.join(",")).filter(|tokens| !tokens.is_empty())),
        entry.actor_id.clone(),
        entry.reason.clone(),
    ]
}
