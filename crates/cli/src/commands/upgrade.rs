//! `upgrade finish`.

use leasehold_api::{NodeSeen, UpgradeFinishAnswer, UpgradeFinishRequest};

use crate::client::{Call, Client};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out, or_dash};
use crate::plan::Operator;

/// Lets facts of the newest format into the journal, unless an older node is alive.
pub(crate) async fn finish(client: &Client, out: &mut Out, operator: Operator) -> Result<Exit, Failure> {
    let request = UpgradeFinishRequest { actor_id: operator.actor, reason: operator.reason };
    let call = Call::post("/v1/upgrade/finish", &request, "look with `leasehold status`");
    let answer = client.call(&call).await?;
    let done: UpgradeFinishAnswer = answer.read()?;
    if out.format() == Format::Json {
        out.line(&answer.text)?;
        return Ok(if done.finished { Exit::Done } else { Exit::Failed });
    }
    if !done.finished {
        return Err(Failure::Failed(in_the_way(&done)));
    }
    match done.format == done.before {
        true => out.line(&format!("the journal has format {} already", done.format))?,
        false => out.line(&format!("raised the journal from format {} to {}", done.before, done.format))?,
    }
    Ok(Exit::Done)
}

fn in_the_way(done: &UpgradeFinishAnswer) -> String {
    let name = |node: &NodeSeen| {
        let (version, address) = (or_dash(node.version.as_ref()), or_dash(node.address.as_ref()));
        format!("{} at {address} (version {version}, format {})", node.node, node.known_format)
    };
    let names: Vec<_> = done.older_nodes.iter().map(name).collect();
    let format = done.format;
    format!(
        "the journal stays in format {format}: an older node is alive and would have to stop: {}; upgrade it, or stop it and ask again 10 s later",
        names.join(", ")
    )
}
