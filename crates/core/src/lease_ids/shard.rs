//! A part of all ids, in buckets of eight.

use super::{Entry, Record};

/// How many shards there are: so many that giving one of them more buckets stalls nobody, also with millions of ids.
pub(super) const SHARD_BITS: u32 = 10;

/// Entries of a bucket: one line of a processor's cache.
const ROOM: usize = 8;
/// Entries for each bucket beyond which there are more buckets. With five, one id in a hundred finds its bucket full.
const FULL: usize = 5;
/// Entries for each bucket below which there are fewer.
const SPARSE: usize = 2;

/// Heads stand side by side, so that all eight are compared at once; that of a free place means nothing.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    heads: [u32; ROOM],
    records: [Option<Record>; ROOM],
}

const _: () = assert!(size_of::<Bucket>() == 64, "a bucket is one line of a cache");

impl Bucket {
    fn entry(&self, place: usize) -> Option<Entry> {
        self.records[place].map(|record| Entry { head: self.heads[place], record })
    }

    fn entries(&self) -> impl Iterator<Item = Entry> {
        (0..ROOM).filter_map(|place| self.entry(place))
    }

    /// Where the entry with this head is that is meant. Most buckets have none with it, which is seen without a branch for each.
    fn place_of(&self, head: u32, is_meant: impl Fn(Entry) -> bool) -> Option<usize> {
        let mut with_head = 0_u32;
        for (place, other) in self.heads.iter().enumerate() {
            with_head |= u32::from(*other == head) << place;
        }
        while with_head != 0 {
            let place = with_head.trailing_zeros() as usize;
            if self.entry(place).is_some_and(&is_meant) {
                return Some(place);
            }
            with_head &= with_head - 1;
        }
        None
    }

    fn is_full(&self) -> bool {
        self.records.iter().fold(true, |full, record| full & record.is_some())
    }
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    buckets: Vec<Bucket>,
    len: usize,
}

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn buckets(&self) -> usize {
        self.buckets.len()
    }

    /// Which bucket is that of ids with this head: larger ones for larger heads.
    pub(super) fn bucket_of(&self, head: u32) -> usize {
        let within = u64::from(head << SHARD_BITS);
        ((within * self.buckets.len() as u64) >> u32::BITS) as usize
    }

    /// The lowest head that [`Shard::bucket_of`] has in this bucket, in the shard of this number.
    pub(super) fn lowest_head(&self, number: usize, bucket: usize) -> u32 {
        let bits = u32::BITS - SHARD_BITS;
        let within = ((bucket as u64) << bits).div_ceil(self.buckets.len() as u64);
        (number as u32) << bits | within as u32
    }

    pub(super) fn is_full(&self, bucket: usize) -> bool {
        self.buckets[bucket].is_full()
    }

    /// Whether the bucket of this head is full.
    pub(super) fn is_full_at(&self, head: u32) -> bool {
        self.len > 0 && self.is_full(self.bucket_of(head))
    }

    /// Looks at the bucket of this head without a need for it, so that it is in the processor's cache soon.
    pub(super) fn look_ahead(&self, head: u32) {
        std::hint::black_box(self.buckets.get(self.bucket_of(head)).map(|bucket| bucket.heads[0]));
    }

    /// The entry with this head that is meant.
    pub(super) fn find(&self, head: u32, is_meant: impl Fn(Entry) -> bool) -> Option<Entry> {
        let bucket = self.buckets.get(self.bucket_of(head))?;
        bucket.entry(bucket.place_of(head, is_meant)?)
    }

    /// Puts another entry of the same head into the place of the one that is meant, and gives that.
    pub(super) fn replace(&mut self, entry: Entry, is_meant: impl Fn(Entry) -> bool) -> Option<Entry> {
        let bucket = self.bucket_of(entry.head);
        let bucket = self.buckets.get_mut(bucket)?;
        let place = bucket.place_of(entry.head, is_meant)?;
        let former = bucket.entry(place);
        bucket.records[place] = Some(entry.record);
        former
    }

    /// Puts an entry into its bucket, unless that is full.
    pub(super) fn insert(&mut self, entry: Entry) -> bool {
        let bucket = self.bucket_of(entry.head);
        let Bucket { heads, records } = &mut self.buckets[bucket];
        let Some(free) = records.iter().position(Option::is_none) else { return false };
        (heads[free], records[free]) = (entry.head, Some(entry.record));
        self.len += 1;
        true
    }

    /// Takes the entry with this head out that is meant. False if there is none.
    pub(super) fn remove(&mut self, head: u32, is_meant: impl Fn(Entry) -> bool) -> bool {
        let bucket = self.bucket_of(head);
        let Some(bucket) = self.buckets.get_mut(bucket) else { return false };
        let Some(place) = bucket.place_of(head, is_meant) else { return false };
        bucket.records[place] = None;
        self.len -= 1;
        true
    }

    /// Gives it another number of buckets if there are too few for what it has with so many to come, or far too many; gives
    /// the entries that found their new bucket full.
    pub(super) fn resize(&mut self, to_come: usize) -> Option<Vec<Entry>> {
        let (now, needed) = (self.buckets.len(), self.len + to_come);
        let buckets = match now {
            _ if needed > FULL * now => now + now / 4 + 1,
            _ if needed < SPARSE * now && now > 1 => needed / (FULL - 1) + 1,
            _ => return None,
        };
        let before = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.len = 0;
        let entries = before.iter().flat_map(Bucket::entries);
        Some(entries.filter(|entry| !self.insert(*entry)).collect())
    }
}
