//! `ls`: held locks, all pages.

use leasehold_api::{LockRecord, LocksPage};
use serde::Serialize;

use crate::client::{Call, Client, with_query};
use crate::duration::column;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::LockFilter;

/// Lists locks in resource order.
pub(crate) async fn ls(client: &Client, out: &mut Out, filter: &LockFilter) -> Result<Exit, Failure> {
    let mut locks = Vec::new();
    let mut cursor = None;
    loop {
        let page: LocksPage = client.call(&Call::get(path(filter, cursor))).await?.read()?;
        locks.extend(page.locks);
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    match out.format() {
        Format::Json => out.json(&Locks { locks: &locks })?,
        Format::Table => {
            let rows: Vec<_> = locks.iter().map(row).collect();
            out.table(&["RESOURCE", "OWNER", "TOKEN", "MODE", "HELD", "LEFT", "WAITERS", "MISSED"], &rows)?;
        }
    }
    Ok(Exit::Done)
}

/// All pages together.
#[derive(Serialize)]
struct Locks<'a> {
    locks: &'a [LockRecord],
}

fn path(filter: &LockFilter, cursor: Option<String>) -> String {
    with_query(
        "/v1/locks",
        &[
            ("prefix", filter.prefix.clone()),
            ("ownerId", filter.owner.as_ref().map(ToString::to_string)),
            ("sessionId", filter.session.map(|session| session.to_string())),
            ("heldLongerThanMs", filter.held_longer_than_ms.map(|ms| ms.to_string())),
            ("missedAtLeast", filter.missed_at_least.map(|missed| missed.to_string())),
            ("cursor", cursor),
        ],
    )
}

fn row(lock: &LockRecord) -> Vec<String> {
    vec![
        lock.resource.to_string(),
        lock.owner_id.to_string(),
        lock.fencing_token.to_string(),
        lock.mode.to_string(),
        column(lock.held_ms),
        column(lock.remaining_ms),
        lock.waiters.to_string(),
        lock.missed.to_string(),
    ]
}
