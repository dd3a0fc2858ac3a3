//! Reading the whole log when the journal is opened: where it begins, where it ends, and whether it is whole.

use std::io;

use leasehold_journal::{Chained, OpenError, Tail};
use leasehold_types::{ClusterId, Slot};

use crate::disk::Disk;
use crate::sector;
use crate::segment::{self, Header, HeaderSector, Scanner, Step};
use crate::snapshot::SnapshotFile;

/// What was found of the log.
#[derive(Default)]
pub(crate) struct Log {
    /// The segments in use, oldest first; the last one is appended to.
    pub(crate) segments: Vec<Header>,
    /// Segments below the low-water mark whose deletion was not finished.
    pub(crate) leftovers: Vec<String>,
    /// A segment taken into use whose header was not finished: it comes after `segments`.
    pub(crate) blank: Option<u64>,
    /// The end of the whole prefix.
    pub(crate) tail: Tail,
    /// The last whole batch, with its first sector if it is in the last segment.
    pub(crate) last: Option<(Chained, Option<u64>)>,
    /// The first free sector of the last segment.
    pub(crate) next: u64,
    /// Sectors from `next` up to here may hold parts of an unfinished batch.
    pub(crate) torn_end: u64,
    /// Where the log stops being whole, if it does.
    pub(crate) damage: Option<Damage>,
    /// The highest epoch in the log.
    pub(crate) epoch: u64,
}

/// Where a log is damaged, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Damage {
    pub(crate) segment: u64,
    pub(crate) sector: u64,
    pub(crate) detail: String,
}

impl Damage {
    fn new(segment: u64, sector: u64, detail: &str) -> Self {
        Self { segment, sector, detail: detail.to_owned() }
    }

    pub(crate) fn place(&self, disk: &dyn Disk) -> String {
        let name = segment::name(self.segment);
        format!("{} at byte {}", disk.path(&name), self.sector * sector::BYTES as u64)
    }

    pub(crate) fn error(&self, disk: &dyn Disk) -> OpenError {
        OpenError::Corrupt { place: self.place(disk), detail: self.detail.clone() }
    }
}

/// The numbers of the segments in the directory, in order.
pub(crate) fn numbers(disk: &dyn Disk) -> io::Result<Vec<u64>> {
    let mut numbers: Vec<u64> = disk.names()?.iter().filter_map(|name| segment::number(name)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads the log of `cluster`. Damage is told, not an error: what to do about it is the caller's decision.
pub(crate) fn read(
    disk: &dyn Disk,
    cluster: ClusterId,
    snapshot: Option<&SnapshotFile>,
) -> Result<Log, OpenError> {
    let unreadable = |error: io::Error| OpenError::Unavailable(format!("{}: {error}", disk.path("segments")));
    let mut headers = Vec::new();
    for number in numbers(disk).map_err(unreadable)? {
        let header = read_header(disk, cluster, number).map_err(unreadable)?;
        if let Checked::TooNew(version) = header {
            let name = disk.path(&segment::name(number));
            return Err(OpenError::TooNew(format!("{name} has format {version}")));
        }
        headers.push((number, header));
    }
    let mut walk = Walk { disk, snapshot, log: Log::default() };
    walk.log.damage = walk.through(headers).map_err(unreadable)?;
    Ok(walk.log)
}

/// A segment's header, looked at.
enum Checked {
    Whole(Header),
    Blank,
    Damaged(Damage),
    TooNew(u32),
}

fn read_header(disk: &dyn Disk, cluster: ClusterId, number: u64) -> io::Result<Checked> {
    let file = disk.open(&segment::name(number))?;
    let damaged = |detail| Ok(Checked::Damaged(Damage::new(number, 0, detail)));
    let header = match Header::read(file.as_ref(), number)? {
        HeaderSector::Whole(header) => header,
        HeaderSector::Zero => return Ok(Checked::Blank),
        HeaderSector::Corrupt => return damaged("the checksum of the segment's header does not match"),
        HeaderSector::TooNew(version) => return Ok(Checked::TooNew(version)),
    };
    if header.cluster != cluster {
        return damaged("the segment belongs to another cluster");
    }
    if file.size()? < header.sectors * sector::BYTES as u64 {
        let end = file.size()? / sector::BYTES as u64;
        return Ok(Checked::Damaged(Damage::new(number, end, "the file was cut off here")));
    }
    Ok(Checked::Whole(header))
}

struct Walk<'a> {
    disk: &'a dyn Disk,
    snapshot: Option<&'a SnapshotFile>,
    log: Log,
}

impl Walk<'_> {
    fn keep_from(&self) -> Slot {
        self.snapshot.map_or(Slot(1), |snapshot| snapshot.keep_from)
    }

    /// Goes through all segments; where it must stop, if anywhere.
    fn through(&mut self, headers: Vec<(u64, Checked)>) -> io::Result<Option<Damage>> {
        let first = headers.first().map_or(1, |(number, _)| *number);
        let begins_early =
            |checked: &Checked| matches!(checked, Checked::Whole(h) if h.after.slot < self.keep_from());
        let Some(start) = headers.iter().rposition(|(_, checked)| begins_early(checked)) else {
            let detail = format!("the segment that holds slot {} is missing", self.keep_from());
            let damaged = headers.into_iter().find_map(|(_, checked)| match checked {
                Checked::Damaged(damage) => Some(damage),
                _ => None,
            });
            return Ok(Some(damaged.unwrap_or_else(|| Damage::new(first, 0, &detail))));
        };
        self.log.leftovers = headers[..start].iter().map(|(number, _)| segment::name(*number)).collect();
        let mut newest = None;
        for (number, checked) in headers.into_iter().skip(start) {
            let damage = match (checked, newest) {
                (_, Some(before)) if number != before + 1 => {
                    Some(Damage::new(before + 1, 0, "the segment is missing"))
                }
                (Checked::Whole(header), _) => self.segment(header)?,
                (Checked::Blank, _) => self.blank(number)?,
                (Checked::Damaged(damage), _) => Some(damage),
                (Checked::TooNew(_), _) => unreachable!("refused before"),
            };
            if damage.is_some() {
                return Ok(damage);
            }
            newest = Some(number);
        }
        Ok(self.ends_before_snapshot())
    }

    /// What is wrong with going on at this place after an unfinished end.
    fn went_on(&self, number: u64, after: Option<Tail>) -> Option<Damage> {
        let before = self.log.segments.last()?;
        if self.log.blank.is_some() {
            return Some(Damage::new(number - 1, 0, "the segment's header is missing"));
        }
        if self.log.torn_end > self.log.next || after.is_some_and(|after| after != self.log.tail) {
            let detail = "a batch is missing here, and later ones exist";
            return Some(Damage::new(before.number, self.log.next, detail));
        }
        None
    }

    fn segment(&mut self, header: Header) -> io::Result<Option<Damage>> {
        let damage = self.went_on(header.number, Some(header.after));
        if damage.is_some() {
            return Ok(damage);
        }
        if let Some((_, place)) = &mut self.log.last {
            *place = None;
        }
        self.log.segments.push(header);
        (self.log.tail, self.log.next, self.log.torn_end) = (header.after, 1, 0);
        let mut scanner = Scanner::new(self.disk.open(&segment::name(header.number))?, header);
        loop {
            let damaged = |sector, detail| Ok(Some(Damage::new(header.number, sector, detail)));
            if self.contradicts_snapshot() {
                return damaged(self.log.next, "the snapshot was made from another history");
            }
            match scanner.step()? {
                Step::Batch { committed, first } => {
                    self.log.epoch = self.log.epoch.max(committed.epoch().0);
                    self.log.last = Some((committed, Some(first)));
                    (self.log.tail, self.log.next) = (scanner.tail(), scanner.position());
                }
                Step::End => return Ok(None),
                Step::Torn { end } => {
                    self.log.torn_end = end;
                    return Ok(None);
                }
                Step::Corrupt { sector, detail } => return damaged(sector, detail),
            }
        }
    }

    fn contradicts_snapshot(&self) -> bool {
        self.snapshot.is_some_and(|s| s.info.at.slot == self.log.tail.slot && s.info.at != self.log.tail)
    }

    /// A segment without a header: lawful as the very last one, if nothing was written into it.
    fn blank(&mut self, number: u64) -> io::Result<Option<Damage>> {
        let damage = self.went_on(number, None);
        if damage.is_some() {
            return Ok(damage);
        }
        let file = self.disk.open(&segment::name(number))?;
        let far = self.log.segments.last().map_or(2, |header| 2 * header.batch_sectors as usize);
        let mut bytes = vec![0; far * sector::BYTES];
        let count = file.read_at(0, &mut bytes)?;
        if bytes[..count].iter().any(|&byte| byte != 0) {
            return Ok(Some(Damage::new(number, 0, "the segment's header is missing")));
        }
        self.log.blank = Some(number);
        Ok(None)
    }

    fn ends_before_snapshot(&self) -> Option<Damage> {
        let snapshot = self.snapshot?;
        if self.log.tail.slot >= snapshot.info.at.slot {
            return None;
        }
        let segment = self.log.segments.last().map_or(1, |header| header.number);
        Some(Damage::new(segment, self.log.next, "the log ends here, but the snapshot is newer"))
    }
}
