//! What a credential is called and what it is limited to.

use std::fmt;
use std::str::FromStr;

use crate::{Verb, limits};

/// Names a credential; no secret. It is part of the credential itself, so that one lookup finds what to compare with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CredentialId([u8; 8]);

/// A text is not the id of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the id of a credential: 16 hexadecimal digits")]
pub struct InvalidCredentialId;

impl CredentialId {
    /// The id with these bytes.
    pub const fn from_bytes(bytes: [u8; 8]) -> Self {
        Self(bytes)
    }

    /// The bytes of the id.
    pub const fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl fmt::Display for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CredentialId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CredentialId({self})")
    }
}

impl FromStr for CredentialId {
    type Err = InvalidCredentialId;

    /// Accepts lower case alone, as the service writes it.
    fn from_str(text: &str) -> Result<Self, InvalidCredentialId> {
        let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 16 || !text.bytes().all(is_hex) {
            return Err(InvalidCredentialId);
        }
        let number = u64::from_str_radix(text, 16).map_err(|_| InvalidCredentialId)?;
        Ok(Self(number.to_be_bytes()))
    }
}

/// Names that begin with a prefix, and what may be done with them. Written `orders/` for everything that the role may
/// do, or `acquire,read:orders/`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Scope {
    /// In the order of [`Verb::ALL`], each once; empty: every verb that the role has.
    verbs: Vec<Verb>,
    prefix: Box<str>,
}

/// A text is not a scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidScope {
    /// The prefix is longer than any name, or has a character that no name has.
    #[error("the prefix of a scope is the beginning of a resource name")]
    Prefix,
    /// A verb that there is not.
    #[error("`{0}` is none of acquire, read, inspect, operate")]
    Verb(String),
}

impl Scope {
    /// These verbs on names that begin with this; no verbs: every one that the role has.
    ///
    /// # Errors
    /// See [`InvalidScope`].
    pub fn new(verbs: &[Verb], prefix: &str) -> Result<Self, InvalidScope> {
        if prefix.len() > limits::NAME_BYTES || prefix.chars().any(char::is_control) {
            return Err(InvalidScope::Prefix);
        }
        // Credentials are not about names.
        if verbs.contains(&Verb::Administer) {
            return Err(InvalidScope::Verb(Verb::Administer.as_str().to_owned()));
        }
        let verbs = Verb::ALL.iter().copied().filter(|verb| verbs.contains(verb)).collect();
        Ok(Self { verbs, prefix: prefix.into() })
    }

    /// What may be done; empty: every verb that the role has.
    pub fn verbs(&self) -> &[Verb] {
        &self.verbs
    }

    /// How the names begin.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether it allows this on every name that begins with `prefix`.
    pub fn covers(&self, verb: Verb, prefix: &str) -> bool {
        (self.verbs.is_empty() || self.verbs.contains(&verb)) && prefix.starts_with(&*self.prefix)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs: Vec<_> = self.verbs.iter().map(|verb| verb.as_str()).collect();
        // A prefix that itself has a colon is told apart from verbs by the list before it.
        match verbs.is_empty() && !self.prefix.contains(':') {
            true => f.write_str(&self.prefix),
            false if verbs.is_empty() => write!(f, "*:{}", self.prefix),
            false => write!(f, "{}:{}", verbs.join(","), self.prefix),
        }
    }
}

impl FromStr for Scope {
    type Err = InvalidScope;

    fn from_str(text: &str) -> Result<Self, InvalidScope> {
        let Some((verbs, prefix)) = text.split_once(':') else { return Self::new(&[], text) };
        if verbs == "*" {
            return Self::new(&[], prefix);
        }
        let parse = |word: &str| Verb::parse(word).ok_or_else(|| InvalidScope::Verb(word.to_owned()));
        let verbs = verbs.split(',').map(parse).collect::<Result<Vec<_>, _>>()?;
        Self::new(&verbs, prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Role;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = CredentialId::from_bytes([0, 1, 2, 3, 4, 5, 6, 0xfe]);
        assert_eq!(id.to_string(), "00010203040506fe");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in ["", "00010203040506FE", "+0010203040506fe", "00010203040506fe0"] {
            assert!(text.parse::<CredentialId>().is_err(), "{text}");
        }
    }

    #[test]
    fn scopes_are_read_as_they_are_written() {
        for (text, written) in [
            ("orders/", "orders/"),
            ("", ""),
            ("read,acquire:orders/", "acquire,read:orders/"),
            ("*:a:b", "*:a:b"),
            ("read:a:b", "read:a:b"),
        ] {
            let scope: Scope = text.parse().unwrap();
            assert_eq!(scope.to_string(), written);
            assert_eq!(written.parse::<Scope>().unwrap(), scope);
        }
        assert!("orders:x".parse::<Scope>().is_err());
        assert!("administer:".parse::<Scope>().is_err());
    }

    #[test]
    fn a_scope_covers_its_verbs_below_its_prefix() {
        let scope: Scope = "read:orders/".parse().unwrap();
        assert!(scope.covers(Verb::Read, "orders/") && scope.covers(Verb::Read, "orders/1"));
        assert!(!scope.covers(Verb::Read, "orders") && !scope.covers(Verb::Acquire, "orders/1"));
    }

    #[test]
    fn roles_grow_but_for_the_observer_who_takes_nothing() {
        for verb in Verb::ALL {
            assert!(Role::Admin.may(*verb));
            assert!(!Role::Client.may(*verb) || Role::Operator.may(*verb));
            assert!(!Role::Observer.may(*verb) || Role::Operator.may(*verb));
        }
        assert!(!Role::Observer.may(Verb::Acquire) && !Role::Operator.may(Verb::Administer));
    }
}
