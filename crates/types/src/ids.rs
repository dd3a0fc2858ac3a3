//! Ids and counters: [`LeaseId`], [`SessionId`], [`ClusterId`], [`Epoch`], [`Slot`], [`Generation`].

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// The id with these bytes.
            pub const fn from_bytes(bytes: [u8; 16]) -> Self {
                Self(Uuid::from_bytes(bytes))
            }

            /// The bytes of the id.
            pub const fn as_bytes(&self) -> &[u8; 16] {
                self.0.as_bytes()
            }

            /// Whether this is a random (version 4) UUID, as an id chosen by a caller must be.
            pub fn is_random(&self) -> bool {
                self.0.get_version_num() == 4
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;

            /// Accepts the hyphenated form alone, as the service writes it.
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                if text.len() != 36 {
                    return Err(InvalidId);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| InvalidId)
            }
        }
    };
}

uuid_id! {
    /// Names one grant of one resource. It is a capability: whoever has it may renew and release.
    LeaseId
}
uuid_id! {
    /// Names a session: one liveness scope with many leases.
    SessionId
}
uuid_id! {
    /// Names a journal and everything ever granted from it.
    ClusterId
}
uuid_id! {
    /// Chosen afresh by a node whenever it takes a journal over, so that two nodes that both believe in the same
    /// epoch still differ.
    Nonce
}

impl LeaseId {
    /// The first eight hexadecimal digits, for logs: enough to find the lease, too little to release it.
    pub fn short(&self) -> String {
        let [a, b, c, d, ..] = self.0.as_bytes();
        format!("{a:02x}{b:02x}{c:02x}{d:02x}")
    }
}

/// The text is not a hyphenated UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a UUID of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")]
pub struct InvalidId;

/// Sixteen random bytes in the form of a version 4 UUID; the one place where ids are drawn.
///
/// Each is asked of the system: ids kept ahead would be the same in both halves of a process that forks, and in every copy
/// of a machine that is made from one image of it; and two callers with one lease id are one holder to the service.
#[expect(clippy::disallowed_methods, reason = "this is the replacement that the ban names")]
pub fn random() -> [u8; 16] {
    Uuid::new_v4().into_bytes()
}

macro_rules! counter {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

counter! {
    /// Which node may append; a newer epoch shuts out older ones. The first is 1.
    Epoch
}
counter! {
    /// The place of one committed batch of facts. The first is 1; 0 stands for "nothing yet" in tails.
    Slot
}
counter! {
    /// The life of a journal between two lossy recoveries.
    Generation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_they_are_written() {
        let id = LeaseId::from_bytes(random());
        assert!(id.is_random());
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(id.short(), id.to_string()[..8]);
    }

    #[test]
    fn only_the_hyphenated_form_is_an_id() {
        for text in ["", "x", "67e5504410b1426f9247bb680e5fe0c8", "{67e55044-10b1-426f-9247-bb680e5fe0c8}"] {
            assert_eq!(text.parse::<LeaseId>(), Err(InvalidId), "{text}");
        }
    }
}
