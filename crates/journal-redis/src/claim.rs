//! Taking a journal over: the probe, and the one call that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::claim::{
    ATTEMPTS, damaged_part, judge_probe, next_holder, probe_batch, probe_claim,
};
use leasehold_journal::remote::record::{Holder, Identity, decode_tail, encode_number, encode_tail};
use leasehold_journal::{Batch, BatchId, Chained, Claim, OpenError, Tail};
use leasehold_types::{ClusterId, Epoch, Slot, ids};

use crate::client::{Client, Trouble};
use crate::keys::{BEAT, EPOCH, IDENTITY, LOW, TAIL};
use crate::txn::{Field, Txn};
use crate::writer;

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) identity: Identity,
    pub(crate) holder: Holder,
    pub(crate) tail: Tail,
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
    let scratch = client.with_keys(client.keys.scratch(&ids::random()));
    let verdict = probe_at(&scratch).await;
    let removed = scratch.command::<u64>("DEL", &scratch.keys.all()).await;
    verdict?;
    removed.map(drop).map_err(refuse)
}

async fn probe_at(client: &Client) -> Result<(), OpenError> {
    let append = async |holder: Holder, batch| {
        let batch = Chained::new(batch, holder.epoch);
        writer::append(client, holder, None, &batch).await.map(|appended| appended.outcome).map_err(refuse)
    };
    let first = claim(client, &probe_claim(1)).await?.holder;
    let gap = append(first, probe_batch(Slot(2))).await?;
    let second = claim(client, &probe_claim(2)).await?.holder;
    let stale = append(first, probe_batch(Slot(1))).await?;
    let right = append(second, probe_batch(Slot(1))).await?;
    let twice = append(second, Batch { id: BatchId(2), ..probe_batch(Slot(1)) }).await?;
    judge_probe(&[gap, stale, right, twice])
}

/// Claims; founds the journal when there is none.
pub(crate) async fn claim(client: &Client, claim: &Claim) -> Result<Claimed, OpenError> {
    let mut current = Epoch(0);
    for _ in 0..ATTEMPTS {
        let seen =
            client.run(&Txn::read(vec![Field::head(IDENTITY), Field::head(EPOCH)])).await.map_err(refuse)?;
        let (identity, before) = (seen.value(0).cloned(), seen.value(1).cloned());
        current = match &before {
            Some(bytes) => Holder::decode(bytes).ok_or_else(|| damaged(EPOCH))?.epoch,
            None => Epoch(0),
        };
        let holder = next_holder(claim, current)?;
        let claimed = match (identity, before) {
            (Some(identity), Some(before)) => {
                let identity = Identity::to_claim(&identity, claim.accept_loss, || damaged(IDENTITY))?;
                bump(client, identity, holder, before).await?
            }
            (None, None) => found(client, claim.new_cluster, holder).await?,
            _ => return Err(damaged(IDENTITY)),
        };
        if let Some(claimed) = claimed {
            return Ok(claimed);
        }
    }
    Err(OpenError::LostDuel(current))
}

fn damaged(field: &str) -> OpenError {
    damaged_part("field", field)
}

/// The compare-and-set itself; the tail is read in the same atomic step (J5). `None` when another claim was faster.
async fn bump(
    client: &Client,
    identity: Identity,
    holder: Holder,
    before: Bytes,
) -> Result<Option<Claimed>, OpenError> {
    let txn = Txn {
        compare: vec![(EPOCH, Some(before))],
        set: vec![(Field::head(EPOCH), holder.encode()), (Field::head(BEAT), encode_number(0))],
        delete: Vec::new(),
        get: vec![Field::head(TAIL)],
    };
    let answer = client.run(&txn).await.map_err(refuse)?;
    if !answer.succeeded {
        return Ok(None);
    }
    let tail = answer.value(0).and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged(TAIL))?;
    Ok(Some(Claimed { identity, holder, tail }))
}

/// Makes an empty journal that is ours from the beginning. `None` when another was faster.
async fn found(client: &Client, cluster: ClusterId, holder: Holder) -> Result<Option<Claimed>, OpenError> {
    let identity = Identity::whole(cluster);
    let tail = Tail::default();
    let txn = Txn {
        compare: vec![(IDENTITY, None), (EPOCH, None), (TAIL, None)],
        set: vec![
            (Field::head(IDENTITY), identity.encode()),
            (Field::head(EPOCH), holder.encode()),
            (Field::head(TAIL), encode_tail(tail)),
            (Field::head(BEAT), encode_number(0)),
            (Field::head(LOW), encode_number(0)),
        ],
        ..Txn::default()
    };
    let answer = client.run(&txn).await.map_err(refuse)?;
    Ok(answer.succeeded.then_some(Claimed { identity, holder, tail }))
}
