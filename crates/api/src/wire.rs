//! How words, names, ids and numbers of the vocabulary are written in JSON. Used with `#[serde(with = "…")]`, so that
//! the vocabulary itself need not know serde.

use std::fmt;
use std::marker::PhantomData;

use leasehold_types::{
    Class, CredentialId, Durability, EndReason, FencingToken, Guarantee, Mode, OwnerId, Permit,
    PrincipalName, ResourceName, Role, Scope, TenantName,
};
use leasehold_types::{ClusterId, LeaseId, SessionId, limits};
use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};
use serde::ser::Serializer;

/// Something that is a string in JSON.
pub(crate) trait Text: Sized {
    /// What a reader is told that it should have been.
    const EXPECTED: &'static str;
    /// Reads it, or says what is wrong.
    fn read(text: &str) -> Result<Self, String>;
    /// Writes it.
    fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

macro_rules! words {
    ($($name:ident),+) => {$(
        impl Text for $name {
            const EXPECTED: &'static str = concat!("a word for ", stringify!($name));
            fn read(text: &str) -> Result<Self, String> {
                Self::parse(text).ok_or_else(|| {
                    let words: Vec<_> = Self::ALL.iter().map(|word| word.as_str()).collect();
                    format!("`{}` is not one of {}", text.escape_debug(), words.join(", "))
                })
            }
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}
words!(Class, Durability, EndReason, Guarantee, Mode, Role);

macro_rules! names {
    ($($name:ident),+) => {$(
        impl Text for $name {
            const EXPECTED: &'static str = "a string";
            fn read(text: &str) -> Result<Self, String> {
                Self::new(text).map_err(|invalid| invalid.to_string())
            }
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    )+};
}
names!(OwnerId, PrincipalName, ResourceName, TenantName);

macro_rules! parsed {
    ($($name:ident = $expected:literal),+) => {$(
        impl Text for $name {
            const EXPECTED: &'static str = $expected;
            fn read(text: &str) -> Result<Self, String> {
                text.parse::<Self>().map_err(|invalid| invalid.to_string())
            }
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}
parsed!(CredentialId = "the id of a credential", Scope = "a scope");

macro_rules! ids {
    ($($name:ident),+) => {$(
        impl Text for $name {
            const EXPECTED: &'static str = "a UUID";
            fn read(text: &str) -> Result<Self, String> {
                text.parse().map_err(|invalid: leasehold_types::ids::InvalidId| invalid.to_string())
            }
            fn write<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
    )+};
}
ids!(ClusterId, LeaseId, SessionId);

struct TextVisitor<T>(PhantomData<T>);

impl<T: Text> Visitor<'_> for TextVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        T::read(text).map_err(E::custom)
    }
}

/// A [`Text`].
pub(crate) mod text {
    use super::*;

    pub(crate) fn serialize<T: Text, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
        value.write(serializer)
    }

    pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(TextVisitor(PhantomData))
    }
}

/// A [`Text`] that may be left out; `null` is refused.
pub(crate) mod text_option {
    use super::*;

    pub(crate) fn serialize<T: Text, S: Serializer>(
        value: &Option<T>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => value.write(serializer),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<T>, D::Error> {
        super::text::deserialize(deserializer).map(Some)
    }
}

/// A list of [`Text`].
pub(crate) mod text_list {
    use serde::ser::SerializeSeq;

    use super::*;

    struct Item<T>(T);

    impl<'de, T: Text> Deserialize<'de> for Item<T> {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            super::text::deserialize(deserializer).map(Self)
        }
    }

    struct Written<'a, T>(&'a T);

    impl<T: Text> serde::Serialize for Written<'_, T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.write(serializer)
        }
    }

    pub(crate) fn serialize<T: Text, S: Serializer>(values: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(values.len()))?;
        values.iter().try_for_each(|value| list.serialize_element(&Written(value)))?;
        list.end()
    }

    pub(crate) fn deserialize<'de, T: Text, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<T>, D::Error> {
        Ok(Vec::<Item<T>>::deserialize(deserializer)?.into_iter().map(|item| item.0).collect())
    }
}

/// Something that is a whole number in JSON.
pub(crate) trait Number: Sized {
    /// Reads it, or says what is wrong.
    fn read(number: u64) -> Result<Self, String>;
    /// The number.
    fn number(&self) -> u64;
}

impl Number for FencingToken {
    fn read(number: u64) -> Result<Self, String> {
        Self::new(number).map_err(|invalid| invalid.to_string())
    }
    fn number(&self) -> u64 {
        self.get()
    }
}

impl Number for Permit {
    fn read(number: u64) -> Result<Self, String> {
        u32::try_from(number).map(Permit).map_err(|_| format!("{number} is too large for a permit"))
    }
    fn number(&self) -> u64 {
        self.0.into()
    }
}

/// A [`Number`].
pub(crate) mod number {
    use super::*;

    pub(crate) fn serialize<N: Number, S: Serializer>(value: &N, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(value.number())
    }

    pub(crate) fn deserialize<'de, N: Number, D: Deserializer<'de>>(deserializer: D) -> Result<N, D::Error> {
        N::read(deserializer.deserialize_u64(WholeVisitor)?).map_err(D::Error::custom)
    }
}

/// A [`Number`] that may be left out; `null` is refused.
pub(crate) mod number_option {
    use super::*;

    pub(crate) fn serialize<N: Number, S: Serializer>(
        value: &Option<N>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match value {
            Some(value) => serializer.serialize_u64(value.number()),
            None => serializer.serialize_none(),
        }
    }

    pub(crate) fn deserialize<'de, N: Number, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<N>, D::Error> {
        super::number::deserialize(deserializer).map(Some)
    }
}

/// A [`Number`] that is always there and may be `null`, as in some answers.
pub(crate) mod number_or_null {
    use super::*;

    pub(crate) use super::number_option::serialize;

    pub(crate) fn deserialize<'de, N: Number, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<N>, D::Error> {
        let number = Option::<u64>::deserialize(deserializer)?;
        number.map(N::read).transpose().map_err(D::Error::custom)
    }
}

/// Any whole number that is not negative; `15e3` and `15000.0` are whole too, as JSON Schema has it.
struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number that is not negative")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u64, E> {
        Ok(number)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u64, E> {
        u64::try_from(number).map_err(|_| E::invalid_value(Unexpected::Signed(number), &self))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<u64, E> {
        // Up to here every whole number has exactly one float.
        let exact = 0.0..=limits::TOKEN_MAX as f64;
        if number.fract() == 0.0 && exact.contains(&number) {
            return Ok(number as u64);
        }
        Err(E::invalid_value(Unexpected::Float(number), &self))
    }
}

/// Reads an optional whole number of a request that is there.
pub(crate) fn whole<'de, T: TryFrom<u64>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    let number = deserializer.deserialize_u64(WholeVisitor)?;
    let too_large = |_| D::Error::custom(format!("{number} is too large"));
    T::try_from(number).map(Some).map_err(too_large)
}

/// Reads an optional field of a request that is there: then it has a value, and `null` is none.
pub(crate) fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

macro_rules! constant {
    ($(#[$doc:meta])* $name:ident, $value:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
        pub struct $name;

        impl serde::Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bool($value)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match bool::deserialize(deserializer)? {
                    $value => Ok(Self),
                    other => Err(D::Error::invalid_value(Unexpected::Bool(other), &stringify!($value))),
                }
            }
        }
    };
}

constant! {
    /// Always `true` on the wire: `acquired`, `renewed`, `released`.
    Yes, true
}
constant! {
    /// Always `false` on the wire: `acquired` of a refusal.
    No, false
}
