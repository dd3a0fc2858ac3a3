//! What journals on remote engines share: names, secrets, claims, copies, the check of what is read, the bytes of a record.
//!
//! It has no engine. A journal crate uses it so that the same name is lawful everywhere, the same damage is noticed
//! everywhere, and every key-value engine holds the same bytes.

mod chunks;
pub mod claim;
mod damage;
mod fill;
mod marks;
mod own_tail;
pub mod record;
mod snapshots;
#[cfg(feature = "tls")]
pub mod tls;

pub use chunks::{ChunkCheck, StoredChunks, missing_chunk};
pub use damage::{Damage, find_damage};
pub use fill::{Filling, fill, filled_by_another, not_empty};
pub use marks::{Marks, head_of, pointer_of};
pub use own_tail::{OwnTail, lost};
pub use snapshots::{Around, Draft, RemoteSnapshots, SnapshotStore};

use std::path::Path;

use leasehold_types::Slot;

use crate::{Chained, Confirmation, Outcome, ReadError, SnapshotInfo};

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

/// An error with its causes, from the outside in. Libraries often say the same of two layers; it is said once here.
pub fn in_words(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let cause = inner.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
        source = inner.source();
    }
    text
}

/// Whether this error, in words, is that one of the two ends does not trust the other's certificate. The words are rustls's, by
/// which every engine is spoken to; those of the drivers hide the error itself.
pub fn is_of_certificates(words: &str) -> bool {
    let alerts =
        ["CertificateRequired", "BadCertificate", "UnknownCA", "CertificateUnknown", "CertificateExpired"];
    words.contains("invalid peer certificate")
        || alerts.iter().any(|alert| words.contains(&format!("received fatal alert: {alert}")))
}

/// What a beat confirms (J7), where only a committed write does.
pub fn confirmed_by(beat: Outcome) -> Confirmation {
    match beat {
        Outcome::Committed => Confirmation::Current,
        Outcome::Fenced => Confirmation::Fenced,
        Outcome::Unknown(why) | Outcome::Failed(why) | Outcome::Regressed(why) => Confirmation::Unknown(why),
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

/// Said of a slot that must be there.
const UNREADABLE: &str = "it is before the tail, but missing, cut short, or not what its hash says";

/// What of these slots follows each other from `from` on (J9, J12). What is behind one that cannot be read is not among them.
///
/// # Errors
/// The first one already is missing or damaged. A damaged one further on ends what is found: it is named when it is
/// asked for.
pub fn whole_prefix(from: Slot, mut found: Vec<Chained>) -> Result<Vec<Chained>, ReadError> {
    if found.is_empty() {
        return Err(damaged_slot(from, UNREADABLE));
    }
    let mut wanted = (from, None);
    for index in 0..found.len() {
        let committed = &found[index];
        let (slot, before) = wanted;
        let detail = if committed.slot != slot {
            UNREADABLE
        } else if before.is_some_and(|hash| hash != committed.prev_hash) {
            "it does not follow the chain"
        } else {
            wanted = (slot.next(), Some(committed.hash()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_and_plain() {
        assert_eq!(check_name("main-2.eu_west"), Ok(()));
        for name in ["", "Main", "a b", "a/b", ".", "..", &"x".repeat(49)] {
            assert!(check_name(name).is_err(), "{name}");
        }
    }

    #[test]
    fn what_two_layers_say_is_said_once() {
        #[derive(Debug, thiserror::Error)]
        #[error("{0}")]
        struct Layer(&'static str, #[source] Option<Box<Layer>>);
        let refused = Layer("connection refused", None);
        let layers = Layer("connect error", Some(Box::new(Layer("connect error", Some(Box::new(refused))))));
        assert_eq!(in_words(&layers), "connect error: connection refused");
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
}
