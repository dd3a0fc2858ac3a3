//! Elections. A candidate is a waiter, leadership a lease on `election/NAME`; `elect` therefore is `run` with a name and a
//! value, and stops on loss and on uncertainty as it does.

use leasehold::LeaseGuard;
use leasehold_api::{Leader, ResignAnswer, ResignRequest};
use leasehold_types::{LeaseId, OwnerId};
use serde_json::{Value, json};

use crate::client::{Call, Client, Events, encoded};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};

/// What a candidate stands for.
pub(crate) struct Candidacy {
    pub(crate) name: String,
    /// Told to everybody who observes, together with the election.
    pub(crate) value: Option<String>,
    /// How `elect` without a command says that it is elected.
    pub(crate) format: Format,
}

impl Candidacy {
    /// Says that this process leads, when there is no command to say it to.
    pub(crate) fn announce(&self, owner: &OwnerId, guard: &LeaseGuard) -> Result<(), Failure> {
        let token = guard.token().map_or(Value::Null, |token| json!(token.get()));
        let lease = guard.lease_id().to_string();
        let mut out = Out::new(self.format);
        match self.format {
            Format::Json => out.json(&json!({
                "elected": true, "name": self.name, "ownerId": owner.as_str(), "leaseId": lease,
                "fencingToken": token, "value": self.value,
            })),
            Format::Table => out.pairs(&[
                ("elected", self.name.clone()),
                ("lease", lease),
                ("token", token.to_string()),
                ("owner", owner.to_string()),
            ]),
        }
    }
}

/// Follows who leads, until interrupted or until `count` changes were shown. A broken stream is opened again: it begins
/// with whoever leads then.
pub(crate) async fn observe(
    client: &Client,
    out: &mut Out,
    name: &str,
    count: Option<u64>,
) -> Result<Exit, Failure> {
    let call = Call::get(path(name, "observe"));
    let mut events: Events = client.events(&call).await?;
    let (mut shown, mut last) = (0, None);
    while count.is_none_or(|count| shown < count) {
        let Ok(event) = events.next().await else {
            events = super::watch::again(|| client.events(&call)).await?;
            continue;
        };
        let data: Value = serde_json::from_str(&event.data).unwrap_or(Value::Null);
        // After a reconnection the same leader is told again.
        if last.replace((event.event.clone(), data.clone())) != Some((event.event.clone(), data.clone())) {
            tell(out, &event.event, &data)?;
            shown += 1;
        }
    }
    Ok(Exit::Done)
}

fn tell(out: &mut Out, event: &str, data: &Value) -> Result<(), Failure> {
    if out.format() == Format::Json {
        return out.json(&json!({ "event": event, "data": data }));
    }
    match serde_json::from_value::<Leader>(data.clone()) {
        Ok(leader) if event == "leader" => out.line(&format!(
            "leader  {}  token {}  {}",
            leader.owner_id,
            leader.fencing_token,
            or_dash(leader.value)
        )),
        _ => out.line(event),
    }
}

/// Gives leadership up, to a chosen candidate or to the next in line.
pub(crate) async fn resign(
    client: &Client,
    out: &mut Out,
    name: &str,
    lease_id: LeaseId,
    to: Option<OwnerId>,
) -> Result<Exit, Failure> {
    let body = ResignRequest { lease_id, to: to.clone() };
    let hint = "look with `leasehold show election/NAME`";
    let answer = client.call(&Call::post(path(name, "resign"), &body, hint)).await?;
    answer.read::<ResignAnswer>()?;
    match out.format() {
        Format::Json => out.line(&answer.text)?,
        Format::Table => match to {
            Some(to) => out.line(&format!("resigned from {name} in favour of {to}"))?,
            None => out.line(&format!("resigned from {name}"))?,
        },
    }
    Ok(Exit::Done)
}

fn path(name: &str, what: &str) -> String {
    format!("/v1/elections/{}/{what}", encoded(name))
}
