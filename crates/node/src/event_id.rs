//! The id of a journaled event.

use std::fmt;
use std::str::FromStr;

use leasehold_types::Slot;

/// Where a journaled event stands: the n-th event of a slot, counted from 0. The same on every replay.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EventId {
    /// The slot whose facts made it.
    pub slot: Slot,
    /// Its number within the slot.
    pub n: u32,
}

/// The text is not an event id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an event id of the form slot.n")]
pub struct InvalidEventId;

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.slot, self.n)
    }
}

impl FromStr for EventId {
    type Err = InvalidEventId;

    fn from_str(text: &str) -> Result<Self, InvalidEventId> {
        let (slot, n) = text.split_once('.').ok_or(InvalidEventId)?;
        Ok(Self { slot: Slot(number(slot)?), n: number(n)? })
    }
}

/// Digits alone: `parse` would also take a sign.
fn number<T: FromStr>(digits: &str) -> Result<T, InvalidEventId> {
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(InvalidEventId);
    }
    digits.parse().map_err(|_| InvalidEventId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = EventId { slot: Slot(42), n: 7 };
        assert_eq!(id.to_string(), "42.7");
        assert_eq!("42.7".parse(), Ok(id));
        for text in ["", ".", "1", "1.", ".1", "+1.2", "1.-2", "1.2.3", "1.4294967296", " 1.2"] {
            assert_eq!(text.parse::<EventId>(), Err(InvalidEventId), "{text:?}");
        }
    }
}
