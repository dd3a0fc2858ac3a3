//! Names given by people: resources, owners, tenants, keys, labels.
//!
//! A name is a shared text behind one word ([`ArcStr`]): a table of a million leases points at names twice for each.

use std::collections::BTreeMap;
use std::fmt;

use arcstr::ArcStr;

use crate::limits;

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    /// It has no characters.
    #[error("{what} is empty")]
    Empty {
        /// Which field.
        what: &'static str,
    },
    /// It is longer than allowed.
    #[error("{what} has {bytes} bytes, more than {most}")]
    TooLong {
        /// Which field.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The bound.
        most: usize,
    },
    /// It has a character that may not be in it.
    #[error("{what} contains a character that is not allowed: {found:?}")]
    Character {
        /// Which field.
        what: &'static str,
        /// The character.
        found: char,
    },
    /// It is `.` or `..`, which paths and proxies rewrite.
    #[error("{what} may not be `.` or `..`")]
    Dots {
        /// Which field.
        what: &'static str,
    },
    /// There are more labels than allowed.
    #[error("{found} labels, more than {most}")]
    TooManyLabels {
        /// How many.
        found: usize,
        /// The bound.
        most: usize,
    },
}

impl InvalidName {
    /// The same, said of the field that the text was given for: a name of one kind is often part of another.
    #[must_use]
    pub fn of(mut self, field: &'static str) -> Self {
        match &mut self {
            Self::Empty { what }
            | Self::TooLong { what, .. }
            | Self::Character { what, .. }
            | Self::Dots { what } => *what = field,
            Self::TooManyLabels { .. } => {}
        }
        self
    }
}

fn check(
    what: &'static str,
    text: &str,
    most: usize,
    allowed: impl Fn(char) -> bool,
) -> Result<(), InvalidName> {
    if text.is_empty() {
        return Err(InvalidName::Empty { what });
    }
    if text.len() > most {
        return Err(InvalidName::TooLong { what, bytes: text.len(), most });
    }
    // Nearly all text is ASCII, in which a byte is a character.
    if text.bytes().all(|byte| byte.is_ascii() && allowed(char::from(byte))) {
        return Ok(());
    }
    match text.chars().find(|&c| !allowed(c)) {
        Some(found) => Err(InvalidName::Character { what, found }),
        None => Ok(()),
    }
}

macro_rules! name {
    ($(#[$doc:meta])* $name:ident, $what:literal, $most:expr, $allowed:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(ArcStr);

        impl $name {
            /// Checks the text and makes a name of it.
            ///
            /// # Errors
            /// Says what is wrong with the text; the caller's mistake, never worth a retry.
            pub fn new(text: &str) -> Result<Self, InvalidName> {
                Self::check(text)?;
                Ok(Self(text.into()))
            }

            fn check(text: &str) -> Result<(), InvalidName> {
                check($what, text, $most, $allowed)
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl std::borrow::Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name! {
    /// The label of a holder, for people: `user@host:pid` by default.
    OwnerId, "ownerId", limits::OWNER_BYTES, |c| !c.is_control()
}
name! {
    /// A tenant: ASCII letters, digits, `-`, `_`, `.`.
    TenantName, "tenant", limits::TENANT_BYTES, |c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}
name! {
    /// Who a caller is, whichever of its credentials it shows: ASCII letters, digits and `-_.@:/`.
    PrincipalName, "principal", limits::PRINCIPAL_BYTES, |c| c.is_ascii_alphanumeric() || "-_.@:/".contains(c)
}
name! {
    /// The caller's key that makes a retry the same command: printable ASCII.
    RequestKey, "Idempotency-Key", limits::REQUEST_KEY_BYTES, |c| c.is_ascii_graphic() || c == ' '
}

impl TenantName {
    /// The tenant of an open server.
    pub fn default_tenant() -> Self {
        Self("default".into())
    }
}

/// The named thing being locked, without its tenant. Compared byte for byte; `/` and `:` are ordinary characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceName(ArcStr);

impl ResourceName {
    /// Checks the text and makes a name of it.
    ///
    /// # Errors
    /// Empty, too long, with a control character, or `.` or `..` as a whole.
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }

    fn check(text: &str) -> Result<(), InvalidName> {
        let what = "resource";
        check(what, text, limits::NAME_BYTES, |c| !c.is_control())?;
        if matches!(text, "." | "..") {
            return Err(InvalidName::Dots { what });
        }
        Ok(())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name up to its first `/` or `:`: what metrics and listings group by when no rule is declared.
    pub fn prefix(&self) -> &str {
        prefix_of(&self.0)
    }
}

/// See [`ResourceName::prefix`].
pub fn prefix_of(name: &str) -> &str {
    match name.bytes().position(|byte| matches!(byte, b'/' | b':')) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

/// Tenant and resource name as one text, `tenant NUL name`: half the memory of two, and one order in which every
/// tenant's resources stand together, by name. NUL cannot occur in either part.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceKey(ArcStr);

impl ResourceKey {
    /// The key of a tenant's resource.
    pub fn new(tenant: &TenantName, name: &ResourceName) -> Self {
        Self::joined(tenant, name.as_str())
    }

    /// The smallest key of a tenant that can begin with this text, for ranges; the text need not be a whole name.
    pub fn lower_bound(tenant: &TenantName, text: &str) -> Self {
        Self::joined(tenant, text)
    }

    /// Reads back what [`ResourceKey::as_str`] gave.
    pub fn parse(joined: &str) -> Option<Self> {
        let (tenant, name) = joined.split_once('\0')?;
        TenantName::check(tenant).ok()?;
        ResourceName::check(name).ok()?;
        Some(Self(joined.into()))
    }

    fn joined(tenant: &TenantName, text: &str) -> Self {
        let end = tenant.0.len();
        let joined = ArcStr::init_with(end + 1 + text.len(), |bytes| {
            bytes[..end].copy_from_slice(tenant.0.as_bytes());
            bytes[end + 1..].copy_from_slice(text.as_bytes());
        });
        Self(joined.expect("two texts with a NUL between them are a text"))
    }

    /// The tenant.
    pub fn tenant(&self) -> &str {
        self.parts().0
    }

    /// The resource name.
    pub fn name(&self) -> &str {
        self.parts().1
    }

    /// The resource name as a name of its own; it was checked when the key was made.
    pub fn to_name(&self) -> ResourceName {
        ResourceName(self.name().into())
    }

    /// Tenant, NUL, name: the form in journals.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tenant and name, for whoever needs both.
    pub fn parts(&self) -> (&str, &str) {
        // Asked many times for each command, and most servers have but one tenant: that is seen by a look at eight bytes.
        if let Some(name) = self.0.strip_prefix("default\0") {
            return (&self.0[..7], name);
        }
        let end = self.0.bytes().position(|byte| byte == 0).expect("a key is made with its separator");
        (&self.0[..end], &self.0[end + 1..])
    }
}

impl fmt::Debug for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (tenant, name) = self.parts();
        write!(f, "{tenant}|{name}")
    }
}

impl fmt::Display for ResourceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

/// Free-form labels of a lease or session, sorted by key.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Labels(BTreeMap<Box<str>, Box<str>>);

impl Labels {
    /// Checks and sorts labels.
    ///
    /// # Errors
    /// Too many, too long, an empty key, or a control character in a key.
    pub fn new<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, InvalidName> {
        let mut labels = BTreeMap::new();
        for (key, value) in pairs {
            let (key, value) = (key.as_ref(), value.as_ref());
            check("label key", key, limits::LABEL_BYTES, |c| !c.is_control())?;
            if !value.is_empty() {
                check("label value", value, limits::LABEL_BYTES, |c| c != '\0')?;
            }
            labels.insert(key.into(), value.into());
        }
        if labels.len() > limits::LABELS {
            return Err(InvalidName::TooManyLabels { found: labels.len(), most: limits::LABELS });
        }
        Ok(Self(labels))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Key and value pairs in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_are_bounded_utf8_without_control_characters() {
        assert!(ResourceName::new("billing/2026:close ü").is_ok());
        assert_eq!(ResourceName::new(""), Err(InvalidName::Empty { what: "resource" }));
        assert!(matches!(ResourceName::new("a\nb"), Err(InvalidName::Character { found: '\n', .. })));
        assert!(matches!(ResourceName::new(".."), Err(InvalidName::Dots { .. })));
        assert!(ResourceName::new(&"x".repeat(512)).is_ok());
        assert!(matches!(ResourceName::new(&"x".repeat(513)), Err(InvalidName::TooLong { bytes: 513, .. })));
    }

    #[test]
    fn what_is_wrong_is_said_of_the_field_that_it_was_given_for() {
        let said = |text| OwnerId::new(text).unwrap_err().of("--owner").to_string();
        assert_eq!(said(""), "--owner is empty");
        assert_eq!(said("a\tb"), "--owner contains a character that is not allowed: '\\t'");
    }

    #[test]
    fn a_prefix_ends_at_the_first_slash_or_colon() {
        let prefix = |text| ResourceName::new(text).unwrap().prefix().to_owned();
        assert_eq!(prefix("billing/close"), "billing");
        assert_eq!(prefix("cron:nightly/a"), "cron");
        assert_eq!(prefix("plain"), "plain");
        assert_eq!(prefix("/rooted"), "/rooted");
    }

    #[test]
    fn keys_keep_tenants_together_and_apart() {
        let tenant = TenantName::new("acme").unwrap();
        let key = ResourceKey::new(&tenant, &ResourceName::new("a/b").unwrap());
        assert_eq!((key.tenant(), key.name()), ("acme", "a/b"));
        assert_eq!(key.to_name().as_str(), "a/b");
        assert_eq!(key.as_str(), "acme\0a/b");
        assert_eq!(ResourceKey::parse(key.as_str()), Some(key));
        assert_eq!(ResourceKey::parse("no separator"), None);
        for tenant in [TenantName::default_tenant(), TenantName::new("default-2").unwrap()] {
            let key = ResourceKey::new(&tenant, &ResourceName::new("a").unwrap());
            assert_eq!(key.parts(), (tenant.as_str(), "a"));
        }
    }
}
