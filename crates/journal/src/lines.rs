//! Small checked files of lines: readable with `cat`, but a changed byte or a cut end is noticed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::str::FromStr;

/// The text of a small checked file: a title with a version, one `key value` line each, and a checksum over it all.
///
/// # Panics
/// A key has a space, or a key or value a line break: those are the program's own words.
pub fn seal(title: &str, version: u32, lines: &[(&str, String)]) -> String {
    let mut text = format!("{title} {version}\n");
    for (key, value) in lines {
        assert!(!key.contains([' ', '\n']) && !value.contains('\n'), "line {key} would not read back");
        writeln!(text, "{key} {value}").expect("writing to a string cannot fail");
    }
    let sum = blake3::hash(text.as_bytes());
    writeln!(text, "checksum {}", sum.to_hex()).expect("writing to a string cannot fail");
    text
}

/// The lines of a sealed text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lines(BTreeMap<String, String>);

/// Why a sealed text cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinesError {
    /// It is not what was written.
    #[error("{0}")]
    Damaged(String),
    /// A newer version wrote it.
    #[error("format {found}, this version knows up to {known}")]
    TooNew {
        /// The version in the text.
        found: u32,
        /// The newest version known here.
        known: u32,
    },
}

impl Lines {
    /// Reads a sealed text with this title, up to this version.
    ///
    /// # Errors
    /// Damaged, something else altogether, or too new.
    pub fn read(title: &str, version: u32, text: &str) -> Result<Self, LinesError> {
        let damaged = |what: &str| LinesError::Damaged(what.to_owned());
        let (body, sum) = text.rsplit_once("checksum ").ok_or_else(|| damaged("no checksum at its end"))?;
        if sum != format!("{}\n", blake3::hash(body.as_bytes()).to_hex()) {
            return Err(damaged("the checksum does not match"));
        }
        let mut lines = body.lines();
        let (found_title, found) =
            lines.next().and_then(|line| line.rsplit_once(' ')).ok_or_else(|| damaged("no title"))?;
        let found: u32 = found.parse().map_err(|_| damaged("no version"))?;
        if found_title != title {
            return Err(LinesError::Damaged(format!("it is a {found_title}, not a {title}")));
        }
        if found > version {
            return Err(LinesError::TooNew { found, known: version });
        }
        let split = |line: &str| line.split_once(' ').map(|(key, value)| (key.to_owned(), value.to_owned()));
        Ok(Self(lines.filter_map(split).collect()))
    }

    /// The value of a line that must be there.
    ///
    /// # Errors
    /// It is not there, or not what is expected.
    pub fn value<T: FromStr>(&self, key: &str) -> Result<T, LinesError> {
        self.optional(key)?.ok_or_else(|| LinesError::Damaged(format!("no line {key}")))
    }

    /// The value of a line that may be there.
    ///
    /// # Errors
    /// It is not what is expected.
    pub fn optional<T: FromStr>(&self, key: &str) -> Result<Option<T>, LinesError> {
        let parse =
            |text: &String| text.parse().map_err(|_| LinesError::Damaged(format!("line {key}: {text}")));
        self.0.get(key).map(parse).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let text = seal("leasehold test", 3, &[("slot", "17".to_owned()), ("host", "a b c".to_owned())]);
        let lines = Lines::read("leasehold test", 3, &text).unwrap();
        assert_eq!(lines.value::<u64>("slot"), Ok(17));
        assert_eq!(lines.value::<String>("host"), Ok("a b c".to_owned()));
        assert_eq!(lines.optional::<u64>("absent"), Ok(None));
        assert!(lines.value::<u64>("absent").is_err());
        assert!(lines.value::<u64>("host").is_err());
        for end in 0..text.len() {
            assert!(Lines::read("leasehold test", 3, &text[..end]).is_err(), "cut at {end}");
            let mut bytes = text.clone().into_bytes();
            bytes[end] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert!(Lines::read("leasehold test", 3, &changed).is_err(), "changed at {end}");
        }
    }

    #[test]
    fn newer_and_foreign_files_are_told_apart() {
        let text = seal("leasehold test", 3, &[]);
        assert_eq!(Lines::read("leasehold test", 2, &text), Err(LinesError::TooNew { found: 3, known: 2 }));
        assert!(matches!(Lines::read("leasehold witness", 3, &text), Err(LinesError::Damaged(_))));
    }
}
