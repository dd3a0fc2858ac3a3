//! Keys, by id.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use leasehold_types::{Generation, TenantName};

use super::{Refusal, Signed};

const VERSION: &str = "lh1";
/// The longest payload there can be, with room to spare; longer input is not looked at.
const MOST_BYTES: usize = 2_048;

/// The name of a key: 1 to 16 letters, digits or `-`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KeyId(String);

/// The text cannot be the name of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a key id has 1 to 16 letters, digits or `-`")]
pub struct InvalidKeyId;

impl KeyId {
    /// Checks the text.
    ///
    /// # Errors
    /// It is empty, too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, InvalidKeyId> {
        let fits = (1..=16).contains(&text.len());
        let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if fits && plain { Ok(Self(text.to_owned())) } else { Err(InvalidKeyId) }
    }
}

/// 256 random bits, shared by the service and its fences. Never printed.
#[derive(Clone)]
pub struct Key([u8; 32]);

impl Key {
    /// A key of these bytes, which someone drew at random.
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// The keys that are known. One of them signs; all of them are good for checking, so that a new key can be handed out
/// before it signs, and an old one be kept until its last tokens are gone.
#[derive(Debug, Clone)]
pub struct Keyring {
    keys: BTreeMap<KeyId, Key>,
    signing: KeyId,
}

impl Keyring {
    /// A ring with one key, which signs.
    pub fn new(id: KeyId, key: Key) -> Self {
        Self { keys: BTreeMap::from([(id.clone(), key)]), signing: id }
    }

    /// Adds a key, or replaces the one of this id; it checks, and does not sign yet.
    pub fn add(&mut self, id: KeyId, key: Key) {
        self.keys.insert(id, key);
    }

    pub(super) fn knows(&self, id: &KeyId) -> bool {
        self.keys.contains_key(id)
    }

    /// Lets this key sign from now on. Whether it is known.
    pub fn sign_with(&mut self, id: &KeyId) -> bool {
        let known = self.knows(id);
        if known {
            self.signing = id.clone();
        }
        known
    }

    /// Forgets a key: what it signed is refused. Whether it went; the signing key stays.
    pub fn remove(&mut self, id: &KeyId) -> bool {
        *id != self.signing && self.keys.remove(id).is_some()
    }

    /// Signs a grant.
    pub fn sign(&self, signed: &Signed) -> String {
        let head = format!("{VERSION}.{}.{}", self.signing.0, URL_SAFE_NO_PAD.encode(signed.encode()));
        let mac = blake3::keyed_hash(&self.keys[&self.signing].0, head.as_bytes());
        format!("{head}.{}", URL_SAFE_NO_PAD.encode(mac.as_bytes()))
    }

    /// What was signed, if it was signed with a known key, for this tenant, in this generation or a later one.
    ///
    /// # Errors
    /// Says which of these is not so.
    pub fn check(&self, text: &str, tenant: &TenantName, least: Generation) -> Result<Signed, Refusal> {
        if text.len() > MOST_BYTES {
            return Err(Refusal::Malformed);
        }
        let (head, mac) = text.rsplit_once('.').ok_or(Refusal::Malformed)?;
        let mut parts = head.split('.');
        let (Some(VERSION), Some(id), Some(payload), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Refusal::Malformed);
        };
        let id = KeyId::new(id).map_err(|_| Refusal::Malformed)?;
        let key = self.keys.get(&id).ok_or(Refusal::UnknownKey)?;
        let mac: [u8; 32] = decode(mac).and_then(|mac| mac.try_into().ok()).ok_or(Refusal::Malformed)?;
        // Comparing a hash with a hash takes the same time whatever they are.
        if blake3::keyed_hash(&key.0, head.as_bytes()) != blake3::Hash::from_bytes(mac) {
            return Err(Refusal::Forged);
        }
        let payload = decode(payload).and_then(|payload| String::from_utf8(payload).ok());
        let signed = payload.and_then(|payload| Signed::decode(&payload)).ok_or(Refusal::Malformed)?;
        admit(signed, tenant, least)
    }
}

fn admit(signed: Signed, tenant: &TenantName, least: Generation) -> Result<Signed, Refusal> {
    if signed.tenant != *tenant {
        return Err(Refusal::Foreign(signed.tenant));
    }
    if signed.generation < least {
        return Err(Refusal::OldGeneration { presented: signed.generation, least });
    }
    Ok(signed)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use leasehold_types::{FencingToken, Permit, ResourceName};

    use super::*;
    use crate::{Grant, Kind};

    fn signed(tenant: &str, kind: Kind) -> Signed {
        let grant = Grant::new(ResourceName::new("books/ü").unwrap(), FencingToken::new(34).unwrap(), kind);
        Signed { tenant: TenantName::new(tenant).unwrap(), generation: Generation(2), grant }
    }

    fn id(text: &str) -> KeyId {
        KeyId::new(text).unwrap()
    }

    fn ring() -> Keyring {
        Keyring::new(id("a"), Key::new([7; 32]))
    }

    fn check(ring: &Keyring, text: &str) -> Result<Signed, Refusal> {
        ring.check(text, &TenantName::new("acme").unwrap(), Generation(2))
    }

    #[test]
    fn what_was_signed_is_read_back() {
        for kind in [Kind::Exclusive, Kind::Shared, Kind::Permit(Permit(3))] {
            let signed = signed("acme", kind);
            assert_eq!(check(&ring(), &ring().sign(&signed)), Ok(signed));
        }
    }

    #[test]
    fn no_changed_character_gets_through() {
        let text = ring().sign(&signed("acme", Kind::Exclusive));
        for at in 0..text.len() {
            for other in ["A", "b", ".", "-"] {
                let mut changed = text.clone();
                changed.replace_range(at..=at, other);
                assert!(changed == text || check(&ring(), &changed).is_err(), "{changed}");
            }
        }
        assert_eq!(check(&ring(), ""), Err(Refusal::Malformed));
        assert_eq!(check(&ring(), &"x".repeat(5_000)), Err(Refusal::Malformed));
        let other = Keyring::new(id("a"), Key::new([8; 32]));
        assert_eq!(check(&other, &text), Err(Refusal::Forged));
    }

    #[test]
    fn foreign_and_old_tokens_are_refused() {
        let text = ring().sign(&signed("other", Kind::Exclusive));
        assert_eq!(check(&ring(), &text), Err(Refusal::Foreign(TenantName::new("other").unwrap())));
        let text = ring().sign(&signed("acme", Kind::Exclusive));
        let later = ring().check(&text, &TenantName::new("acme").unwrap(), Generation(3));
        assert_eq!(later, Err(Refusal::OldGeneration { presented: Generation(2), least: Generation(3) }));
    }

    #[test]
    fn keys_rotate_without_a_gap() {
        let (mut ring, grant) = (ring(), signed("acme", Kind::Exclusive));
        let old = ring.sign(&grant);
        ring.add(id("b"), Key::new([9; 32]));
        assert!(ring.sign_with(&id("b")) && !ring.sign_with(&id("c")));
        let new = ring.sign(&grant);
        assert!(check(&ring, &old).is_ok() && check(&ring, &new).is_ok());
        assert!(ring.remove(&id("a")) && !ring.remove(&id("b")));
        assert_eq!(check(&ring, &old), Err(Refusal::UnknownKey));
        assert!(check(&ring, &new).is_ok());
        assert!(!format!("{ring:?}").contains('9'), "keys are not printed");
    }
}
