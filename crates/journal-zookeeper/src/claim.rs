//! Taking a journal over: the probe, and the one multi that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Stage, decode_tail, encode_number, encode_tail,
};
use leasehold_journal::{Batch, BatchId, Claim, Hash, OpenError, Tail};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

use crate::client::{Client, Multi, Op, Trouble};
use crate::paths::Paths;
use crate::writer::{self, Place, Refused};

/// How often a claim that takes whatever epoch there is tries again when another claim was faster.
const ATTEMPTS: usize = 5;

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) identity: Identity,
    pub(crate) holder: Holder,
    pub(crate) place: Place,
}

/// The only place where trouble becomes a reason not to open.
pub(crate) fn refuse(trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::NotAllowed(text) => OpenError::Unsuitable(text),
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
    let claim_with = |byte| Claim {
        nonce: Nonce::from_bytes([byte; 16]),
        new_cluster: ClusterId::from_bytes([byte; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let batch = Batch { slot: Slot(1), id: BatchId(1), prev_hash: Hash::ZERO, body: "probe".into() };
    let first = claim(client, paths, &claim_with(1)).await?;
    let second = claim(client, paths, &claim_with(2)).await?;
    let mut seen = Vec::new();
    for claimed in [&first, &second, &second] {
        let outcome = writer::append(client, paths, claimed.holder, claimed.place, None, &batch).await;
        seen.push(outcome.map_err(refuse)?.err());
    }
    if seen != [Some(Refused::Fenced), None, Some(Refused::TailMoved)] {
        let text = format!("the engine failed the start-up probe (stale, right, twice): {seen:?}");
        return Err(OpenError::Unsuitable(text));
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
        if claim.expected_epoch.is_some_and(|expected| expected != current) {
            return Err(OpenError::LostDuel(current));
        }
        let holder = Holder { epoch: current.max(claim.epoch_floor).next(), nonce: claim.nonce };
        let claimed = match (identity, before, old) {
            (Some((identity, _)), Some((_, version)), Some(old)) => {
                let identity = check_identity(&identity, claim.accept_loss)?;
                bump(client, paths, identity, holder, old, version).await?
            }
            (None, None, _) => {
                let identity = Identity { format: FORMAT, stage: Stage::Whole, cluster: claim.new_cluster };
                found(client, paths, identity, holder).await?
            }
            _ => return Err(damaged("identity")),
        };
        if let Some(claimed) = claimed {
            return Ok(claimed);
        }
    }
    Err(OpenError::LostDuel(current))
}

pub(crate) fn damaged(node: &str) -> OpenError {
    OpenError::Corrupt {
        place: format!("node {node}"),
        detail: "it is missing or has a wrong length".to_owned(),
    }
}

fn check_identity(bytes: &[u8], accept_loss: bool) -> Result<Identity, OpenError> {
    let identity = Identity::decode(bytes).ok_or_else(|| damaged("identity"))?;
    if identity.format != FORMAT {
        return Err(OpenError::TooNew(format!("format {}, this build knows {FORMAT}", identity.format)));
    }
    identity.stage.refusal(accept_loss).map_or(Ok(identity), Err)
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
