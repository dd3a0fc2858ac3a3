//! The engine of the model: who owns the journal, and what is committed.

use crate::Mistake;

/// What is committed in one slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Fact {
    /// The lock is given for one asking of a client.
    Granted {
        /// To whom.
        client: u8,
        /// For which of its askings.
        ask: u8,
        /// Under this token.
        token: u8,
    },
    /// The holder gave it back.
    Released {
        /// Its token.
        token: u8,
    },
    /// Its time ended.
    Expired {
        /// Its token.
        token: u8,
    },
}

/// One committed slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Entry {
    /// By which epoch.
    pub epoch: u8,
    /// What.
    pub fact: Fact,
}

/// An append on its way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Append {
    /// Of which node.
    pub node: u8,
    /// In which epoch.
    pub epoch: u8,
    /// For which slot, from 1.
    pub slot: u8,
    /// What.
    pub fact: Fact,
    /// Its epoch was checked, and it is about to be written: a mistake.
    pub checked: bool,
}

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Engine {
    /// The current epoch.
    pub epoch: u8,
    /// Whose it is.
    pub owner: u8,
    /// Every slot ever committed.
    pub slots: Vec<Entry>,
    /// Slots up to here were compacted away; a snapshot has them.
    pub low_water: u8,
    /// Appends that may still land, in order, each once.
    pub flying: Vec<Append>,
}

/// What came of an append.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// It is there.
    Committed,
    /// A newer epoch has the journal.
    Fenced,
}

impl Engine {
    /// Puts an append on its way.
    pub(crate) fn send(&mut self, append: Append) {
        if let Err(place) = self.flying.binary_search(&append) {
            self.flying.insert(place, append);
        }
    }

    pub(crate) fn is_current(&self, node: u8, epoch: u8) -> bool {
        (self.epoch, self.owner) == (epoch, node)
    }

    /// An append reaches the engine. `None`: it goes on later.
    pub(crate) fn land(
        &mut self,
        append: Append,
        mistake: Option<Mistake>,
        broken: &mut Option<&'static str>,
    ) -> Option<Outcome> {
        let is_current = self.is_current(append.node, append.epoch);
        if mistake == Some(Mistake::EpochCheckApart) && !append.checked {
            if !is_current {
                return Some(Outcome::Fenced);
            }
            self.send(Append { checked: true, ..append });
            return None;
        }
        if !is_current && !append.checked {
            return Some(Outcome::Fenced);
        }
        let (slot, len) = (append.slot, u8::try_from(self.slots.len()).unwrap_or(u8::MAX));
        let entry = Entry { epoch: append.epoch, fact: append.fact };
        if slot <= self.low_water && mistake == Some(Mistake::CompactionReopens) {
            *broken = Some("S8 one body for each slot");
            return Some(Outcome::Committed);
        }
        if slot == len + 1 {
            if !is_current {
                *broken = Some("S8 one body for each slot");
            }
            self.slots.push(entry);
            return Some(Outcome::Committed);
        }
        // Found to be ours already, or refused: a compacted slot is told from the snapshot that covers it.
        let found = self.slots.get(usize::from(slot) - 1).copied();
        Some(if found == Some(entry) { Outcome::Committed } else { Outcome::Fenced })
    }
}
