//! One lock event as one line.

use std::io::{self, Write};

use leasehold_api::Timestamp;
use leasehold_core::EventKind;
use leasehold_node::Happened;
use leasehold_types::EndReason;
use serde::Serialize;

use super::LogFormat;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LockLine<'a> {
    timestamp: Timestamp,
    level: &'static str,
    event: &'static str,
    tenant: &'a str,
    resource: &'a str,
    owner_id: &'a str,
    lease_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    fencing_token: Option<u64>,
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permit: Option<u32>,
    ttl_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    max_hold: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    waited_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    held_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    missed: Option<u32>,
}

fn lock_line(Happened { at, event, .. }: &Happened) -> LockLine<'_> {
    let mut line = LockLine {
        timestamp: Timestamp(*at),
        level: if event.kind.is_journaled() { "INFO" } else { "DEBUG" },
        event: "lock_acquired",
        tenant: event.resource.tenant(),
        resource: event.resource.name(),
        owner_id: event.owner.as_str(),
        lease_id: event.lease_id.short(),
        fencing_token: event.token.map(|token| token.get()),
        mode: event.mode.as_str(),
        permit: event.permit.map(|permit| permit.0),
        ttl_ms: event.ttl_ms,
        reason: None,
        max_hold: false,
        waited_ms: None,
        held_ms: None,
        missed: None,
    };
    match event.kind {
        EventKind::Granted { waited_ms } => line.waited_ms = Some(waited_ms),
        EventKind::Proclaimed => line.event = "leader_proclaimed",
        EventKind::Queued => line.event = "lock_queued",
        EventKind::Renewed { missed } => {
            line.event = "lock_renewed";
            line.missed = Some(missed);
        }
        EventKind::Ended { reason, max_hold, held_ms } => {
            line.event = match reason {
                EndReason::Released | EndReason::SessionEnded | EndReason::Unknown => "lock_released",
                EndReason::Expired => "lock_expired",
                EndReason::Forced => "lock_force_released",
            };
            line.reason = Some(reason.as_str());
            line.max_hold = max_hold;
            line.held_ms = Some(held_ms);
        }
    }
    line
}

/// Writes the line of an event, with its end.
pub(super) fn write_lock_event(text: &mut Vec<u8>, happened: &Happened, format: LogFormat) {
    let line = lock_line(happened);
    let written = match format {
        LogFormat::Json => serde_json::to_writer(&mut *text, &line).map_err(io::Error::from),
        LogFormat::Plain => {
            let token = line.fencing_token.map(|token| format!(" token={token}")).unwrap_or_default();
            let reason = line.reason.map(|reason| format!(" reason={reason}")).unwrap_or_default();
            write!(
                text,
                "{} {:>5} {} resource={:?} owner={:?} lease={}{token} mode={} ttl={}ms{reason}",
                line.timestamp,
                line.level,
                line.event,
                line.resource,
                line.owner_id,
                line.lease_id,
                line.mode,
                line.ttl_ms,
            )
        }
    };
    written.expect("memory takes everything");
    text.push(b'\n');
}
