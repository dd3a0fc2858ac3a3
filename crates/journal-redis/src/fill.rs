//! Fills an empty journal from another one (D12), and cuts a damaged one for `recover`.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    FORMAT, Holder, Identity, Pointer, Stage, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::{self, Filling, filled_by_another, not_empty};
use leasehold_journal::{Chained, Head, ImportError, OpenError, Reader, SnapshotInfo, Tail};
use leasehold_types::{Epoch, Nonce, Slot, ids};

use crate::claim::{Claimed, refuse};
use crate::client::{Client, Trouble};
use crate::keys::{self, BEAT, EPOCH, IDENTITY, LOW, SNAPSHOT, TAIL};
use crate::txn::{Field, Txn};

/// Slots of one call: Redis does nothing else meanwhile.
const SLOTS_PER_CALL: usize = 16;

/// One journal being filled; nobody can open it before the end.
struct Fill<'a> {
    client: &'a Client,
    /// Ours while we fill, so that two who fill at the same time do not mix.
    holder: Holder,
}

/// Copies snapshot and slots, then makes the copy a journal.
pub(crate) async fn fill(client: &Client, from: &mut dyn Reader) -> Result<Tail, ImportError> {
    let holder = Holder { epoch: Epoch(0), nonce: Nonce::from_bytes(ids::random()) };
    remote::fill(&Fill { client, holder }, from).await
}

fn failed(trouble: Trouble) -> ImportError {
    ImportError::Target(refuse(trouble))
}

impl Fill<'_> {
    fn identity(&self, head: &Head, stage: Stage) -> Bytes {
        Identity { format: FORMAT, stage, cluster: head.cluster }.encode()
    }

    /// Writes if it is still we who fill.
    async fn write(&self, set: Vec<(Field, Bytes)>) -> Result<(), ImportError> {
        let txn = Txn { compare: vec![(EPOCH, Some(self.holder.encode()))], set, ..Txn::default() };
        if self.client.run(&txn).await.map_err(failed)?.succeeded {
            return Ok(());
        }
        Err(filled_by_another())
    }

    /// Stores some slots; the tail after them.
    async fn some_slots(&self, found: &[Chained]) -> Result<Tail, ImportError> {
        let last = found.last().expect("a part of a list is not empty");
        let tail = last.tail();
        let bytes = |one: &Chained| (keys::slot(one.slot), encode_slot(one));
        let mut set: Vec<_> = found.iter().map(bytes).collect();
        set.push((Field::head(TAIL), encode_tail(tail)));
        self.write(set).await?;
        Ok(tail)
    }
}

#[async_trait]
impl Filling for Fill<'_> {
    /// Makes the head of an unfinished journal; slots and chunks that an earlier attempt left are written over.
    async fn begin(&self, head: &Head) -> Result<(), ImportError> {
        let seen = self.client.run(&Txn::read(vec![Field::head(IDENTITY)])).await.map_err(failed)?;
        let before = seen.value(0).cloned();
        let unfinished =
            |bytes: &Bytes| Identity::decode(bytes).is_some_and(|old| old.stage == Stage::Filling);
        if before.as_ref().is_some_and(|bytes| !unfinished(bytes)) {
            return Err(not_empty());
        }
        let txn = Txn {
            compare: vec![(IDENTITY, before)],
            set: vec![
                (Field::head(IDENTITY), self.identity(head, Stage::Filling)),
                (Field::head(EPOCH), self.holder.encode()),
                (Field::head(TAIL), encode_tail(Tail::default())),
                (Field::head(LOW), encode_number(0)),
                (Field::head(BEAT), encode_number(0)),
            ],
            delete: vec![Field::head(SNAPSHOT)],
            get: Vec::new(),
        };
        if self.client.run(&txn).await.map_err(failed)?.succeeded { Ok(()) } else { Err(not_empty()) }
    }

    async fn snapshot(&self, from: &mut dyn Reader, info: &SnapshotInfo) -> Result<(), ImportError> {
        let pointer = Pointer { id: ids::random(), info: info.clone() };
        for index in 0..info.chunks {
            let chunk = from.chunk(info, index).await?;
            self.write(vec![(keys::chunk(info.at.slot, &pointer.id, index), chunk)]).await?;
        }
        let low = (Field::head(LOW), encode_number(info.at.slot.0));
        let tail = (Field::head(TAIL), encode_tail(info.at));
        self.write(vec![(Field::head(SNAPSHOT), pointer.encode()), low, tail]).await
    }

    async fn slots(&self, found: &[Chained]) -> Result<Tail, ImportError> {
        let mut tail = Tail::default();
        for some in found.chunks(SLOTS_PER_CALL) {
            tail = self.some_slots(some).await?;
        }
        Ok(tail)
    }

    async fn end(&self, head: &Head) -> Result<(), ImportError> {
        let left = Holder { epoch: head.epoch, nonce: head.nonce };
        let identity = (Field::head(IDENTITY), self.identity(head, Stage::Unrecovered));
        self.write(vec![identity, (Field::head(EPOCH), left.encode())]).await
    }
}

/// Cuts a damaged record after its last whole slot. From then on it needs a recovery that commits something.
pub(crate) async fn cut(client: &Client, claimed: &Claimed, whole: Tail) -> Result<(), OpenError> {
    let identity = Identity { stage: Stage::Unrecovered, ..claimed.identity };
    let txn = Txn {
        compare: vec![(EPOCH, Some(claimed.holder.encode()))],
        set: vec![(Field::head(IDENTITY), identity.encode()), (Field::head(TAIL), encode_tail(whole))],
        delete: (whole.slot.0 + 1..=claimed.tail.slot.0).map(|slot| keys::slot(Slot(slot))).collect(),
        get: Vec::new(),
    };
    let cut = client.run(&txn).await.map_err(refuse)?.succeeded;
    if cut { Ok(()) } else { Err(OpenError::LostDuel(claimed.holder.epoch)) }
}
