//! The one writer of an epoch.

use async_trait::async_trait;
use leasehold_journal::remote::record::{
    Holder, Identity, decode_slot, decode_tail, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::{OwnTail, confirmed_by, lost, too_large};
use leasehold_journal::{Chained, Confirmation, Limits, Outcome, Room, Tail, Writer};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Trouble};
use crate::keys::{self, BEAT, EPOCH, IDENTITY, TAIL};
use crate::txn::{Field, Txn};

/// What an append came to, and the tail that the engine had when it refused.
pub(crate) struct Appended {
    pub(crate) outcome: Outcome,
    tail: Option<Tail>,
}

/// One attempt to commit a batch: if the epoch is ours and the tail is the one before, then tail and slot are written.
/// `recovered` is written with them.
pub(crate) async fn append(
    client: &Client,
    holder: Holder,
    recovered: Option<Identity>,
    batch: &Chained,
) -> Result<Appended, Trouble> {
    let Some(before) = batch.slot.0.checked_sub(1) else {
        return Ok(Appended { outcome: Outcome::Conflict(None), tail: None });
    };
    let before = Tail { slot: Slot(before), hash: batch.prev_hash };
    // One of another epoch is only looked for.
    let ours = Holder { epoch: batch.epoch(), ..holder };
    let mut txn = Txn {
        compare: vec![(EPOCH, Some(ours.encode())), (TAIL, Some(encode_tail(before)))],
        set: vec![
            (keys::slot(batch.slot), encode_slot(batch)),
            (Field::head(TAIL), encode_tail(batch.tail())),
        ],
        delete: Vec::new(),
        get: vec![Field::head(EPOCH), Field::head(TAIL), keys::slot(batch.slot)],
    };
    txn.set.extend(recovered.map(|identity| (Field::head(IDENTITY), identity.encode())));
    let answer = client.run(&txn).await?;
    let tail = answer.value(1).and_then(|bytes| decode_tail(bytes));
    // A field past the tail is what an unfinished attempt to fill the journal has left: it is no slot.
    let is_slot = tail.is_some_and(|tail| batch.slot <= tail.slot);
    let found = answer.value(2).filter(|_| is_slot).and_then(|bytes| decode_slot(batch.slot, bytes));
    let outcome = match found {
        _ if answer.succeeded => Outcome::Committed,
        _ if answer.value(0) != Some(&holder.encode()) => Outcome::Fenced,
        Some(found) if found.batch() == batch.batch() => Outcome::Committed,
        Some(found) => Outcome::Conflict(Some(found.id)),
        None => Outcome::Conflict(None),
    };
    Ok(Appended { outcome, tail })
}

pub(crate) struct RedisWriter {
    connector: Connector,
    holder: Holder,
    beats: u64,
    /// A Redis that shows another tail has lost writes.
    tail: OwnTail,
    /// What the journal is once this writer has committed something, when it was opened by a recovery.
    recovered: Option<Identity>,
    /// None after an unknown outcome: the next attempt is made on a new connection.
    client: Option<Client>,
}

impl RedisWriter {
    pub(crate) fn new(
        connector: Connector,
        holder: Holder,
        tail: Tail,
        client: Client,
        recovered: Option<Identity>,
    ) -> Self {
        let tail = OwnTail::new(tail);
        Self { connector, holder, beats: 0, tail, recovered, client: Some(client) }
    }

    /// Takes the client out, or makes a new one. It is put back only after a known outcome.
    async fn client(&mut self) -> Result<Client, Trouble> {
        match self.client.take() {
            Some(client) => Ok(client),
            None => self.connector.connect().await,
        }
    }

    async fn try_append(&mut self, batch: &Chained) -> Result<Outcome, Trouble> {
        let client = self.client().await?;
        self.tail.attempt(batch.tail());
        let appended = append(&client, self.holder, self.recovered, batch).await?;
        self.client = Some(client);
        if appended.outcome == Outcome::Committed {
            self.tail.committed(batch.tail());
        }
        let refused = matches!(appended.outcome, Outcome::Conflict(_));
        Ok(if refused && !self.tail.is_known(appended.tail) { lost("Redis") } else { appended.outcome })
    }

    async fn try_beat(&mut self) -> Result<Outcome, Trouble> {
        let client = self.client().await?;
        self.beats += 1;
        let txn = Txn {
            compare: vec![(EPOCH, Some(self.holder.encode()))],
            set: vec![(Field::head(BEAT), encode_number(self.beats))],
            delete: Vec::new(),
            get: vec![Field::head(TAIL)],
        };
        let answer = client.run(&txn).await?;
        self.client = Some(client);
        if !answer.succeeded {
            return Ok(Outcome::Fenced);
        }
        let known = self.tail.is_known(answer.value(0).and_then(|bytes| decode_tail(bytes)));
        Ok(if known { Outcome::Committed } else { lost("Redis") })
    }
}

#[async_trait]
impl Writer for RedisWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        if batch.body.len() > Limits::REMOTE.body_bytes {
            return too_large(&self.confirm().await);
        }
        self.try_append(batch).await.unwrap_or_else(|trouble| Outcome::Unknown(trouble.to_string()))
    }

    /// A write. It does not make a deposed master silent: nothing does, and the class says so.
    async fn confirm(&mut self) -> Confirmation {
        confirmed_by(self.beat().await)
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
