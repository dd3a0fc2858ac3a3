//! Taking a journal over: the probe, and the one multi that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::claim::{
    ATTEMPTS, damaged_part, failed_probe, next_holder, probe_batch, probe_claim,
};
use leasehold_journal::remote::record::{Holder, Identity, decode_tail, encode_number, encode_tail};
use leasehold_journal::{Chained, Claim, OpenError, Tail};
use leasehold_types::{Epoch, Slot, ids};

use crate::client::{Client, Multi, Op, Trouble};
use crate::paths::Paths;
use crate::writer::{self, Place, Refused};

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) identity: Identity,
    pub(crate) holder: Holder,
    pub(crate) place: Place,
}

/// The only place where trouble becomes a reason not to open.
pub(crate) fn refuse(trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::NotAllowed(text) => OpenError::Refused(text),
        Trouble::Unknown(text) => OpenError::Unavailable(text),
    }
}

/// Proves on a scratch journal that the engine takes a right append once and refuses it from a replaced writer (J11).
pub(crate) async fn probe(client: &Client) -> Result<(), OpenError> {
    client.ensure("/leasehold").await.map_err(refuse)?;
    let scratch = Paths::scratch(&ids::random());
    let verdict = probe_at(client, &scratch).await;
    let removed = client.remove(&scratch.root).await;
    verdict?;
    removed.map_err(refuse)
}

async fn probe_at(client: &Client, paths: &Paths) -> Result<(), OpenError> {
    let first = claim(client, paths, &probe_claim(1)).await?;
    let second = claim(client, paths, &probe_claim(2)).await?;
    let mut seen = Vec::new();
    for claimed in [&first, &second, &second] {
        let batch = Chained::new(probe_batch(Slot(1)), claimed.holder.epoch);
        let outcome = writer::append(client, paths, claimed.holder, claimed.place, None, &batch).await;
        seen.push(outcome.map_err(refuse)?.err());
    }
    if seen != [Some(Refused::Fenced), None, Some(Refused::TailMoved)] {
        return Err(failed_probe("stale, right, twice", seen));
    }
    Ok(())
}

/// Claims; founds the journal when there is none.
pub(crate) async fn claim(client: &Client, paths: &Paths, claim: &Claim) -> Result<Claimed, OpenError> {
    let mut current = Epoch(0);
    for _ in 0..ATTEMPTS {
        client.sync().await.map_err(refuse)?;
        let seen = client.read(&[&paths.identity, &paths.epoch]).await.map_err(refuse)?;
        let (identity, before) = (seen.first().cloned().flatten(), seen.get(1).cloned().flatten());
        let old = before.as_ref().map(|(bytes, _)| Holder::decode(bytes).ok_or_else(|| damaged("epoch")));
        let old = old.transpose()?;
        current = old.map_or(Epoch(0), |old| old.epoch);
        let holder = next_holder(claim, current)?;
        let claimed = match (identity, before, old) {
            (Some((identity, _)), Some((_, version)), Some(old)) => {
                let identity = Identity::to_claim(&identity, claim.accept_loss, || damaged("identity"))?;
                bump(client, paths, identity, holder, old, version).await?
            }
            (None, None, _) => found(client, paths, Identity::whole(claim.new_cluster), holder).await?,
            _ => return Err(damaged("identity")),
        };
        if let Some(claimed) = claimed {
            return Ok(claimed);
        }
    }
    Err(OpenError::LostDuel(current))
}

fn damaged(node: &str) -> OpenError {
    damaged_part("node", node)
}

/// The compare-and-set itself: the epoch is changed if nobody else has, our node replaces that of the one before. Then
/// the tail is read in the same session, which has seen that write (J5). `None` when another claim was faster.
async fn bump(
    client: &Client,
    paths: &Paths,
    identity: Identity,
    holder: Holder,
    old: Holder,
    version: i32,
) -> Result<Option<Claimed>, OpenError> {
    let mut ops = vec![
        Op::Set(paths.epoch.clone(), holder.encode(), Some(version)),
        Op::Set(paths.beat.clone(), encode_number(0), None),
        Op::Delete(paths.holder(old.nonce)),
    ];
    ops.push(Op::Create(paths.holder(holder.nonce), Bytes::new()));
    if let Multi::Refused(_) = client.multi(ops).await.map_err(refuse)? {
        return Ok(None);
    }
    let found = client.read(&[&paths.tail]).await.map_err(refuse)?;
    let (bytes, version) = found.into_iter().next().flatten().ok_or_else(|| damaged("tail"))?;
    let tail = decode_tail(&bytes).ok_or_else(|| damaged("tail"))?;
    Ok(Some(Claimed { identity, holder, place: Place { tail, version } }))
}

/// Makes an empty journal that is ours from the beginning. `None` when another was faster.
pub(crate) async fn found(
    client: &Client,
    paths: &Paths,
    identity: Identity,
    holder: Holder,
) -> Result<Option<Claimed>, OpenError> {
    client.ensure("/leasehold").await.map_err(refuse)?;
    let tail = Tail::default();
    let create = |path: &str, data: Bytes| Op::Create(path.to_owned(), data);
    let ops = vec![
        create(&paths.root, Bytes::new()),
        create(&paths.identity, identity.encode()),
        create(&paths.epoch, holder.encode()),
        create(&paths.holder(holder.nonce), Bytes::new()),
        create(&paths.tail, encode_tail(tail)),
        create(&paths.beat, encode_number(0)),
        create(&paths.low, encode_number(0)),
        create(&paths.snapshot, Bytes::new()),
        create(&paths.slots, Bytes::new()),
        create(&paths.bucket(tail.slot), Bytes::new()),
        create(&paths.chunks, Bytes::new()),
    ];
    match client.multi(ops).await.map_err(refuse)? {
        Multi::Done(_) => Ok(Some(Claimed { identity, holder, place: Place { tail, version: 0 } })),
        Multi::Refused(_) => Ok(None),
    }
}
