//! What journals on remote engines share: names, secrets, the check of what is read, and the bytes of a record.
//!
//! It has no engine. A journal crate uses it so that the same name is lawful everywhere, the same damage is noticed
//! everywhere, and every key-value engine holds the same bytes.

pub mod record;

use std::path::Path;

use bytes::Bytes;
use leasehold_types::Slot;

use crate::{Committed, ReadError, SnapshotHasher, SnapshotInfo, chain};

/// The variable with the engine's password, when neither the URL nor a file has it.
pub const PASSWORD_VARIABLE: &str = "LEASEHOLD_JOURNAL_PASSWORD";

/// Longest name of a cluster: with a short prefix it fits where engines allow 63 bytes.
pub const NAME_MAX: usize = 48;

/// Checks the name that tells clusters on one engine apart: it becomes a part of keys and paths.
///
/// # Errors
/// The rule, in words; the operator's to mend.
pub fn check_name(name: &str) -> Result<(), String> {
    let lawful = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    let dots_only = name.chars().all(|c| c == '.');
    if name.len() > NAME_MAX || dots_only || !name.chars().all(lawful) {
        let rule = "1 to 48 of the characters a-z, 0-9, `-`, `_` and `.`, not only dots";
        return Err(format!("`{name}` cannot be the name of a cluster: {rule}"));
    }
    Ok(())
}

/// The password to use: the one in the URL, or in a file, or in [`PASSWORD_VARIABLE`].
///
/// # Errors
/// Two at the same time, or a file that cannot be read; never quotes a secret.
pub fn password(
    in_url: Option<&str>,
    file: Option<&Path>,
    environment: impl Fn(&str) -> Option<String>,
) -> Result<Option<String>, String> {
    match (in_url, file) {
        (Some(_), Some(_)) => Err("a password in the URL and `password_file`".to_owned()),
        (Some(password), None) => Ok(Some(password.to_owned())),
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file);
            let text = text.map_err(|error| format!("password_file {}: {error}", file.display()))?;
            Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
        }
        (None, None) => Ok(environment(PASSWORD_VARIABLE)),
    }
}

/// A damaged slot, in words.
pub fn damaged_slot(slot: Slot, detail: &str) -> ReadError {
    ReadError::Corrupt { place: format!("slot {slot}"), detail: detail.to_owned() }
}

/// A damaged snapshot, in words.
pub fn damaged_snapshot(snapshot: &SnapshotInfo, detail: &str) -> ReadError {
    ReadError::Corrupt { place: format!("snapshot at slot {}", snapshot.at.slot), detail: detail.to_owned() }
}

/// Checks that slots follow each other from `from` on and that each is what its hash says (J9, J12).
///
/// # Errors
/// Names the first slot that is missing or damaged.
pub fn check_chain(from: Slot, found: &[Committed]) -> Result<(), ReadError> {
    let mut wanted = (from, None);
    for committed in found {
        let (slot, before) = wanted;
        if committed.batch.slot != slot {
            return Err(damaged_slot(slot, "it is before the tail but cannot be read"));
        }
        if before.is_some_and(|hash| hash != committed.batch.prev_hash)
            || committed.hash != chain(&committed.batch, committed.epoch)
        {
            return Err(damaged_slot(slot, "it is not what its hash says"));
        }
        wanted = (slot.next(), Some(committed.hash));
    }
    Ok(())
}

/// The running hash over the chunks of one snapshot, so that the last one is given only if all are right (J13).
#[derive(Default)]
pub struct ChunkCheck(Option<Progress>);

struct Progress {
    info: SnapshotInfo,
    next: u32,
    hasher: SnapshotHasher,
}

impl ChunkCheck {
    /// The first chunk that must be read, and passed to [`ChunkCheck::take`], before the one at `index`.
    pub fn needs_from(&mut self, snapshot: &SnapshotInfo, index: u32) -> u32 {
        match &self.0 {
            Some(progress) if progress.info == *snapshot && progress.next <= index => progress.next,
            _ => {
                self.0 =
                    Some(Progress { info: snapshot.clone(), next: 0, hasher: SnapshotHasher::default() });
                0
            }
        }
    }

    /// Takes the next chunk in.
    ///
    /// # Errors
    /// It was the last, and the whole is not what the snapshot's hash says.
    pub fn take(&mut self, chunk: &Bytes) -> Result<(), ReadError> {
        let progress = self.0.as_mut().expect("needs_from was asked before");
        progress.hasher.update(chunk);
        progress.next += 1;
        if progress.next == progress.info.chunks && progress.hasher.finish() != progress.info.hash {
            return Err(damaged_snapshot(&progress.info, "its chunks are not what its hash says"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Hash, Tail};

    #[test]
    fn a_name_is_short_and_plain() {
        assert_eq!(check_name("main-2.eu_west"), Ok(()));
        for name in ["", "Main", "a b", "a/b", ".", "..", &"x".repeat(49)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn a_password_has_one_source_and_the_environment_is_the_last() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("password");
        std::fs::write(&file, "from-file\n").unwrap();
        let environment = |name: &str| (name == PASSWORD_VARIABLE).then(|| "from-env".to_owned());
        assert_eq!(password(Some("from-url"), None, environment).unwrap().unwrap(), "from-url");
        assert_eq!(password(None, Some(&file), environment).unwrap().unwrap(), "from-file");
        assert_eq!(password(None, None, environment).unwrap().unwrap(), "from-env");
        assert!(
            password(Some("s3cret"), Some(&file), environment).is_err_and(|text| !text.contains("s3cret"))
        );
    }

    #[test]
    fn the_last_chunk_is_refused_when_another_was_changed() {
        let mut hasher = SnapshotHasher::default();
        for chunk in ["one", "two"] {
            hasher.update(chunk.as_bytes());
        }
        let at = Tail { slot: Slot(3), hash: Hash([1; 32]) };
        let info = SnapshotInfo { at, chunks: 2, hash: hasher.finish() };
        for (first, right) in [("one", true), ("forged", false)] {
            let mut check = ChunkCheck::default();
            assert_eq!(check.needs_from(&info, 1), 0);
            check.take(&Bytes::copy_from_slice(first.as_bytes())).unwrap();
            assert_eq!(check.needs_from(&info, 1), 1);
            assert_eq!(check.take(&Bytes::from_static(b"two")).is_ok(), right);
        }
    }
}
