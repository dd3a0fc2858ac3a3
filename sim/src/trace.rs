//! A hash of everything that happened, by which two runs are compared.

use leasehold_history::Record;

/// FNV-1a over the records of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Trace(u64);

impl Default for Trace {
    fn default() -> Self {
        Self(0xCBF2_9CE4_8422_2325)
    }
}

impl Trace {
    /// Takes a record in: its kind, its time, and the numbers that name it.
    pub(crate) fn record(&mut self, record: &Record) {
        // Faults are written only when somebody reads along.
        if matches!(record, Record::Fault { .. }) {
            return;
        }
        self.number(record.at());
        match record {
            Record::Invoke { op, .. } => self.both(1, *op),
            Record::Answer { op, epoch, .. } => {
                self.both(2, *op);
                self.number(epoch.unwrap_or(0));
            }
            Record::Held { from, until, token, .. } => {
                self.both(3, *token);
                self.both(*from, *until);
            }
            Record::Fence { token, admitted, .. } => self.both(4 + u64::from(*admitted), *token),
            Record::Claim { epoch, tail, .. } => {
                self.both(6, *epoch);
                self.number(*tail);
            }
            Record::Seen { slot, .. } => self.both(7, *slot),
            Record::Commit { slot, hash, .. } => {
                self.both(8, *slot);
                hash.0.chunks(8).for_each(|part| {
                    self.number(u64::from_le_bytes(part.try_into().expect("32 is a multiple of 8")));
                });
            }
            Record::Event { slot, n, .. } => self.both(*slot, u64::from(*n)),
            Record::Compacted { slot, .. } => self.both(9, *slot),
            Record::Fault { .. } => {}
        }
    }

    /// The hash so far.
    pub(crate) fn hash(self) -> u64 {
        self.0
    }

    fn both(&mut self, one: u64, other: u64) {
        self.number(one);
        self.number(other);
    }

    fn number(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x0000_0100_0000_01B3);
        self.0 ^= self.0 >> 29;
    }
}
