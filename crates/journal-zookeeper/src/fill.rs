//! Fills an empty journal from another one (D12), and cuts a damaged one for `recover`.

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Pointer, Stage, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::{self, Filling, filled_by_another, not_empty};
use leasehold_journal::{Chained, Head, ImportError, OpenError, Reader, SnapshotInfo, Tail};
use leasehold_types::{Epoch, Nonce, Slot, ids};

use crate::claim::{self, Claimed, refuse};
use crate::client::{Client, Multi, Op, Trouble};
use crate::paths::Paths;
use crate::writer::Place;

/// Bytes of one multi, within ZooKeeper's limit of a request.
const BYTES_PER_MULTI: usize = 512 << 10;

/// One journal being filled; nobody can open it before the end.
struct Fill<'a> {
    client: &'a Client,
    paths: &'a Paths,
    /// Ours while we fill, so that two who fill at the same time do not mix.
    holder: Holder,
}

/// Copies snapshot and slots, then makes the copy a journal.
pub(crate) async fn fill(client: &Client, paths: &Paths, from: &mut dyn Reader) -> Result<Tail, ImportError> {
    let holder = Holder { epoch: Epoch(0), nonce: Nonce::from_bytes(ids::random()) };
    remote::fill(&Fill { client, paths, holder }, from).await
}

fn identity_of(head: &Head, stage: Stage) -> Identity {
    Identity { format: FORMAT, stage, cluster: head.cluster }
}

fn failed(trouble: Trouble) -> ImportError {
    ImportError::Target(refuse(trouble))
}

impl Fill<'_> {
    /// Writes if it is still we who fill.
    async fn write(&self, mut ops: Vec<Op>) -> Result<(), ImportError> {
        ops.insert(0, Op::CheckNew(self.paths.holder(self.holder.nonce)));
        match self.client.multi(ops).await.map_err(failed)? {
            Multi::Done(_) => Ok(()),
            Multi::Refused(_) => Err(filled_by_another()),
        }
    }

    async fn write_slots(&self, mut ops: Vec<Op>, tail: Tail) -> Result<(), ImportError> {
        ops.push(Op::Set(self.paths.tail.clone(), encode_tail(tail), None));
        self.write(ops).await
    }
}

#[async_trait]
impl Filling for Fill<'_> {
    /// Makes the nodes of an unfinished journal; what an earlier attempt left is removed first.
    async fn begin(&self, head: &Head) -> Result<(), ImportError> {
        let seen = self.client.read(&[&self.paths.identity]).await.map_err(failed)?;
        if let Some((bytes, _)) = seen.into_iter().next().flatten() {
            if Identity::decode(&bytes).is_none_or(|old| old.stage != Stage::Filling) {
                return Err(not_empty());
            }
            self.client.remove(&self.paths.root).await.map_err(failed)?;
        }
        let founded =
            claim::found(self.client, self.paths, identity_of(head, Stage::Filling), self.holder).await?;
        founded.map(drop).ok_or_else(not_empty)
    }

    async fn snapshot(&self, from: &mut dyn Reader, info: &SnapshotInfo) -> Result<(), ImportError> {
        let (slot, id) = (info.at.slot, ids::random());
        let mut ops = vec![Op::Create(self.paths.chunks_of(slot, &id), Bytes::new())];
        if self.paths.bucket(slot) != self.paths.bucket(Slot(0)) {
            ops.push(Op::Create(self.paths.bucket(slot), Bytes::new()));
        }
        self.write(ops).await?;
        for index in 0..info.chunks {
            let chunk = from.chunk(info, index).await?;
            self.write(vec![Op::Create(self.paths.chunk(slot, &id, index), chunk)]).await?;
        }
        let pointer = Pointer { id, info: info.clone() };
        self.write(vec![
            Op::Set(self.paths.snapshot.clone(), pointer.encode(), None),
            Op::Set(self.paths.low.clone(), encode_number(slot.0), None),
            Op::Set(self.paths.tail.clone(), encode_tail(info.at), None),
        ])
        .await
    }

    /// Stores slots, many in one multi; the tail after them.
    async fn slots(&self, found: &[Chained]) -> Result<Tail, ImportError> {
        let (mut ops, mut bytes, mut tail) = (Vec::new(), 0, Tail::default());
        for one in found {
            if !ops.is_empty() && bytes + one.body.len() > BYTES_PER_MULTI {
                self.write_slots(std::mem::take(&mut ops), tail).await?;
                bytes = 0;
            }
            ops.extend(self.paths.new_bucket(one.slot).map(|bucket| Op::Create(bucket, Bytes::new())));
            let value = encode_slot(one);
            bytes += value.len();
            ops.push(Op::Create(self.paths.slot(one.slot), value));
            tail = one.tail();
        }
        self.write_slots(ops, tail).await?;
        Ok(tail)
    }

    async fn end(&self, head: &Head) -> Result<(), ImportError> {
        let left = Holder { epoch: head.epoch, nonce: head.nonce };
        let identity = identity_of(head, Stage::Unrecovered);
        self.write(vec![
            Op::Set(self.paths.identity.clone(), identity.encode(), None),
            Op::Set(self.paths.epoch.clone(), left.encode(), None),
            Op::Delete(self.paths.holder(self.holder.nonce)),
            Op::Create(self.paths.holder(left.nonce), Bytes::new()),
        ])
        .await
    }
}

/// Cuts a damaged record after its last whole slot; the place after it. From then on it needs a recovery that commits
/// something.
pub(crate) async fn cut(
    client: &Client,
    paths: &Paths,
    claimed: &Claimed,
    whole: Tail,
) -> Result<Place, OpenError> {
    let identity = Identity { stage: Stage::Unrecovered, ..claimed.identity };
    let ops = vec![
        Op::CheckNew(paths.holder(claimed.holder.nonce)),
        Op::Set(paths.tail.clone(), encode_tail(whole), Some(claimed.place.version)),
        Op::Set(paths.identity.clone(), identity.encode(), None),
    ];
    let Multi::Done(versions) = client.multi(ops).await.map_err(refuse)? else {
        return Err(OpenError::LostDuel(claimed.holder.epoch));
    };
    // The tail first: what is past it can never be read again, and is in the way of new slots.
    let mut buckets = BTreeSet::new();
    for slot in (whole.slot.0 + 1..=claimed.place.tail.slot.0).map(Slot) {
        client.multi(vec![Op::Delete(paths.slot(slot))]).await.map_err(refuse)?;
        buckets.extend(paths.new_bucket(slot));
    }
    for bucket in buckets {
        client.multi(vec![Op::Delete(bucket)]).await.map_err(refuse)?;
    }
    let version = versions.first().copied().unwrap_or(claimed.place.version.wrapping_add(1));
    Ok(Place { tail: whole, version })
}
