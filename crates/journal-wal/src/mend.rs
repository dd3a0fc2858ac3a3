//! Opening a damaged journal for `recover`: the longest whole prefix is kept, and what is damaged is set aside.
//!
//! Each step leaves either the old damage, which is found again, or the next state: never a log that looks whole but
//! is shorter without anybody having been told.

use std::io;
use std::sync::Arc;

use leasehold_journal::{OpenError, Tail};
use leasehold_types::{ClusterId, Slot};

use crate::config::WalConfig;
use crate::disk::{Disk, DiskFile};
use crate::identity::{IDENTITY, remove_if_there};
use crate::keeper::zero_fill;
use crate::log::{self, Damage, Log};
use crate::sector;
use crate::segment::{self, Header, HeaderSector};
use crate::snapshot::{Draft, SNAPSHOT, SnapshotFile};
use crate::writer::Active;

const TMP: &str = "mend.tmp";
const COPY_BYTES: usize = 1 << 20;

/// The cluster of a directory whose identity is lost: as its segments or its snapshot say.
pub(crate) fn salvage_cluster(disk: &dyn Disk) -> Result<ClusterId, OpenError> {
    let unavailable = |error: io::Error| OpenError::Unavailable(error.to_string());
    for number in log::numbers(disk).map_err(unavailable)? {
        let file = disk.open(&segment::name(number)).map_err(unavailable)?;
        if let HeaderSector::Whole(header) = Header::read(file.as_ref(), number).map_err(unavailable)? {
            return Ok(header.cluster);
        }
    }
    let snapshot = SnapshotFile::load(disk)?;
    let detail = "neither it nor any segment or snapshot is whole; restore a backup".to_owned();
    snapshot.map(|(_, cluster)| cluster).ok_or(OpenError::Corrupt { place: disk.path(IDENTITY), detail })
}

/// Sets a damaged snapshot aside, if everything it covered is still in the log.
pub(crate) fn without_snapshot(
    disk: &dyn Disk,
    cluster: ClusterId,
    why: &OpenError,
) -> Result<String, OpenError> {
    let whole = log::read(disk, cluster, None)?;
    if whole.segments.first().is_none_or(|first| first.after != Tail::default()) {
        let detail = format!("{why}; the slots it covered are compacted, so restore a backup");
        return Err(OpenError::Corrupt { place: disk.path(SNAPSHOT), detail });
    }
    let aside = set_aside(disk, SNAPSHOT).map_err(|error| OpenError::Unavailable(error.to_string()))?;
    Ok(format!("the snapshot was damaged ({why}) and is kept as {aside}; the log alone is used"))
}

/// Makes a damaged log whole again by dropping what cannot be trusted. Tells in words what was dropped.
pub(crate) fn log(
    disk: &Arc<dyn Disk>,
    config: &WalConfig,
    cluster: ClusterId,
    snapshot: Option<&SnapshotFile>,
    found: &Log,
    damage: &Damage,
) -> io::Result<String> {
    let covered = snapshot.map_or(Tail::default(), |snapshot| snapshot.info.at);
    let mut mender = Mender { disk: disk.as_ref(), config, cluster, aside: Vec::new() };
    let kept = if found.tail.slot < covered.slot || found.segments.is_empty() {
        mender.start_over(covered)?;
        if let Some(snapshot) = snapshot {
            rewrite_snapshot(disk, cluster, snapshot, covered.slot.next())?;
        }
        covered
    } else {
        mender.cut(found, damage)?;
        found.tail
    };
    let (place, detail) = (damage.place(disk.as_ref()), &damage.detail);
    let aside = mender.aside.join(", ");
    Ok(format!("everything after slot {} was dropped ({place}: {detail}); kept aside: {aside}", kept.slot))
}

struct Mender<'a> {
    disk: &'a dyn Disk,
    config: &'a WalConfig,
    cluster: ClusterId,
    aside: Vec<String>,
}

impl Mender<'_> {
    /// Cuts the log at its damage.
    fn cut(&mut self, found: &Log, damage: &Damage) -> io::Result<()> {
        let later = |number: &u64| *number > damage.segment;
        for number in log::numbers(self.disk)?.into_iter().filter(later).rev() {
            self.aside.push(set_aside(self.disk, &segment::name(number))?);
        }
        let name = segment::name(damage.segment);
        match found.segments.last() {
            Some(last) if last.number == damage.segment => {
                self.aside.push(copy_aside(self.disk, &name)?);
                self.keep_prefix(last, found.next)?;
                self.disk.rename(TMP, &name)?;
            }
            // Nothing of the damaged segment is usable, or it is missing: the one before it is appended to again.
            _ if self.disk.open(&name).is_ok() => self.aside.push(set_aside(self.disk, &name)?),
            _ => {}
        }
        self.disk.sync()
    }

    /// Makes a segment of the first sectors of a damaged one.
    fn keep_prefix(&self, header: &Header, sectors: u64) -> io::Result<()> {
        let from = self.disk.open(&segment::name(header.number))?;
        let bytes = header.sectors * sector::BYTES as u64;
        zero_fill(self.disk, TMP, bytes, &|_| false)?;
        let to = self.disk.open(TMP)?;
        copy(from.as_ref(), to.as_ref(), sectors * sector::BYTES as u64)
    }

    /// Sets all segments aside and begins a new log after `covered`.
    fn start_over(&mut self, covered: Tail) -> io::Result<()> {
        let numbers = log::numbers(self.disk)?;
        let number = numbers.last().map_or(1, |last| last + 1);
        for number in numbers {
            self.aside.push(set_aside(self.disk, &segment::name(number))?);
        }
        self.disk.sync()?;
        zero_fill(self.disk, TMP, self.config.first_segment_bytes, &|_| false)?;
        Active::begin(self.disk, TMP, new_header(self.config, self.cluster, number, covered)).map(drop)
    }
}

/// The header of a segment to be begun; its size is filled in when it is.
pub(crate) fn new_header(config: &WalConfig, cluster: ClusterId, number: u64, after: Tail) -> Header {
    let batch_sectors = sector::sectors_for(config.body_limit());
    let batch_sectors = u32::try_from(batch_sectors).expect("the limit of a body is far below");
    Header { number, cluster, after, sectors: 0, batch_sectors }
}

/// Writes the same snapshot with another low-water mark.
fn rewrite_snapshot(
    disk: &Arc<dyn Disk>,
    cluster: ClusterId,
    snapshot: &SnapshotFile,
    keep_from: Slot,
) -> io::Result<()> {
    let mut draft = Draft::begin(Arc::clone(disk), cluster, snapshot.info.at)?;
    for index in 0..snapshot.info.chunks {
        let chunk = snapshot.chunk(disk.as_ref(), index).map_err(io::Error::other)?;
        draft.chunk(&chunk)?;
    }
    draft.finish(keep_from)?.switch().map(drop)
}

fn copy(from: &dyn DiskFile, to: &dyn DiskFile, bytes: u64) -> io::Result<()> {
    let mut buffer = vec![0; COPY_BYTES];
    let mut at = 0;
    while at < bytes {
        let part = usize::try_from((bytes - at).min(COPY_BYTES as u64)).expect("at most the buffer");
        let count = from.read_at(at, &mut buffer[..part])?;
        if count == 0 {
            break;
        }
        to.write_at(at, &buffer[..count])?;
        at += count as u64;
    }
    to.sync()
}

fn name_aside(disk: &dyn Disk, name: &str) -> io::Result<String> {
    let names = disk.names()?;
    let free = (1..).map(|number| format!("damaged-{number}-{name}")).find(|aside| !names.contains(aside));
    Ok(free.expect("some number is free"))
}

fn set_aside(disk: &dyn Disk, name: &str) -> io::Result<String> {
    let aside = name_aside(disk, name)?;
    disk.rename(name, &aside)?;
    Ok(aside)
}

fn copy_aside(disk: &dyn Disk, name: &str) -> io::Result<String> {
    let aside = name_aside(disk, name)?;
    let (from, to) = (disk.open(name)?, disk.create(&aside)?);
    copy(from.as_ref(), to.as_ref(), from.size()?)?;
    remove_if_there(disk, TMP)?;
    Ok(aside)
}
