//! What journals on remote engines share: names, secrets, the check of what is read, and the bytes of a record.
//!
//! It has no engine. A journal crate uses it so that the same name is lawful everywhere, the same damage is noticed
//! everywhere, and every key-value engine holds the same bytes.

mod marks;
mod own_tail;
pub mod record;
mod snapshots;

pub use marks::{Marks, head_of, pointer_of};
pub use own_tail::{OwnTail, lost};
pub use snapshots::{Around, Draft, RemoteSnapshots, SnapshotStore};

use std::path::Path;

use bytes::Bytes;
use leasehold_types::Slot;

use crate::{
    Committed, Confirmation, OpenError, Outcome, ReadError, Reader, Slots, SnapshotHasher, SnapshotInfo,
    Tail, chain,
};

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

/// What a beat confirms (J7), where only a committed write does.
pub fn confirmed_by(beat: Outcome) -> Confirmation {
    match beat {
        Outcome::Committed => Confirmation::Current,
        Outcome::Fenced => Confirmation::Fenced,
        Outcome::Unknown(why) | Outcome::Failed(why) => Confirmation::Unknown(why),
        Outcome::Conflict(_) => Confirmation::Unknown("the beat was refused".to_owned()),
    }
}

/// What becomes of a body over the limit (J10), which is never sent: refused, and to a replaced writer that it is one.
pub fn too_large(confirmation: &Confirmation) -> Outcome {
    match confirmation {
        Confirmation::Fenced => Outcome::Fenced,
        Confirmation::Current | Confirmation::Unknown(_) => Outcome::Conflict(None),
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

/// What of these slots follows each other from `from` on, each being what its hash says (J9, J12).
///
/// # Errors
/// The first one already is missing or damaged. A damaged one further on ends what is found: it is named when it is
/// asked for.
pub fn whole_prefix(from: Slot, mut found: Vec<Committed>) -> Result<Vec<Committed>, ReadError> {
    let mut wanted = (from, None);
    for index in 0..found.len() {
        let committed = &found[index];
        let (slot, before) = wanted;
        let detail = if committed.batch.slot != slot {
            "it is before the tail but cannot be read"
        } else if before.is_some_and(|hash| hash != committed.batch.prev_hash)
            || committed.hash != chain(&committed.batch, committed.epoch)
        {
            "it is not what its hash says"
        } else {
            wanted = (slot.next(), Some(committed.hash));
            continue;
        };
        if index == 0 {
            return Err(damaged_slot(slot, detail));
        }
        found.truncate(index);
        break;
    }
    Ok(found)
}

/// Whether the last slot is the one that the head names, when it was not compacted away (J12).
///
/// # Errors
/// It is not, or it cannot be read.
pub async fn check_tail(reader: &mut dyn Reader, tail: Tail) -> Result<(), OpenError> {
    if tail.slot == Slot(0) {
        return Ok(());
    }
    match reader.slots(tail.slot).await.map_err(open_error)? {
        Slots::Compacted { .. } => Ok(()),
        Slots::Found(found) if found.first().is_some_and(|last| last.hash == tail.hash) => Ok(()),
        Slots::Found(_) => Err(open_error(damaged_slot(tail.slot, "it is not the one that the head names"))),
    }
}

/// For `recover`: the last slot up to which everything from the snapshot on is whole, and why not further; `None` if
/// all is whole.
///
/// # Errors
/// The engine does not answer.
pub async fn last_whole(reader: &mut dyn Reader, tail: Tail) -> Result<Option<(Tail, String)>, OpenError> {
    let snapshot = reader.snapshot().await.map_err(open_error)?;
    let mut whole = snapshot.map_or(Tail::default(), |info| info.at);
    while whole.slot < tail.slot {
        let next = whole.slot.next();
        let found = match reader.slots(next).await {
            Ok(Slots::Found(found)) => found,
            Ok(Slots::Compacted { .. }) => {
                return Ok(Some((whole, format!("slot {next} was compacted away"))));
            }
            Err(ReadError::Corrupt { place, detail }) => {
                return Ok(Some((whole, format!("{place}: {detail}"))));
            }
            Err(other) => return Err(open_error(other)),
        };
        if found.first().is_none_or(|first| first.batch.prev_hash != whole.hash) {
            return Ok(Some((whole, format!("slot {next} does not follow the chain"))));
        }
        whole = found.last().map_or(whole, |last| Tail { slot: last.batch.slot, hash: last.hash });
    }
    let other_hash = || (whole, "the last slot is not the one that the head names".to_owned());
    Ok((whole != tail).then(other_hash))
}

/// What reading says, as a reason not to open.
pub fn open_error(error: ReadError) -> OpenError {
    match error {
        ReadError::Corrupt { place, detail } => OpenError::Corrupt { place, detail },
        other => OpenError::Unavailable(other.to_string()),
    }
}

/// The next slots of a journal that is being copied, after `tail` and up to its end.
///
/// # Errors
/// They cannot be read, or were compacted away meanwhile.
pub async fn next_slots(from: &mut dyn Reader, tail: Tail) -> Result<Vec<Committed>, ReadError> {
    let next = tail.slot.next();
    match from.slots(next).await? {
        Slots::Found(found) if found.is_empty() => {
            Err(damaged_slot(next, "it is before the tail but cannot be read"))
        }
        Slots::Found(found) => Ok(found),
        Slots::Compacted { .. } => Err(ReadError::Replaced),
    }
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
    use crate::Hash;

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
