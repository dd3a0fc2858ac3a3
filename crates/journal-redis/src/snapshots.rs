//! Where Redis keeps the parts of a snapshot, and what is removed once they are current.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::Outcome;
use leasehold_journal::remote::record::{Holder, encode_number};
use leasehold_journal::remote::{Around, Draft, SnapshotStore};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::{self, EPOCH, LOW, SNAPSHOT, TAIL};
use crate::txn::{Field, Table, Txn};

/// As many slots as one call removes: Redis does nothing else meanwhile.
const SLOTS_PER_DELETE: u64 = 1_000;

pub(crate) struct RedisSnapshots {
    connector: Connector,
    holder: Holder,
}

impl RedisSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder }
    }
}

#[async_trait]
impl SnapshotStore for RedisSnapshots {
    type Link = Client;
    type Trouble = Trouble;

    async fn connect(&self) -> Result<Client, Trouble> {
        self.connector.connect().await
    }

    async fn around(&self, client: &Client, slot: Slot) -> Result<Around, Trouble> {
        let mut fields: Vec<_> = [TAIL, LOW, SNAPSHOT].map(Field::head).into();
        fields.push(keys::slot(slot));
        let answer = client.run(&Txn::read(fields)).await?;
        Ok(Around::of_values(slot, [0, 1, 2, 3].map(|index| answer.value(index))))
    }

    async fn store(&self, client: &Client, draft: &Draft, chunk: Bytes) -> Result<bool, Trouble> {
        let field = keys::chunk(draft.at.slot, &draft.id, draft.chunks);
        let compare = vec![(EPOCH, Some(self.holder.encode()))];
        let txn = Txn { compare, set: vec![(field, chunk)], ..Txn::default() };
        client.run(&txn).await.map(|answer| answer.succeeded)
    }

    async fn switch(&self, client: &Client, draft: &Draft, low: u64) -> Result<Outcome, Trouble> {
        let pointer = draft.pointer().encode();
        let txn = Txn {
            compare: vec![(EPOCH, Some(self.holder.encode())), (SNAPSHOT, draft.before.pointer.clone())],
            set: vec![(Field::head(SNAPSHOT), pointer.clone()), (Field::head(LOW), encode_number(low))],
            delete: Vec::new(),
            get: vec![Field::head(EPOCH), Field::head(SNAPSHOT)],
        };
        let answer = client.run(&txn).await?;
        if answer.value(0) != Some(&self.holder.encode()) {
            return Ok(Outcome::Fenced);
        }
        // Ours, from this attempt or from one whose answer was lost.
        let ours = answer.value(1) == Some(&pointer);
        Ok(if ours { Outcome::Committed } else { Outcome::Conflict(None) })
    }

    async fn clean_up(&self, client: &Client, draft: &Draft, low: u64) -> Result<(), Trouble> {
        let mut from = draft.before.low.saturating_sub(SLOTS_PER_DELETE) + 1;
        while from <= low {
            let to = (from + SLOTS_PER_DELETE).min(low + 1);
            let delete = (from..to).map(|slot| keys::slot(Slot(slot))).collect();
            client.run(&Txn { delete, ..Txn::default() }).await?;
            from = to;
        }
        let stored: Vec<String> = client.command("HKEYS", &[&client.keys.chunks]).await?;
        let ours = keys::chunks_of(draft.at.slot, &draft.id);
        // Chunks of later slots may be those of a newer epoch's snapshot under way.
        let end = format!("{:016x}0", draft.at.slot.0);
        let gone = stored.into_iter().filter(|field| *field < end && !field.starts_with(&ours));
        let delete: Vec<_> = gone.map(|field| Field(Table::Chunks, field)).collect();
        client.run(&Txn { delete, ..Txn::default() }).await.map(drop)
    }
}
