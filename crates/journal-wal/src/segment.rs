//! Segments: files of sectors, one batch after the other, zero to the end.

use std::io;

use leasehold_journal::{Chained, Hash, Tail};
use leasehold_types::ClusterId;

use crate::disk::DiskFile;
use crate::sector::{self, Salt, Sector};

const MAGIC: &[u8; 8] = b"LHSEGMNT";
const VERSION: u32 = 1;
/// Read ahead begins small, so that a short log costs little, and grows, so that a long one is read in large blocks.
const FIRST_BLOCK: usize = 64 << 10;
const LARGEST_BLOCK: usize = 1 << 20;

/// The file name of a segment.
pub(crate) fn name(number: u64) -> String {
    format!("segment-{number:010}")
}

/// The number of the segment with this file name.
pub(crate) fn number(name: &str) -> Option<u64> {
    name.strip_prefix("segment-")?.parse().ok()
}

/// The first sector of a segment, written when the segment is taken into use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) cluster: ClusterId,
    /// The chain's end when the segment was begun.
    pub(crate) after: Tail,
    /// Sectors of the file; a shorter file was cut.
    pub(crate) sectors: u64,
    /// The most sectors that a batch of this segment can have: how far behind the end an unfinished write can reach.
    pub(crate) batch_sectors: u32,
}

/// What the first sector of a segment is.
pub(crate) enum HeaderSector {
    Whole(Header),
    /// Not yet written, or torn.
    Zero,
    Corrupt,
    TooNew(u32),
}

impl Header {
    pub(crate) fn salt(&self) -> Salt {
        Salt::new(self.cluster, self.number)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(sector::PAYLOAD);
        payload.extend_from_slice(MAGIC);
        payload.extend_from_slice(&VERSION.to_le_bytes());
        payload.extend_from_slice(&self.batch_sectors.to_le_bytes());
        payload.extend_from_slice(&self.number.to_le_bytes());
        payload.extend_from_slice(self.cluster.as_bytes());
        payload.extend_from_slice(&self.after.hash.0);
        payload.extend_from_slice(&self.sectors.to_le_bytes());
        let mut out = Vec::with_capacity(sector::BYTES);
        sector::push(&mut out, self.salt(), 0, sector::SEGMENT_HEADER, self.after.slot, &payload);
        out
    }

    /// Reads the header of segment `number`, of any cluster.
    pub(crate) fn read(file: &dyn DiskFile, number: u64) -> io::Result<HeaderSector> {
        let mut bytes = [0; sector::BYTES];
        let count = file.read_at(0, &mut bytes)?;
        // The cluster stands at a fixed place; taking it from there unchecked is safe, for it salts the checksum.
        let cluster = ClusterId::from_bytes(bytes[40..56].try_into().expect("sixteen bytes"));
        let (index, slot, payload) = match Sector::read(Salt::new(cluster, number), 0, &bytes) {
            Sector::Zero if count == sector::BYTES => return Ok(HeaderSector::Zero),
            Sector::Whole { index, slot, payload } => (index, slot, payload),
            Sector::Zero | Sector::Corrupt => return Ok(HeaderSector::Corrupt),
        };
        if index != sector::SEGMENT_HEADER || !payload.starts_with(MAGIC) {
            return Ok(HeaderSector::Corrupt);
        }
        match sector::u32_at(payload, 8) {
            VERSION => {}
            newer => return Ok(HeaderSector::TooNew(newer)),
        }
        let hash = Hash(payload[40..72].try_into().expect("thirty-two bytes"));
        Ok(HeaderSector::Whole(Self {
            number,
            cluster,
            after: Tail { slot, hash },
            sectors: sector::u64_at(payload, 72),
            batch_sectors: sector::u32_at(payload, 12),
        }))
    }
}

/// What comes next in a segment.
pub(crate) enum Step {
    /// A whole batch and its first sector.
    Batch { committed: Chained, first: u64 },
    /// Zeros: nothing was ever written after this.
    End,
    /// The next batch was begun and not finished; sectors before `end` may hold parts of it.
    Torn { end: u64 },
    /// Damage.
    Corrupt { sector: u64, detail: &'static str },
}

/// Goes through a segment batch by batch.
pub(crate) struct Scanner {
    file: Box<dyn DiskFile>,
    header: Header,
    salt: Salt,
    next: u64,
    tail: Tail,
    block: Block,
}

impl Scanner {
    /// From the first batch on.
    pub(crate) fn new(file: Box<dyn DiskFile>, header: Header) -> Self {
        Self { file, header, salt: header.salt(), next: 1, tail: header.after, block: Block::default() }
    }

    /// The next sector to be looked at.
    pub(crate) fn position(&self) -> u64 {
        self.next
    }

    /// The chain's end before the next batch.
    pub(crate) fn tail(&self) -> Tail {
        self.tail
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// Makes what was read durable, if another process has not done so yet.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }

    /// Forgets what was read ahead: a live writer may have written since.
    pub(crate) fn refresh(&mut self) {
        self.block = Block::default();
    }

    /// The next batch, or why there is none. Stays where it is unless it gives a batch.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        let (first, slot) = (self.next, self.tail.slot.next());
        if first >= self.header.sectors {
            return Ok(Step::End);
        }
        let sectors = match self.look(first)? {
            Sector::Zero => return self.ending(self.header.batch_sectors as usize),
            Sector::Corrupt => return Ok(corrupt(first)),
            Sector::Whole { index: 0, slot: found, payload } if found == slot => sector::sectors_of(payload),
            Sector::Whole { .. } => return Ok(misplaced(first)),
        };
        let fits = |sectors: &usize| first + *sectors as u64 <= self.header.sectors;
        let Some(sectors) = sectors.filter(fits) else {
            return Ok(Step::Corrupt { sector: first, detail: "the batch is longer than its segment" });
        };
        let mut stream = Vec::with_capacity(sectors * sector::PAYLOAD);
        for offset in 0..sectors {
            let number = first + offset as u64;
            match self.look(number)? {
                Sector::Zero => return self.ending(sectors),
                Sector::Corrupt => return Ok(corrupt(number)),
                Sector::Whole { index, slot: found, payload }
                    if found == slot && usize::from(index) == offset =>
                {
                    stream.extend_from_slice(payload);
                }
                Sector::Whole { .. } => return Ok(misplaced(number)),
            }
        }
        let Some(committed) = sector::decode(&stream.into(), slot, self.tail.hash) else {
            return Ok(Step::Corrupt { sector: first, detail: "the batch does not follow the hash chain" });
        };
        self.next = first + sectors as u64;
        self.tail = Tail { slot, hash: committed.hash() };
        Ok(Step::Batch { committed, first })
    }

    /// A sector that should begin or continue a batch is zero. That is lawful at the very end only: what an unfinished
    /// write of at most `most` sectors left may follow, and nothing else. One write is under way at a time, so twice
    /// the longest batch is far enough to see whether anything does.
    fn ending(&mut self, most: usize) -> io::Result<Step> {
        let (first, slot) = (self.next, self.tail.slot.next());
        let far = first + 2 * u64::from(self.header.batch_sectors);
        let mut end = first;
        for number in first..far.min(self.header.sectors) {
            let offset = usize::try_from(number - first).expect("within a segment");
            match self.look(number)? {
                Sector::Zero => {}
                Sector::Whole { index, slot: found, .. }
                    if found == slot && usize::from(index) == offset && offset < most =>
                {
                    end = number + 1;
                }
                Sector::Whole { .. } => {
                    let detail = "written although what stands before it is missing";
                    return Ok(Step::Corrupt { sector: number, detail });
                }
                Sector::Corrupt => return Ok(corrupt(number)),
            }
        }
        Ok(if end == first { Step::End } else { Step::Torn { end } })
    }

    fn look(&mut self, number: u64) -> io::Result<Sector<'_>> {
        let bytes = self.block.sector(self.file.as_ref(), number)?;
        Ok(Sector::read(self.salt, number, bytes))
    }
}

fn corrupt(sector: u64) -> Step {
    Step::Corrupt { sector, detail: "the checksum of the sector does not match" }
}

fn misplaced(sector: u64) -> Step {
    Step::Corrupt { sector, detail: "the sector belongs to another batch" }
}

/// Sectors read ahead.
#[derive(Default)]
struct Block {
    first: u64,
    bytes: Vec<u8>,
}

impl Block {
    fn sector(&mut self, file: &dyn DiskFile, number: u64) -> io::Result<&[u8]> {
        let held = (self.bytes.len() / sector::BYTES) as u64;
        if number < self.first || number >= self.first + held {
            self.fill(file, number)?;
        }
        let at = usize::try_from(number - self.first).expect("within a block") * sector::BYTES;
        Ok(&self.bytes[at..at + sector::BYTES])
    }

    fn fill(&mut self, file: &dyn DiskFile, number: u64) -> io::Result<()> {
        let at = number * sector::BYTES as u64;
        let left = usize::try_from(file.size()?.saturating_sub(at)).unwrap_or(usize::MAX);
        let len = (self.bytes.len() * 2).clamp(FIRST_BLOCK, LARGEST_BLOCK).min(left);
        self.bytes = vec![0; len / sector::BYTES * sector::BYTES];
        self.first = number;
        let count = file.read_at(at, &mut self.bytes)?;
        if count < sector::BYTES || count < self.bytes.len() {
            self.bytes.clear();
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }
}
