//! The secret that a caller shows: `lh_`, the credential's id, `_`, 256 random bits.
//!
//! The prefix lets scanners find one that was left lying about. The id says which hash to compare with, and is no secret.

use std::fmt;

use leasehold_types::CredentialId;
use leasehold_types::ids::random;

const PREFIX: &str = "lh_";
/// 32 bytes in hexadecimal.
const SECRET_CHARS: usize = 64;

/// A bearer secret as it is written. Nothing shows it but [`Bearer::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Bearer {
    id: CredentialId,
    text: String,
}

impl Bearer {
    /// A new one, from the operating system's randomness.
    pub(crate) fn new(id: CredentialId) -> Self {
        let secret: String = [random(), random()].concat().iter().map(|byte| format!("{byte:02x}")).collect();
        Self { id, text: format!("{PREFIX}{id}_{secret}") }
    }

    /// An id that nobody has.
    pub(crate) fn new_id() -> CredentialId {
        let [a, b, c, d, e, f, g, h, ..] = random();
        CredentialId::from_bytes([a, b, c, d, e, f, g, h])
    }

    /// Reads one as a caller shows it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(PREFIX)?.split_once('_')?;
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let lawful = secret.len() == SECRET_CHARS && secret.bytes().all(is_hex);
        let id = id.parse().ok().filter(|_| lawful)?;
        Some(Self { id, text: text.to_owned() })
    }

    /// Which credential it claims to be.
    pub(crate) fn id(&self) -> CredentialId {
        self.id
    }

    /// What is kept of it. The secret has 256 random bits, so that nobody can find it from a fast hash.
    pub(crate) fn hash(&self) -> [u8; 32] {
        *blake3::hash(self.text.as_bytes()).as_bytes()
    }

    /// Whether this is the secret with that hash. Takes the same time whatever the difference.
    pub(crate) fn matches(&self, hash: &[u8; 32]) -> bool {
        // The comparison of `blake3::Hash` is in constant time.
        blake3::hash(self.text.as_bytes()) == blake3::Hash::from_bytes(*hash)
    }

    /// The secret itself, to be shown once.
    pub(crate) fn reveal(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bearer({}, hidden)", self.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_as_it_is_written_and_known_by_its_hash() {
        let bearer = Bearer::new(Bearer::new_id());
        let shown = Bearer::parse(bearer.reveal()).unwrap();
        assert_eq!(shown, bearer);
        assert!(shown.matches(&bearer.hash()));
        assert!(!Bearer::new(bearer.id()).matches(&bearer.hash()), "another secret under the same id");
        assert!(!format!("{bearer:?}").contains(&bearer.reveal()[20..]));
        assert_eq!(bearer.reveal().len(), 3 + 16 + 1 + SECRET_CHARS);
    }

    #[test]
    fn other_texts_are_no_secrets() {
        let good = Bearer::new(Bearer::new_id()).reveal().to_owned();
        let spoilt = [
            good.to_uppercase(),
            good[1..].to_owned(),
            format!("{good}0"),
            good.replace('_', "-"),
            good[..good.len() - 1].to_owned(),
            String::new(),
            "lh_".to_owned(),
        ];
        for text in spoilt {
            assert!(Bearer::parse(&text).is_none(), "{text}");
        }
    }
}
