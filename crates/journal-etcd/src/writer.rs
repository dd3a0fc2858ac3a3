//! The one writer of an epoch.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    Holder, Identity, decode_slot, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::too_large;
use leasehold_journal::{Chained, Confirmation, Limits, Outcome, Room, Tail, Writer};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::Keys;
use crate::proto::{RangeRequest, TxnRequest, get, is, put};

/// Where an append begins: the tail it needs.
fn tail_before(batch: &Chained) -> Option<Tail> {
    Some(Tail { slot: Slot(batch.slot.0.checked_sub(1)?), hash: batch.prev_hash })
}

/// The transaction that commits a batch (J1): if the epoch is ours and the tail is the one before, then both the tail and
/// the slot are written; else what is in the way is read in the same atomic step. `recovered` is written with them.
fn append_txn(
    keys: &Keys,
    holder: Holder,
    recovered: Option<Identity>,
    batch: &Chained,
) -> Option<TxnRequest> {
    let slot = keys.slot(batch.slot);
    // One of another epoch is only looked for.
    let ours = Holder { epoch: batch.epoch(), ..holder };
    let mut txn = TxnRequest {
        compare: vec![is(&keys.epoch, &ours.encode()), is(&keys.tail, &encode_tail(tail_before(batch)?))],
        success: vec![put(&keys.tail, encode_tail(batch.tail())), put(&slot, encode_slot(batch))],
        failure: vec![get(&keys.epoch), get(&slot)],
    };
    txn.success.extend(recovered.map(|identity| put(&keys.identity, identity.encode())));
    Some(txn)
}

/// One attempt to commit a batch.
pub(crate) async fn append(
    client: &Client,
    keys: &Keys,
    holder: Holder,
    recovered: Option<Identity>,
    batch: &Chained,
) -> Result<Outcome, Trouble> {
    let Some(txn) = append_txn(keys, holder, recovered, batch) else {
        return Ok(Outcome::Conflict(None));
    };
    let answer = client.txn(txn).await?;
    if answer.succeeded {
        return Ok(Outcome::Committed);
    }
    if answer.value(0) != Some(&holder.encode()) {
        return Ok(Outcome::Fenced);
    }
    let found = answer.value(1).and_then(|bytes| decode_slot(batch.slot, bytes));
    // What a transaction reads is committed by a quorum; finding our batch there is finding it durable.
    Ok(match found {
        Some(found) if found.batch() == batch.batch() => Outcome::Committed,
        Some(found) => Outcome::Conflict(Some(found.id)),
        None => Outcome::Conflict(None),
    })
}

/// Writes something if the epoch is ours.
pub(crate) async fn write_fenced(
    client: &Client,
    keys: &Keys,
    holder: Holder,
    mut txn: TxnRequest,
) -> Result<bool, Trouble> {
    txn.compare.insert(0, is(&keys.epoch, &holder.encode()));
    client.txn(txn).await.map(|answer| answer.succeeded)
}

pub(crate) struct EtcdWriter {
    connector: Connector,
    keys: Keys,
    holder: Holder,
    beats: u64,
    /// What the journal is once this writer has committed something, when it was opened by a recovery; written with
    /// every batch, so that it does not matter which of them was the first.
    recovered: Option<Identity>,
    /// None after an unknown outcome: the next attempt is made at another member.
    client: Option<Client>,
}

impl EtcdWriter {
    pub(crate) fn new(
        connector: Connector,
        keys: Keys,
        holder: Holder,
        client: Client,
        recovered: Option<Identity>,
    ) -> Self {
        Self { connector, keys, holder, beats: 0, recovered, client: Some(client) }
    }

    /// Takes the client out, or makes a new one. It is put back only after a known outcome.
    async fn client(&mut self) -> Result<Client, Trouble> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => {
                self.connector.turn();
                self.connector.connect().await
            }
        }
    }

    async fn try_append(&mut self, batch: &Chained) -> Result<Outcome, Trouble> {
        let client = self.client().await?;
        let outcome = match append(&client, &self.keys, self.holder, self.recovered, batch).await {
            Err(Trouble::TooLarge(_)) => Outcome::Conflict(None),
            outcome => outcome?,
        };
        self.client = Some(client);
        Ok(outcome)
    }

    async fn try_beat(&mut self) -> Result<Outcome, Trouble> {
        let client = self.client().await?;
        self.beats += 1;
        let success = vec![put(&self.keys.beat, encode_number(self.beats))];
        let txn = TxnRequest { success, ..TxnRequest::default() };
        let ours = write_fenced(&client, &self.keys, self.holder, txn).await?;
        self.client = Some(client);
        Ok(if ours { Outcome::Committed } else { Outcome::Fenced })
    }

    async fn try_confirm(&mut self) -> Result<Confirmation, Trouble> {
        let client = self.client().await?;
        let request = RangeRequest { key: self.keys.epoch.clone(), ..RangeRequest::default() };
        let answer = client.range(request).await?;
        self.client = Some(client);
        let value: Option<&Bytes> = answer.kvs.first().map(|kv| &kv.value);
        let ours = value == Some(&self.holder.encode());
        Ok(if ours { Confirmation::Current } else { Confirmation::Fenced })
    }
}

#[async_trait]
impl Writer for EtcdWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        if batch.body.len() > Limits::REMOTE.body_bytes {
            return too_large(&self.confirm().await);
        }
        self.try_append(batch).await.unwrap_or_else(|trouble| Outcome::Unknown(trouble.to_string()))
    }

    /// A quorum read: etcd answers it only after its leader has made sure that it still is the leader.
    async fn confirm(&mut self) -> Confirmation {
        self.try_confirm().await.unwrap_or_else(|trouble| Confirmation::Unknown(trouble.to_string()))
    }

    async fn beat(&mut self) -> Outcome {
        self.try_beat().await.unwrap_or_else(|trouble| Outcome::Unknown(trouble.to_string()))
    }

    fn limits(&self) -> Limits {
        Limits::REMOTE
    }

    fn room(&self) -> Room {
        Room::Plenty
    }
}
