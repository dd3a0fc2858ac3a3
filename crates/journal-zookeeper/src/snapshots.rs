//! Stores snapshots beside the writer, and truncates what they cover.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::remote::record::{
    Holder, Pointer, decode_number, decode_slot, decode_tail, encode_number,
};
use leasehold_journal::{Outcome, ReadError, SnapshotHasher, SnapshotInfo, SnapshotWriter, Tail};
use leasehold_types::{Slot, ids};

use crate::client::{Client, Connector, Multi, Op, Trouble};
use crate::paths::SLOTS_PER_BUCKET;

pub(crate) struct ZookeeperSnapshots {
    connector: Connector,
    holder: Holder,
    unfinished: Option<Unfinished>,
}

/// A snapshot whose chunks are being stored.
struct Unfinished {
    client: Client,
    at: Tail,
    /// Random: two snapshots of one slot by one epoch must not share chunks.
    id: [u8; 16],
    chunks: u32,
    hasher: SnapshotHasher,
    low: u64,
}

impl ZookeeperSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder, unfinished: None }
    }

    /// Does this if we are current.
    async fn fenced(&self, client: &Client, mut ops: Vec<Op>) -> Result<Multi, Trouble> {
        ops.insert(0, Op::CheckNew(self.connector.paths.holder(self.holder.nonce)));
        client.multi(ops).await
    }

    async fn try_begin(&self, at: Tail) -> Result<Result<Unfinished, ReadError>, Trouble> {
        let (client, paths) = (self.connector.connect().await?, &self.connector.paths);
        client.sync().await?;
        let found = client.read(&[&paths.tail, &paths.low, &paths.snapshot, &paths.slot(at.slot)]).await?;
        let data = |index: usize| found.get(index).and_then(Option::as_ref).map(|(bytes, _)| bytes);
        let tail = data(0).and_then(|bytes| decode_tail(bytes)).unwrap_or_default();
        let low = data(1).and_then(|bytes| decode_number(bytes)).unwrap_or(0);
        let current =
            data(2).and_then(|bytes| Pointer::decode(bytes)).map_or(Slot(0), |pointer| pointer.info.at.slot);
        if at.slot > tail.slot || at.slot < current {
            let detail = format!("a snapshot must be between slot {current} and {}", tail.slot);
            return Ok(Err(misplaced(at, detail)));
        }
        let there = data(3).and_then(|bytes| decode_slot(at.slot, bytes)).map(|found| found.hash);
        let known = if at.slot == tail.slot { Some(tail.hash) } else { there };
        if known.is_some_and(|hash| hash != at.hash) {
            return Ok(Err(misplaced(at, "the chain has another hash there".to_owned())));
        }
        let id = ids::random();
        let parent = Op::Create(paths.chunks_of(at.slot, &id), Bytes::new());
        if let Multi::Refused(_) = self.fenced(&client, vec![parent]).await? {
            return Ok(Err(ReadError::Unavailable("a newer epoch has the journal".to_owned())));
        }
        Ok(Ok(Unfinished { client, at, id, chunks: 0, hasher: SnapshotHasher::default(), low }))
    }

    /// Switches the pointer and advances the low-water mark with it, fenced (J8, J13).
    async fn switch(&self, unfinished: &Unfinished, low: u64) -> Result<Outcome, Trouble> {
        let (paths, Unfinished { at, id, chunks, hasher, .. }) = (&self.connector.paths, unfinished);
        let info = SnapshotInfo { at: *at, chunks: *chunks, hash: hasher.finish() };
        let ops = vec![
            Op::Set(paths.snapshot.clone(), Pointer { id: *id, info }.encode(), None),
            Op::Set(paths.low.clone(), encode_number(low), None),
        ];
        Ok(match self.fenced(&unfinished.client, ops).await? {
            Multi::Done(_) => Outcome::Committed,
            Multi::Refused(0) => Outcome::Fenced,
            Multi::Refused(_) => Outcome::Conflict(None),
        })
    }

    /// Removes what nobody reads any more: below the durable mark, which nobody can move back, so without a fence.
    /// What fails here is done by the next snapshot.
    async fn clean_up(&self, unfinished: &Unfinished, low: u64) -> Result<(), Trouble> {
        let (client, paths) = (&unfinished.client, &self.connector.paths);
        for bucket in client.children(&paths.slots).await? {
            let number = u64::from_str_radix(&bucket, 16).unwrap_or(u64::MAX);
            if number > low / SLOTS_PER_BUCKET {
                continue;
            }
            self.clean_bucket(client, &format!("{}/{bucket}", paths.slots), low).await?;
            if number < low / SLOTS_PER_BUCKET {
                client.multi(vec![Op::Delete(format!("{}/{bucket}", paths.slots))]).await?;
            }
        }
        let (ours, end) =
            (paths.chunks_of(unfinished.at.slot, &unfinished.id), format!("{:016x}.", unfinished.at.slot.0));
        for name in client.children(&paths.chunks).await? {
            let path = format!("{}/{name}", paths.chunks);
            // Chunks of later slots may be those of a newer epoch's snapshot under way.
            if name < end && path != ours {
                client.remove(&path).await?;
            }
        }
        Ok(())
    }

    async fn clean_bucket(&self, client: &Client, bucket: &str, low: u64) -> Result<(), Trouble> {
        let is_gone = |name: &String| u64::from_str_radix(name, 16).is_ok_and(|slot| slot <= low);
        let names = client.children(bucket).await?;
        let gone: Vec<_> = names.iter().filter(|name| is_gone(name)).collect();
        for some in gone.chunks(100) {
            client.multi(some.iter().map(|name| Op::Delete(format!("{bucket}/{name}"))).collect()).await?;
        }
        Ok(())
    }
}

fn misplaced(at: Tail, detail: String) -> ReadError {
    ReadError::Corrupt { place: format!("slot {}", at.slot), detail }
}

#[async_trait]
impl SnapshotWriter for ZookeeperSnapshots {
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError> {
        self.unfinished = None;
        let begun =
            self.try_begin(at).await.map_err(|trouble| ReadError::Unavailable(trouble.to_string()))?;
        self.unfinished = Some(begun?);
        Ok(())
    }

    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError> {
        let unavailable = |text: &str| ReadError::Unavailable(text.to_owned());
        let unfinished = self.unfinished.as_ref().ok_or_else(|| unavailable("no snapshot was begun"))?;
        let path = self.connector.paths.chunk(unfinished.at.slot, &unfinished.id, unfinished.chunks);
        let stored = self.fenced(&unfinished.client, vec![Op::Create(path, bytes.clone())]).await;
        if let Multi::Refused(_) = stored.map_err(|trouble| unavailable(&trouble.to_string()))? {
            return Err(unavailable("a newer epoch has the journal"));
        }
        let unfinished = self.unfinished.as_mut().expect("it was there a moment ago");
        unfinished.hasher.update(&bytes);
        unfinished.chunks += 1;
        Ok(())
    }

    /// May be called again after an unknown outcome: the same switch again changes nothing.
    async fn install(&mut self, keep_from: Slot) -> Outcome {
        let Some(mut unfinished) = self.unfinished.take() else {
            return Outcome::Conflict(None);
        };
        let low = unfinished.low.max(keep_from.0.saturating_sub(1).min(unfinished.at.slot.0));
        match self.switch(&unfinished, low).await {
            Ok(Outcome::Committed) => {
                if let Err(trouble) = self.clean_up(&unfinished, low).await {
                    tracing::warn!(%trouble, "old slots are removed with the next snapshot");
                }
                Outcome::Committed
            }
            Ok(refused) => refused,
            Err(trouble) => {
                if let Ok(client) = self.connector.connect().await {
                    unfinished.client = client;
                    self.unfinished = Some(unfinished);
                }
                Outcome::Unknown(trouble.to_string())
            }
        }
    }
}
