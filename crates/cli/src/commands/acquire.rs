//! `acquire`.

use std::time::Duration;

use leasehold_api::{
    AcquireAnswer, AcquireRequest, GrantedAnswer, NotGrantedAnswer, RenewAnswer, RenewRequest,
};
use tokio::time::{Instant, sleep};

use crate::client::{Answer, Call, Client};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::Acquire;

/// After a connection broke, the same acquire is asked again for at least this long, so that a restart of the server
/// does not cost a waiter its lock.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// Between two attempts: long enough not to hammer a server that is starting.
const PAUSE: Duration = Duration::from_millis(200);
const WHEN_LOST: &str = "ask again with the same --lease-id";

/// Asks, waits if told to, and prints the lease.
pub(crate) async fn acquire(client: &Client, out: &mut Out, acquire: &Acquire) -> Result<Exit, Failure> {
    let sent = Instant::now();
    let mut answer = ask(client, acquire, sent).await?;
    let granted = match answer.read()? {
        AcquireAnswer::NotGranted(refusal) => return not_acquired(out, &answer, &refusal),
        AcquireAnswer::Granted(granted) => granted,
    };
    let granted = match needs_proof(acquire, &granted, sent.elapsed()) {
        true => proven(client, &mut answer, granted).await?,
        false => granted,
    };
    tell(out, &answer, &granted)?;
    Ok(Exit::Done)
}

/// Asks until there is an answer. Every attempt carries the same lease id, so that it is the same acquire (K3).
async fn ask(client: &Client, acquire: &Acquire, sent: Instant) -> Result<Answer, Failure> {
    let until = sent + acquire.wait;
    let give_up = sent + acquire.wait.max(ASK_AGAIN);
    let mut was_reached = false;
    loop {
        let wait = until.saturating_duration_since(Instant::now());
        let call = Call::post("/v1/locks/acquire", &request(acquire, wait), WHEN_LOST).waiting(wait);
        let failure = match client.call(&call).await {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        was_reached |= !matches!(failure, Failure::Unreachable { .. } | Failure::Insecure { .. });
        if !was_reached || !may_ask_again(&failure) || Instant::now() >= give_up {
            return Err(failure);
        }
        sleep(PAUSE).await;
    }
}

fn may_ask_again(failure: &Failure) -> bool {
    match failure {
        // A server that ends in the middle of a handshake may be back in a moment.
        Failure::Unreachable { .. } | Failure::Insecure { .. } | Failure::Lost { .. } => true,
        Failure::Problem(problem) => matches!(problem.code.as_str(), "outcome_unknown" | "not_active"),
        _ => false,
    }
}

fn request(acquire: &Acquire, wait: Duration) -> AcquireRequest {
    AcquireRequest {
        owner_id: acquire.owner.clone(),
        ttl_ms: acquire.ttl_ms,
        wait_ms: Some(duration::ms(wait)).filter(|&ms| ms > 0),
        mode: Some(acquire.mode),
        limit: acquire.limit,
        class: Some(acquire.class),
        session_id: acquire.session,
        lease_id: Some(acquire.lease_id),
        lock_delay_ms: Some(acquire.lock_delay_ms).filter(|&ms| ms > 0),
        max_hold_ms: acquire.max_hold_ms,
        labels: acquire.labels.clone(),
        ..AcquireRequest::new(acquire.resource.clone())
    }
}

/// A grant may have lain in a buffer while its lease ran down: after a wait, or a slow answer, it counts as held only
/// once a renewal was confirmed (R7).
fn needs_proof(acquire: &Acquire, granted: &GrantedAnswer, took: Duration) -> bool {
    !acquire.wait.is_zero() || took > Duration::from_millis(granted.ttl_ms / 3)
}

async fn proven(
    client: &Client,
    answer: &mut Answer,
    mut granted: GrantedAnswer,
) -> Result<GrantedAnswer, Failure> {
    let path = format!("/v1/locks/{}/renew", granted.lease_id);
    let call = Call::post(path, &RenewRequest::default(), "renew it before using it");
    let renewed: RenewAnswer = client.call(&call).await?.read()?;
    granted.ttl_ms = renewed.ttl_ms;
    granted.expires_at = renewed.expires_at;
    answer.text = serde_json::to_string(&granted).expect("it was read from JSON");
    Ok(granted)
}

fn tell(out: &mut Out, answer: &Answer, granted: &GrantedAnswer) -> Result<(), Failure> {
    if out.format() == Format::Json {
        return out.line(&answer.text);
    }
    let mut pairs = vec![
        ("acquired", granted.resource.to_string()),
        ("lease", granted.lease_id.to_string()),
        ("token", granted.fencing_token.to_string()),
        ("ttl", duration::shown(granted.ttl_ms)),
        ("owner", granted.owner_id.to_string()),
        ("guarantee", granted.guarantee.to_string()),
    ];
    pairs.extend(granted.permit.map(|permit| ("permit", permit.0.to_string())));
    pairs.extend(granted.signed_token.clone().map(|signed| ("signed", signed)));
    pairs.extend(granted.warning.clone().map(|warning| ("warning", warning)));
    out.pairs(&pairs)
}

fn not_acquired(out: &mut Out, answer: &Answer, refusal: &NotGrantedAnswer) -> Result<Exit, Failure> {
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(Exit::NotAcquired);
    }
    out.pairs(&[("not acquired", refusal.resource.to_string())])?;
    for holder in &refusal.holders {
        out.pairs(&[("held by     ", format!("{} with token {}", holder.owner_id, holder.fencing_token))])?;
    }
    if let Some(at) = refusal.earliest_regrant_at {
        out.pairs(&[("closed until", at.to_string())])?;
    }
    out.pairs(&[("waiting     ", refusal.waiters.to_string())])?;
    Ok(Exit::NotAcquired)
}
