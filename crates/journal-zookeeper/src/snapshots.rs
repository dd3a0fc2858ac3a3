//! Where ZooKeeper keeps the parts of a snapshot, and what is removed once they are current.

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_journal::Outcome;
use leasehold_journal::remote::record::{Holder, encode_number};
use leasehold_journal::remote::{Around, Draft, SnapshotStore};
use leasehold_types::Slot;

use crate::client::{Client, Connector, Multi, Op, Trouble};
use crate::paths::SLOTS_PER_BUCKET;

/// As many nodes as one multi removes.
const NODES_PER_DELETE: usize = 100;

pub(crate) struct ZookeeperSnapshots {
    connector: Connector,
    holder: Holder,
}

impl ZookeeperSnapshots {
    pub(crate) fn new(connector: Connector, holder: Holder) -> Self {
        Self { connector, holder }
    }

    /// Does this if we are current.
    async fn fenced(&self, client: &Client, mut ops: Vec<Op>) -> Result<Multi, Trouble> {
        ops.insert(0, Op::CheckNew(self.connector.paths.holder(self.holder.nonce)));
        client.multi(ops).await
    }

    async fn clean_slots(&self, client: &Client, low: u64) -> Result<(), Trouble> {
        let slots = &self.connector.paths.slots;
        for bucket in client.children(slots).await? {
            let (number, path) =
                (u64::from_str_radix(&bucket, 16).unwrap_or(u64::MAX), format!("{slots}/{bucket}"));
            if number > low / SLOTS_PER_BUCKET {
                continue;
            }
            self.clean_bucket(client, &path, low).await?;
            if number < low / SLOTS_PER_BUCKET {
                client.multi(vec![Op::Delete(path)]).await?;
            }
        }
        Ok(())
    }

    async fn clean_bucket(&self, client: &Client, bucket: &str, low: u64) -> Result<(), Trouble> {
        let is_gone = |name: &String| u64::from_str_radix(name, 16).is_ok_and(|slot| slot <= low);
        let names = client.children(bucket).await?;
        let gone: Vec<_> = names.iter().filter(|name| is_gone(name)).collect();
        for some in gone.chunks(NODES_PER_DELETE) {
            client.multi(some.iter().map(|name| Op::Delete(format!("{bucket}/{name}"))).collect()).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl SnapshotStore for ZookeeperSnapshots {
    type Link = Client;
    type Trouble = Trouble;

    async fn connect(&self) -> Result<Client, Trouble> {
        self.connector.connect().await
    }

    async fn around(&self, client: &Client, slot: Slot) -> Result<Around, Trouble> {
        let paths = &self.connector.paths;
        client.sync().await?;
        let found = client.read(&[&paths.tail, &paths.low, &paths.snapshot, &paths.slot(slot)]).await?;
        let data = |index: usize| found.get(index).and_then(Option::as_ref).map(|(bytes, _)| bytes);
        Ok(Around::of_values(slot, [0, 1, 2, 3].map(data)))
    }

    /// The node above the chunks is made with the first of them.
    async fn store(&self, client: &Client, draft: &Draft, chunk: Bytes) -> Result<bool, Trouble> {
        let (paths, Draft { at, id, chunks, .. }) = (&self.connector.paths, draft);
        let parent = (*chunks == 0).then(|| Op::Create(paths.chunks_of(at.slot, id), Bytes::new()));
        let ops = parent.into_iter().chain([Op::Create(paths.chunk(at.slot, id, *chunks), chunk)]).collect();
        Ok(matches!(self.fenced(client, ops).await?, Multi::Done(_)))
    }

    async fn switch(&self, client: &Client, draft: &Draft, low: u64) -> Result<Outcome, Trouble> {
        let paths = &self.connector.paths;
        let ops = vec![
            Op::Set(paths.snapshot.clone(), draft.pointer().encode(), None),
            Op::Set(paths.low.clone(), encode_number(low), None),
        ];
        Ok(match self.fenced(client, ops).await? {
            Multi::Done(_) => Outcome::Committed,
            Multi::Refused(0) => Outcome::Fenced,
            Multi::Refused(_) => Outcome::Conflict(None),
        })
    }

    async fn clean_up(&self, client: &Client, draft: &Draft, low: u64) -> Result<(), Trouble> {
        self.clean_slots(client, low).await?;
        let paths = &self.connector.paths;
        let (ours, end) = (paths.chunks_of(draft.at.slot, &draft.id), format!("{:016x}.", draft.at.slot.0));
        for name in client.children(&paths.chunks).await? {
            let path = format!("{}/{name}", paths.chunks);
            // Chunks of later slots may be those of a newer epoch's snapshot under way.
            if name < end && path != ours {
                client.remove(&path).await?;
            }
        }
        Ok(())
    }
}
