//! Taking a journal over: version, history, probe, and the one transaction that fences everybody before (J4, J5, J11).

use bytes::Bytes;
use leasehold_journal::remote::claim::{
    ATTEMPTS, damaged_part, judge_probe, next_holder, probe_batch, probe_claim,
};
use leasehold_journal::remote::record::{Holder, Identity, decode_tail, encode_number, encode_tail};
use leasehold_journal::{Batch, BatchId, Chained, Claim, OpenError, Tail};
use leasehold_types::{ClusterId, Epoch, Slot, ids};

use crate::client::{Client, Trouble};
use crate::grpc::BROKEN;
use crate::keys::Keys;
use crate::proto::{RangeRequest, TxnRequest, delete, get, is, is_missing, put};
use crate::writer;

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
        Trouble::NotAllowed(text) => OpenError::Refused(text),
        Trouble::TooLarge(text) => OpenError::Unsuitable(text),
        Trouble::Unknown(text) if is_garbled(&text) => OpenError::Unavailable(format!(
            "{text}; what listens there may be no etcd, or speak TLS where `tls` is off, or the other way round"
        )),
        other => OpenError::Unavailable(other.to_string()),
    }
}

/// Whether somebody took the connection and then did not speak as etcd does.
fn is_garbled(words: &str) -> bool {
    words.contains(BROKEN)
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
    let append = async |holder: Holder, batch| {
        let batch = Chained::new(batch, holder.epoch);
        writer::append(client, keys, holder, None, &batch).await.map_err(refuse)
    };
    let first = claim(client, keys, &probe_claim(1)).await?.holder;
    let gap = append(first, probe_batch(Slot(2))).await?;
    let second = claim(client, keys, &probe_claim(2)).await?.holder;
    let stale = append(first, probe_batch(Slot(1))).await?;
    let right = append(second, probe_batch(Slot(1))).await?;
    let twice = append(second, Batch { id: BatchId(2), ..probe_batch(Slot(1)) }).await?;
    judge_probe(&[gap, stale, right, twice])
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
        let holder = next_holder(claim, current)?;
        let claimed = match (identity, before) {
            (Some(identity), Some(before)) => {
                let identity = Identity::to_claim(&identity, claim.accept_loss, || damaged("identity"))?;
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
    damaged_part("key", key)
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
    let identity = Identity::whole(cluster);
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
