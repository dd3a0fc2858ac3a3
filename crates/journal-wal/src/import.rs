//! Filling an empty directory from an archive or another journal.

use std::io;
use std::sync::Arc;

use leasehold_journal::{Chained, Head, ImportError, OpenError, ReadError, Reader, Slots, Tail};
use leasehold_types::{ClusterId, Slot};

use crate::config::WalConfig;
use crate::disk::Disk;
use crate::identity::{Identity, Phase};
use crate::keeper::zero_fill;
use crate::mend::new_header;
use crate::open;
use crate::sector;
use crate::snapshot::Draft;
use crate::writer::Active;

const TMP: &str = "import.tmp";

/// Fills the directory. The identity says `importing` from the first step to the last: a journal that was filled in
/// part is refused, and filled anew by the next try.
pub(crate) async fn import(
    disk: Arc<dyn Disk>,
    config: &WalConfig,
    from: &mut dyn Reader,
) -> Result<Tail, ImportError> {
    let (_lock, _) = open::lock(disk.as_ref())?;
    let broken = broken(disk.as_ref());
    let there = Identity::load(disk.as_ref())?;
    if there.as_ref().is_some_and(|(identity, _)| identity.phase == Phase::Importing) {
        clear(disk.as_ref()).map_err(&broken)?;
    } else if there.is_some() || open::holds_journal(disk.as_ref()).map_err(&broken)? {
        let whose = there
            .map_or_else(|| "it has segments".to_owned(), |(is, _)| format!("it is cluster {}", is.cluster));
        return Err(ImportError::NotEmpty(format!("{}: {whose}", disk.path(""))));
    }
    let head = from.head().await?;
    let Head { cluster, epoch, nonce, .. } = head;
    let identity = Identity { cluster, phase: Phase::Importing, epoch, nonce };
    identity.store(disk.as_ref()).map_err(&broken)?;
    let start = copy_snapshot(&disk, cluster, from).await?;
    let tail = copy_slots(disk.as_ref(), config, from, &head, start).await?;
    Identity { phase: Phase::Recovering, ..identity }.store(disk.as_ref()).map_err(&broken)?;
    Ok(tail)
}

/// Deletes what an import that was not finished has left.
fn clear(disk: &dyn Disk) -> io::Result<()> {
    for name in disk.names()?.iter().filter(|name| open::is_of_journal(name)) {
        disk.remove(name)?;
    }
    Ok(())
}

fn broken(disk: &dyn Disk) -> impl Fn(io::Error) -> ImportError + use<> {
    let place = disk.path("");
    move |error| ImportError::Target(OpenError::Unavailable(format!("{place}: {error}")))
}

/// Copies the snapshot, if there is one; where the slots to be copied begin.
async fn copy_snapshot(
    disk: &Arc<dyn Disk>,
    cluster: ClusterId,
    from: &mut dyn Reader,
) -> Result<Tail, ImportError> {
    let Some(info) = from.snapshot().await? else { return Ok(Tail::default()) };
    let broken = broken(disk.as_ref());
    let mut draft = Draft::begin(Arc::clone(disk), cluster, info.at).map_err(&broken)?;
    for index in 0..info.chunks {
        draft.chunk(&from.chunk(&info, index).await?).map_err(&broken)?;
    }
    let finished = draft.finish(info.at.slot.next()).map_err(&broken)?;
    let written = finished.switch().map_err(&broken)?;
    if written.info != info {
        let place = format!("snapshot at slot {}", info.at.slot);
        let detail = "its chunks do not have its hash".to_owned();
        return Err(ReadError::Corrupt { place, detail }.into());
    }
    Ok(info.at)
}

async fn copy_slots(
    disk: &dyn Disk,
    config: &WalConfig,
    from: &mut dyn Reader,
    head: &Head,
    start: Tail,
) -> Result<Tail, ImportError> {
    let broken = broken(disk);
    let mut target = Target::new(disk, config, head.cluster, start).map_err(&broken)?;
    while target.tail.slot < head.tail.slot {
        let next = target.tail.slot.next();
        let found = match from.slots(next).await? {
            Slots::Found(found) if !found.is_empty() => found,
            Slots::Found(_) => return Err(missing(next, "it is before the tail but cannot be read").into()),
            Slots::Compacted { .. } => return Err(ReadError::Replaced.into()),
        };
        for committed in found.iter().filter(|committed| committed.slot <= head.tail.slot) {
            if committed.prev_hash != target.tail.hash {
                return Err(missing(committed.slot, "it does not follow the chain").into());
            }
            target.write(committed).map_err(&broken)?;
        }
    }
    target.active.file.sync().map_err(&broken)?;
    if target.tail != head.tail {
        return Err(missing(head.tail.slot, "the copy does not end in the tail's hash").into());
    }
    Ok(target.tail)
}

fn missing(slot: Slot, detail: &str) -> ReadError {
    ReadError::Corrupt { place: format!("slot {slot}"), detail: detail.to_owned() }
}

/// The segments being filled; synced one by one, not batch by batch.
struct Target<'a> {
    disk: &'a dyn Disk,
    config: &'a WalConfig,
    active: Active,
    tail: Tail,
    buffer: Vec<u8>,
}

impl<'a> Target<'a> {
    fn new(disk: &'a dyn Disk, config: &'a WalConfig, cluster: ClusterId, start: Tail) -> io::Result<Self> {
        zero_fill(disk, TMP, config.first_segment_bytes, &|_| false)?;
        let active = Active::begin(disk, TMP, new_header(config, cluster, 1, start))?;
        Ok(Self { disk, config, active, tail: start, buffer: Vec::new() })
    }

    fn write(&mut self, committed: &Chained) -> io::Result<()> {
        let sectors = sector::sectors_for(committed.body.len());
        if !self.active.has_room_for(sectors) {
            self.active.file.sync()?;
            let header = self.active.header;
            zero_fill(self.disk, TMP, self.config.segment_bytes, &|_| false)?;
            let header = new_header(self.config, header.cluster, header.number + 1, self.tail);
            self.active = Active::begin(self.disk, TMP, header)?;
        }
        if !self.active.has_room_for(sectors) {
            return Err(io::Error::other("a batch is larger than a segment"));
        }
        self.active.write(committed, &mut self.buffer)?;
        self.tail = committed.tail();
        Ok(())
    }
}
