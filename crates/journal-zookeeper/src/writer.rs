//! The one writer of an epoch.

use async_trait::async_trait;
use leasehold_journal::remote::record::{
    Holder, Identity, decode_slot, decode_tail, encode_number, encode_slot, encode_tail,
};
use leasehold_journal::remote::{confirmed_by, too_large};
use leasehold_journal::{Chained, Confirmation, Limits, Outcome, Room, Tail, Writer};

use crate::client::{Client, Connector, Multi, Op, Trouble};
use crate::paths::Paths;

/// The tail with the version of its node, which is what ZooKeeper compares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) tail: Tail,
    pub(crate) version: i32,
}

/// One attempt to commit a batch after `place`, which it follows (J1): the holder's node is there, the tail has the
/// version that we know, and the slot is made. Gives the new place, or where the engine refused.
pub(crate) async fn append(
    client: &Client,
    paths: &Paths,
    holder: Holder,
    place: Place,
    recovered: Option<Identity>,
    batch: &Chained,
) -> Result<Result<Place, Refused>, Trouble> {
    let tail = batch.tail();
    let mut ops = vec![
        Op::CheckNew(paths.holder(holder.nonce)),
        Op::Set(paths.tail.clone(), encode_tail(tail), Some(place.version)),
    ];
    ops.extend(paths.new_bucket(batch.slot).map(|bucket| Op::Create(bucket, "".into())));
    ops.push(Op::Create(paths.slot(batch.slot), encode_slot(batch)));
    ops.extend(recovered.map(|identity| Op::Set(paths.identity.clone(), identity.encode(), None)));
    Ok(match client.multi(ops).await? {
        Multi::Done(versions) => {
            Ok(Place { tail, version: versions.first().copied().unwrap_or(place.version.wrapping_add(1)) })
        }
        Multi::Refused(0) => Err(Refused::Fenced),
        Multi::Refused(_) => Err(Refused::TailMoved),
    })
}

/// Why the engine has not appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// A newer claim has removed our node.
    Fenced,
    /// The tail or the slot is not as we knew it: an earlier attempt of ours has landed.
    TailMoved,
}

pub(crate) struct ZookeeperWriter {
    connector: Connector,
    holder: Holder,
    place: Place,
    beats: u64,
    /// What the journal is once this writer has committed something, when it was opened by a recovery.
    recovered: Option<Identity>,
    /// None after an unknown outcome: the next attempt is made in a new session.
    client: Option<Client>,
}

impl ZookeeperWriter {
    pub(crate) fn new(
        connector: Connector,
        holder: Holder,
        place: Place,
        client: Client,
        recovered: Option<Identity>,
    ) -> Self {
        Self { connector, holder, place, beats: 0, recovered, client: Some(client) }
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
        let outcome = self.append_with(&client, batch).await?;
        self.client = Some(client);
        Ok(outcome)
    }

    async fn append_with(&mut self, client: &Client, batch: &Chained) -> Result<Outcome, Trouble> {
        let follows = batch.slot == self.place.tail.slot.next() && batch.prev_hash == self.place.tail.hash;
        if !follows || batch.epoch() != self.holder.epoch {
            return self.explain(client, batch).await;
        }
        let paths = &self.connector.paths;
        match append(client, paths, self.holder, self.place, self.recovered, batch).await? {
            Ok(place) => {
                self.place = place;
                Ok(Outcome::Committed)
            }
            Err(Refused::Fenced) => Ok(Outcome::Fenced),
            Err(Refused::TailMoved) => self.explain(client, batch).await,
        }
    }

    /// Tells what is in the way. The beat makes sure that we are current and that this session has seen everything
    /// before it; then the session may read.
    async fn explain(&mut self, client: &Client, batch: &Chained) -> Result<Outcome, Trouble> {
        if self.beat_with(client).await? == Outcome::Fenced {
            return Ok(Outcome::Fenced);
        }
        let paths = &self.connector.paths;
        let found = client.read(&[&paths.tail, &paths.slot(batch.slot)]).await?;
        if let Some(Some((bytes, version))) = found.first()
            && let Some(tail) = decode_tail(bytes)
        {
            self.place = Place { tail, version: *version };
        }
        let there = found.get(1).cloned().flatten().and_then(|(bytes, _)| decode_slot(batch.slot, &bytes));
        Ok(match there {
            Some(there) if there.batch() == batch.batch() => Outcome::Committed,
            Some(there) => Outcome::Conflict(Some(there.id)),
            None => Outcome::Conflict(None),
        })
    }

    async fn beat_with(&mut self, client: &Client) -> Result<Outcome, Trouble> {
        self.beats += 1;
        let paths = &self.connector.paths;
        let ops = vec![
            Op::CheckNew(paths.holder(self.holder.nonce)),
            Op::Set(paths.beat.clone(), encode_number(self.beats), None),
        ];
        Ok(match client.multi(ops).await? {
            Multi::Done(_) => Outcome::Committed,
            Multi::Refused(_) => Outcome::Fenced,
        })
    }

    async fn try_beat(&mut self) -> Result<Outcome, Trouble> {
        let client = self.client().await?;
        let outcome = self.beat_with(&client).await?;
        self.client = Some(client);
        Ok(outcome)
    }
}

#[async_trait]
impl Writer for ZookeeperWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        if batch.body.len() > Limits::REMOTE.body_bytes {
            return too_large(&self.confirm().await);
        }
        self.try_append(batch).await.unwrap_or_else(|trouble| Outcome::Unknown(trouble.to_string()))
    }

    /// A committed write: a deposed leader still answers reads and `sync`.
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
