//! Taking a journal over: version, history, probe, and the one transaction that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Stage, decode_tail, encode_number, encode_tail,
};
use leasehold_journal::{Batch, BatchId, Claim, Hash, OpenError, Outcome, Tail};
use leasehold_types::{ClusterId, Epoch, Nonce, Slot, ids};

use crate::client::{Client, Trouble};
use crate::keys::Keys;
use crate::proto::{RangeRequest, TxnRequest, delete, get, is, is_missing, put};
use crate::writer;

/// How often a claim that takes whatever epoch there is tries again when another claim was faster.
const ATTEMPTS: usize = 5;
/// An etcd with more history than this and none of it compacted is one whose history nobody compacts.
const MUCH_HISTORY: i64 = 20_000;

/// What a claim has found.
pub(crate) struct Claimed {
    pub(crate) identity: Identity,
    pub(crate) holder: Holder,
    pub(crate) tail: Tail,
}

/// The only place where trouble becomes a reason not to open.
pub(crate) fn refuse(trouble: Trouble) -> OpenError {
    match trouble {
        Trouble::NotAllowed(text) | Trouble::TooLarge(text) => OpenError::Unsuitable(text),
        other => OpenError::Unavailable(other.to_string()),
    }
}

/// Checks the version, and warns when nobody compacts the history, which would fill etcd's quota.
pub(crate) async fn check_engine(client: &Client, keys: &Keys) -> Result<(), OpenError> {
    let status = match client.status().await {
        // Where this user may not ask, the probe alone decides.
        Err(Trouble::NotAllowed(_)) => return Ok(()),
        status => status.map_err(refuse)?,
    };
    if !is_new_enough(&status.version) {
        return Err(OpenError::Unsuitable(format!("etcd {} is too old; 3.4 is the oldest", status.version)));
    }
    let revision = status.header.map_or(0, |header| header.revision);
    if revision > MUCH_HISTORY && has_first_revision(client, keys).await {
        tracing::warn!(
            revision,
            "nobody compacts the history of this etcd; start it with --auto-compaction-mode=periodic \
             --auto-compaction-retention=5m, or give the journal's URL compact=on if nobody else uses it"
        );
    }
    Ok(())
}

async fn has_first_revision(client: &Client, keys: &Keys) -> bool {
    let request = RangeRequest { key: keys.epoch.clone(), revision: 1, ..RangeRequest::default() };
    !matches!(client.range(request).await, Err(Trouble::Compacted))
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (3, 4)
}

/// Proves on a scratch journal that the engine takes a right append once and refuses it from a replaced writer (J11).
pub(crate) async fn probe(client: &Client, keys: &Keys) -> Result<(), OpenError> {
    let scratch = keys.scratch(&ids::random());
    let verdict = probe_at(client, &scratch).await;
    let success = vec![delete(&scratch.start(), &scratch.end())];
    let removed = client.txn(TxnRequest { success, ..TxnRequest::default() }).await;
    verdict?;
    removed.map(drop).map_err(refuse)
}

async fn probe_at(client: &Client, keys: &Keys) -> Result<(), OpenError> {
    let claim_with = |byte| Claim {
        nonce: Nonce::from_bytes([byte; 16]),
        new_cluster: ClusterId::from_bytes([byte; 16]),
        expected_epoch: None,
        epoch_floor: Epoch(0),
        accept_loss: false,
    };
    let batch = |slot| Batch { slot, id: BatchId(1), prev_hash: Hash::ZERO, body: "probe".into() };
    let first = claim(client, keys, &claim_with(1)).await?.holder;
    let gap = writer::append(client, keys, first, None, &batch(Slot(2))).await.map_err(refuse)?;
    let second = claim(client, keys, &claim_with(2)).await?.holder;
    let stale = writer::append(client, keys, first, None, &batch(Slot(1))).await.map_err(refuse)?;
    let right = writer::append(client, keys, second, None, &batch(Slot(1))).await.map_err(refuse)?;
    let other = Batch { id: BatchId(2), ..batch(Slot(1)) };
    let twice = writer::append(client, keys, second, None, &other).await.map_err(refuse)?;
    let seen = [gap, stale, right, twice];
    let conflict = Outcome::Conflict(Some(BatchId(1)));
    if seen != [Outcome::Conflict(None), Outcome::Fenced, Outcome::Committed, conflict] {
        let text = format!("the engine failed the start-up probe (gap, stale, right, twice): {seen:?}");
        return Err(OpenError::Unsuitable(text));
    }
    Ok(())
}

/// Claims; founds the journal when there is none.
pub(crate) async fn claim(client: &Client, keys: &Keys, claim: &Claim) -> Result<Claimed, OpenError> {
    let mut current = Epoch(0);
    for _ in 0..ATTEMPTS {
        let success = vec![get(&keys.identity), get(&keys.epoch)];
        let seen = client.txn(TxnRequest { success, ..TxnRequest::default() }).await.map_err(refuse)?;
        let (identity, before) = (seen.value(0).cloned(), seen.value(1).cloned());
        current = match &before {
            Some(bytes) => Holder::decode(bytes).ok_or_else(|| damaged("epoch"))?.epoch,
            None => Epoch(0),
        };
        if claim.expected_epoch.is_some_and(|expected| expected != current) {
            return Err(OpenError::LostDuel(current));
        }
        let holder = Holder { epoch: current.max(claim.epoch_floor).next(), nonce: claim.nonce };
        let claimed = match (identity, before) {
            (Some(identity), Some(before)) => {
                let identity = check_identity(&identity, claim.accept_loss)?;
                bump(client, keys, identity, holder, &before).await?
            }
            (None, None) => found(client, keys, claim.new_cluster, holder).await?,
            _ => return Err(damaged("identity")),
        };
        if let Some(claimed) = claimed {
            return Ok(claimed);
        }
    }
    Err(OpenError::LostDuel(current))
}

fn damaged(key: &str) -> OpenError {
    OpenError::Corrupt {
        place: format!("key {key}"),
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

/// The compare-and-set itself; the tail is read in the same atomic step (J5). `None` when another claim was faster.
async fn bump(
    client: &Client,
    keys: &Keys,
    identity: Identity,
    holder: Holder,
    before: &Bytes,
) -> Result<Option<Claimed>, OpenError> {
    let txn = TxnRequest {
        compare: vec![is(&keys.epoch, before)],
        success: vec![put(&keys.epoch, holder.encode()), put(&keys.beat, encode_number(0)), get(&keys.tail)],
        failure: Vec::new(),
    };
    let answer = client.txn(txn).await.map_err(refuse)?;
    if !answer.succeeded {
        return Ok(None);
    }
    let tail = answer.value(2).and_then(|bytes| decode_tail(bytes)).ok_or_else(|| damaged("tail"))?;
    Ok(Some(Claimed { identity, holder, tail }))
}

/// Makes an empty journal that is ours from the beginning. `None` when another was faster.
async fn found(
    client: &Client,
    keys: &Keys,
    cluster: ClusterId,
    holder: Holder,
) -> Result<Option<Claimed>, OpenError> {
    let identity = Identity { format: FORMAT, stage: Stage::Whole, cluster };
    let tail = Tail::default();
    let txn = TxnRequest {
        compare: vec![is_missing(&keys.identity), is_missing(&keys.epoch), is_missing(&keys.tail)],
        success: vec![
            put(&keys.identity, identity.encode()),
            put(&keys.epoch, holder.encode()),
            put(&keys.tail, encode_tail(tail)),
            put(&keys.beat, encode_number(0)),
            put(&keys.low, encode_number(0)),
        ],
        failure: Vec::new(),
    };
    let answer = client.txn(txn).await.map_err(refuse)?;
    Ok(answer.succeeded.then_some(Claimed { identity, holder, tail }))
}

#[cfg(test)]
mod tests {
    #[test]
    fn versions_are_compared_as_numbers() {
        for (version, wanted) in
            [("3.3.27", false), ("3.4.0", true), ("3.10.1", true), ("4.0.0-rc.1", true), ("", false)]
        {
            assert_eq!(super::is_new_enough(version), wanted, "{version}");
        }
    }
}
