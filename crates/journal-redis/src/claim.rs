//! Taking a journal over: the probe, and the one call that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Stage, decode_tail, encode_number, encode_tail,
};
use leasehold_journal::{Batch, BatchId, Claim, Hash, OpenError, Outcome, Tail};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

use crate::client::{Client, Trouble};
use crate::keys::{BEAT, EPOCH, IDENTITY, LOW, TAIL};
use crate::txn::{Field, Txn};
use crate::writer;

/// How often a claim that takes whatever epoch there is tries again when another claim was faster.
const ATTEMPTS: usize = 5;

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) identity: Identity,
    pub(crate) holder: Holder,
    pub(crate) tail: Tail,
}

/// The only place where trouble becomes a reason not to open.
pub(crate) fn refuse(trouble: Trouble) -> OpenError {
    OpenError::Unavailable(trouble.to_string())
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
    let claim_with = |byte| Claim {
        nonce: Nonce::from_bytes([byte; 16]),
        new_cluster: ClusterId::from_bytes([byte; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let batch = |slot| Batch { slot, id: BatchId(1), prev_hash: Hash::ZERO, body: "probe".into() };
    let first = claim(client, &claim_with(1)).await?.holder;
    let gap = writer::append(client, first, None, &batch(Slot(2))).await.map_err(refuse)?;
    let second = claim(client, &claim_with(2)).await?.holder;
    let stale = writer::append(client, first, None, &batch(Slot(1))).await.map_err(refuse)?;
    let right = writer::append(client, second, None, &batch(Slot(1))).await.map_err(refuse)?;
    let other = Batch { id: BatchId(2), ..batch(Slot(1)) };
    let twice = writer::append(client, second, None, &other).await.map_err(refuse)?;
    let seen = [gap, stale, right, twice].map(|appended| appended.outcome);
    let conflict = Outcome::Conflict(Some(BatchId(1)));
    if seen != [Outcome::Conflict(None), Outcome::Fenced, Outcome::Committed, conflict] {
        let text = format!("the engine failed the start-up probe (gap, stale, right, twice): {seen:?}");
        return Err(OpenError::Unsuitable(text));
    }
    Ok(())
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
        if claim.expected_epoch.is_some_and(|expected| expected != current) {
            return Err(OpenError::LostDuel(current));
        }
        let holder = Holder { epoch: current.max(claim.epoch_floor).next(), nonce: claim.nonce };
        let claimed = match (identity, before) {
            (Some(identity), Some(before)) => {
                let identity = check_identity(&identity, claim.accept_loss)?;
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
    OpenError::Corrupt {
        place: format!("field {field}"),
        detail: "it is missing or has a wrong length".to_owned(),
    }
}

fn check_identity(bytes: &[u8], accept_loss: bool) -> Result<Identity, OpenError> {
    let identity = Identity::decode(bytes).ok_or_else(|| damaged(IDENTITY))?;
    if identity.format != FORMAT {
        return Err(OpenError::TooNew(format!("format {}, this build knows {FORMAT}", identity.format)));
    }
    identity.stage.refusal(accept_loss).map_or(Ok(identity), Err)
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
    let identity = Identity { format: FORMAT, stage: Stage::Whole, cluster };
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
