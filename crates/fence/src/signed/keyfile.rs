//! The file of keys that service and fences share.

use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::{Key, KeyId, Keyring};

/// The text is no file of keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidKeys {
    /// There is nothing to sign with.
    #[error("there is no key")]
    Empty,
    /// A line is not an id and 64 hexadecimal digits. The line itself is not shown: it may be a secret.
    #[error("line {0} is not a key id of 1 to 16 letters, digits or `-`, a space, and 64 hexadecimal digits")]
    Line(usize),
    /// Two keys have the same id.
    #[error("line {0} has the id of a key before it")]
    Twice(usize),
}

/// A file of keys that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {why}", file.display())]
pub struct KeyFileError {
    file: PathBuf,
    why: io::Error,
}

impl Keyring {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// It cannot be read, or is none; the message names it, and shows nothing of it.
    pub fn from_file(file: &Path) -> Result<Self, KeyFileError> {
        let parsed = |text: String| text.parse().map_err(|why: InvalidKeys| io::Error::other(why));
        let read = std::fs::read_to_string(file).and_then(parsed);
        read.map_err(|why| KeyFileError { file: file.to_owned(), why })
    }
}

/// One key a line, its id and 64 hexadecimal digits; the first one signs, all of them check. Empty lines and what begins
/// with `#` are passed over.
impl FromStr for Keyring {
    type Err = InvalidKeys;

    fn from_str(text: &str) -> Result<Self, InvalidKeys> {
        let mut ring: Option<Self> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (id, key) = key(line).ok_or(InvalidKeys::Line(number))?;
            match &mut ring {
                None => ring = Some(Self::new(id, key)),
                Some(ring) if ring.knows(&id) => return Err(InvalidKeys::Twice(number)),
                Some(ring) => ring.add(id, key),
            }
        }
        ring.ok_or(InvalidKeys::Empty)
    }
}

fn key(line: &str) -> Option<(KeyId, Key)> {
    let (id, digits) = line.split_once(char::is_whitespace)?;
    let digits = digits.trim().as_bytes();
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let [high, low] = [pair[0], pair[1]].map(|digit| char::from(digit).to_digit(16));
        *byte = u8::try_from(high? * 16 + low?).expect("two hexadecimal digits are a byte");
    }
    Some((KeyId::new(id).ok()?, Key::new(bytes)))
}

#[cfg(test)]
mod tests {
    use leasehold_types::{FencingToken, Generation, ResourceName, TenantName};

    use super::*;
    use crate::Grant;
    use crate::signed::{Refusal, Signed};

    fn keys(ids: &[&str]) -> String {
        let line = |id: &&str| format!("{id} {}\n", id.repeat(64));
        format!("# keys\n\n{}", ids.iter().map(line).collect::<String>())
    }

    fn ring(ids: &[&str]) -> Keyring {
        keys(ids).parse().unwrap()
    }

    #[test]
    fn the_first_key_signs_and_all_of_them_check() {
        let tenant = TenantName::new("acme").unwrap();
        let grant = Grant::exclusive(ResourceName::new("r").unwrap(), FencingToken::new(3).unwrap());
        let signed = Signed { tenant: tenant.clone(), generation: Generation(1), grant };
        let check = |ids: &[&str], text: &str| ring(ids).check(text, &tenant, Generation(1));
        let text = ring(&["b", "a"]).sign(&signed);
        assert!(text.starts_with("lh1.b."), "{text}");
        assert_eq!(check(&["a", "b"], &text), Ok(signed.clone()));
        assert_eq!(check(&["a"], &text), Err(Refusal::UnknownKey));
        let other = format!("b {}", "c".repeat(64)).parse::<Keyring>().unwrap();
        assert_eq!(other.check(&text, &tenant, Generation(1)), Err(Refusal::Forged));
    }

    #[test]
    fn what_is_no_key_is_named_by_its_line_and_not_shown() {
        let wrong = |text: &str| text.parse::<Keyring>().err();
        assert_eq!(wrong("# nothing\n"), Some(InvalidKeys::Empty));
        let secret = "f".repeat(64);
        for line in
            ["a".to_owned(), format!("a {}", &secret[1..]), format!("a {secret}0"), format!("ä {secret}")]
        {
            let error = wrong(&format!("\n{line}\n")).unwrap();
            assert_eq!(error, InvalidKeys::Line(2), "{line}");
            assert!(!error.to_string().contains("ffff"));
        }
        assert_eq!(wrong(&format!("a {}", "g".repeat(64))), Some(InvalidKeys::Line(1)));
        assert_eq!(wrong(&keys(&["a", "b", "a"])), Some(InvalidKeys::Twice(5)));
    }
}
