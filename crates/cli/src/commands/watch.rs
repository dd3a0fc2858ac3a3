//! `watch`: events as they are committed, across restarts of the server.

use std::time::Duration;

use leasehold_api::{CompactedEvent, LockEvent};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::client::{Call, Client, Events, ServerEvent, with_query};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

/// A server that is away for longer than this many attempts is taken for gone.
const ATTEMPTS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(200);

/// Follows events until interrupted, or until `count` of them were shown. When the stream breaks it is opened again
/// after the last event that had an id, so that nothing journaled is missed or told twice.
pub(crate) async fn watch(
    client: &Client,
    out: &mut Out,
    prefix: Option<String>,
    mut after: Option<String>,
    count: Option<u64>,
) -> Result<Exit, Failure> {
    let mut events = open(client, prefix.clone(), after.clone()).await?;
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        match events.next().await {
            Ok(event) => {
                tell(out, &event)?;
                after = event.id.or(after);
                shown += 1;
            }
            Err(_) => events = again(|| open(client, prefix.clone(), after.clone())).await?,
        }
    }
    Ok(Exit::Done)
}

async fn open(client: &Client, prefix: Option<String>, after: Option<String>) -> Result<Events, Failure> {
    client.events(&Call::get(with_query("/v1/events", &[("prefix", prefix), ("after", after)]))).await
}

/// Opens a stream that broke, for as long as a restart of the server may take.
pub(super) async fn again(mut open: impl AsyncFnMut() -> Result<Events, Failure>) -> Result<Events, Failure> {
    let mut attempt = 0;
    loop {
        sleep(PAUSE).await;
        attempt += 1;
        match open().await {
            Ok(events) => return Ok(events),
            Err(failure) if attempt >= ATTEMPTS => return Err(failure),
            Err(_) => {}
        }
    }
}

fn tell(out: &mut Out, event: &ServerEvent) -> Result<(), Failure> {
    if out.format() == Format::Json {
        let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
        return out.json(&json!({ "id": event.id, "event": event.event, "data": data }));
    }
    if let Ok(lock) = serde_json::from_str::<LockEvent>(&event.data) {
        return out.line(&line(event, &lock));
    }
    if let Ok(compacted) = serde_json::from_str::<CompactedEvent>(&event.data) {
        return out
            .line(&format!("older events were compacted; the oldest kept is {}", or_dash(compacted.oldest)));
    }
    out.line(&format!("{} {}", event.event, event.data))
}

fn line(event: &ServerEvent, lock: &LockEvent) -> String {
    let token = lock.fencing_token.map(|token| format!(" token {token}")).unwrap_or_default();
    let reason = lock.reason.map(|reason| format!(" ({reason})")).unwrap_or_default();
    let id = or_dash(event.id.as_deref());
    format!("{}  {id:<10}  {:<8}  {}  {}{token}{reason}", lock.at, event.event, lock.resource, lock.owner_id)
}
