//! Fills an empty journal from another one (D12), and cuts a damaged one for `recover`.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Pointer, SLOT_OVERHEAD, Stage, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::{self, Filling, filled_by_another, not_empty};
use leasehold_journal::{Chained, Head, ImportError, OpenError, Reader, SnapshotInfo, Tail};
use leasehold_types::{Epoch, Nonce, ids};

use crate::claim::{Claimed, refuse};
use crate::client::{Client, Trouble};
use crate::keys::Keys;
use crate::proto::{RequestOp, TxnRequest, delete, get, is, is_missing, put};
use crate::writer::write_fenced;

/// Bytes and slots of one transaction, within etcd's default limits of 1.5 MiB and 128 operations.
const BYTES_PER_TXN: usize = 1 << 20;
const SLOTS_PER_TXN: usize = 100;

/// One journal being filled; nobody can open it before the end.
struct Fill<'a> {
    client: &'a Client,
    keys: &'a Keys,
    /// Ours while we fill, so that two who fill at the same time do not mix.
    holder: Holder,
}

/// Copies snapshot and slots, then makes the copy a journal.
pub(crate) async fn fill(client: &Client, keys: &Keys, from: &mut dyn Reader) -> Result<Tail, ImportError> {
    let holder = Holder { epoch: Epoch(0), nonce: Nonce::from_bytes(ids::random()) };
    remote::fill(&Fill { client, keys, holder }, from).await
}

fn failed(trouble: Trouble) -> ImportError {
    ImportError::Target(refuse(trouble))
}

impl Fill<'_> {
    fn identity(&self, head: &Head, stage: Stage) -> Bytes {
        Identity { format: FORMAT, stage, cluster: head.cluster }.encode()
    }

    /// Writes if it is still we who fill.
    async fn write(&self, success: Vec<RequestOp>) -> Result<(), ImportError> {
        let txn = TxnRequest { success, ..TxnRequest::default() };
        if write_fenced(self.client, self.keys, self.holder, txn).await.map_err(failed)? {
            return Ok(());
        }
        Err(filled_by_another())
    }

    async fn write_slots(&self, mut puts: Vec<RequestOp>, tail: Tail) -> Result<(), ImportError> {
        puts.push(put(&self.keys.tail, encode_tail(tail)));
        self.write(puts).await
    }
}

#[async_trait]
impl Filling for Fill<'_> {
    /// Makes the keys of an unfinished journal; what an earlier attempt left is removed in the same step.
    async fn begin(&self, head: &Head) -> Result<(), ImportError> {
        let seen = TxnRequest { success: vec![get(&self.keys.identity)], ..TxnRequest::default() };
        let seen = self.client.txn(seen).await.map_err(failed)?;
        let compare = match seen.value(0) {
            None => is_missing(&self.keys.identity),
            Some(bytes) if Identity::decode(bytes).is_some_and(|old| old.stage == Stage::Filling) => {
                is(&self.keys.identity, bytes)
            }
            Some(_) => return Err(not_empty()),
        };
        let txn = TxnRequest {
            compare: vec![compare.clone()],
            success: vec![delete(&self.keys.start(), &self.keys.end())],
            failure: Vec::new(),
        };
        if !self.client.txn(txn).await.map_err(failed)?.succeeded {
            return Err(not_empty());
        }
        let txn = TxnRequest {
            compare: vec![is_missing(&self.keys.identity)],
            success: vec![
                put(&self.keys.identity, self.identity(head, Stage::Filling)),
                put(&self.keys.epoch, self.holder.encode()),
                put(&self.keys.tail, encode_tail(Tail::default())),
                put(&self.keys.low, encode_number(0)),
                put(&self.keys.beat, encode_number(0)),
            ],
            failure: Vec::new(),
        };
        if self.client.txn(txn).await.map_err(failed)?.succeeded { Ok(()) } else { Err(not_empty()) }
    }

    async fn snapshot(&self, from: &mut dyn Reader, info: &SnapshotInfo) -> Result<(), ImportError> {
        let pointer = Pointer { id: ids::random(), info: info.clone() };
        for index in 0..info.chunks {
            let chunk = from.chunk(info, index).await?;
            self.write(vec![put(&self.keys.chunk(info.at.slot, &pointer.id, index), chunk)]).await?;
        }
        let low = put(&self.keys.low, encode_number(info.at.slot.0));
        let tail = put(&self.keys.tail, encode_tail(info.at));
        self.write(vec![put(&self.keys.snapshot, pointer.encode()), low, tail]).await
    }

    /// Stores slots, many in one transaction; the tail after them.
    async fn slots(&self, found: &[Chained]) -> Result<Tail, ImportError> {
        let (mut puts, mut bytes, mut tail) = (Vec::new(), 0, Tail::default());
        for committed in found {
            let size = SLOT_OVERHEAD + committed.body.len();
            if puts.len() == SLOTS_PER_TXN || (!puts.is_empty() && bytes + size > BYTES_PER_TXN) {
                self.write_slots(std::mem::take(&mut puts), tail).await?;
                bytes = 0;
            }
            let value = encode_slot(committed);
            puts.push(put(&self.keys.slot(committed.slot), value));
            bytes += size;
            tail = committed.tail();
        }
        self.write_slots(puts, tail).await?;
        Ok(tail)
    }

    async fn end(&self, head: &Head) -> Result<(), ImportError> {
        let left = Holder { epoch: head.epoch, nonce: head.nonce };
        let identity = put(&self.keys.identity, self.identity(head, Stage::Unrecovered));
        self.write(vec![identity, put(&self.keys.epoch, left.encode())]).await
    }
}

/// Cuts a damaged record after its last whole slot. From then on it needs a recovery that commits something.
pub(crate) async fn cut(
    client: &Client,
    keys: &Keys,
    claimed: &Claimed,
    whole: Tail,
) -> Result<(), OpenError> {
    let (holder, identity) = (claimed.holder, Identity { stage: Stage::Unrecovered, ..claimed.identity });
    let success = vec![
        put(&keys.identity, identity.encode()),
        put(&keys.tail, encode_tail(whole)),
        delete(&keys.slot(whole.slot.next()), &keys.slots_end()),
    ];
    let txn = TxnRequest { success, ..TxnRequest::default() };
    match write_fenced(client, keys, holder, txn).await.map_err(refuse)? {
        true => Ok(()),
        false => Err(OpenError::LostDuel(holder.epoch)),
    }
}
