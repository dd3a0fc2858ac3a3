//! The document that a fence over a compare-and-set keeps: readable by people, with the value behind it as it is.
//!
//! ```text
//! leasehold-fence 1
//! put 5b3c…                    which put made this document
//! row -1 34 2 books/2026       permit (-1: the whole), highest token, writes, guard
//! value                        or: claimed, when there is no value yet
//!
//! …bytes…
//! ```

use std::collections::BTreeMap;

use leasehold_types::ids::random;

use crate::Row;

const HEAD: &str = "leasehold-fence 1";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Document {
    /// Drawn anew for every put, so that a put whose answer was lost can be found again.
    pub put: [u8; 16],
    pub rows: BTreeMap<i64, Row>,
    pub value: Option<Vec<u8>>,
}

impl Document {
    /// The document after a write or claim; what is `None` stays as it is.
    pub(super) fn advance(&mut self, number: i64, row: Option<Row>, value: Option<Vec<u8>>) {
        self.put = random();
        self.rows.extend(row.map(|row| (number, row)));
        self.value = value.or_else(|| self.value.take());
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let put: String = self.put.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut text = format!("{HEAD}\nput {put}\n");
        for (number, row) in &self.rows {
            // A guard has no control characters, so it ends with its line.
            text += &format!("row {number} {} {} {}\n", row.highest_number(), row.writes, row.guard);
        }
        text += if self.value.is_some() { "value\n\n" } else { "claimed\n\n" };
        let mut bytes = text.into_bytes();
        bytes.extend(self.value.iter().flatten());
        bytes
    }

    /// `None`: none of ours, or damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n")?;
        let (head, value) = (std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 2..]);
        let mut lines = head.lines();
        if lines.next()? != HEAD {
            return None;
        }
        let put = put(lines.next()?.strip_prefix("put ")?)?;
        let mut document = Self { put, rows: BTreeMap::new(), value: None };
        for line in lines {
            match line {
                "value" => document.value = Some(value.to_vec()),
                "claimed" if value.is_empty() => {}
                _ => document.rows.extend([row(line)?]),
            }
        }
        Some(document)
    }
}

fn put(text: &str) -> Option<[u8; 16]> {
    if text.len() != 32 {
        return None;
    }
    let mut put = [0; 16];
    for (n, byte) in put.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * n..2 * n + 2)?, 16).ok()?;
    }
    Some(put)
}

fn row(line: &str) -> Option<(i64, Row)> {
    let mut words = line.strip_prefix("row ")?.splitn(4, ' ');
    let mut number = || words.next()?.parse::<i64>().ok();
    let (permit, highest, writes) = (number()?, number()?, number()?);
    Some((permit, Row::from_numbers(words.next()?, highest, writes)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(value: Option<&[u8]>) -> Document {
        let mut document = Document::default();
        for (number, guard) in [(-1, "a b/ü"), (3, "row 1 2 3")] {
            document.advance(number, Row::from_numbers(guard, 34, 2), value.map(<[u8]>::to_vec));
        }
        document
    }

    #[test]
    fn what_is_kept_is_read_back() {
        for value in [None, Some(&b""[..]), Some(b"\n\nvalue\n\n\x00\xff")] {
            let document = sample(value);
            assert_eq!(Document::decode(&document.encode()), Some(document));
        }
    }

    #[test]
    fn what_is_damaged_is_no_document() {
        let bytes = sample(None).encode();
        for end in 0..bytes.len() {
            assert_eq!(Document::decode(&bytes[..end]), None, "cut at {end}");
        }
        assert_eq!(Document::decode(b"some value of another program"), None);
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(Document::decode(text.replace(" 34 ", " 9007199254740992 ").as_bytes()), None);
    }
}
