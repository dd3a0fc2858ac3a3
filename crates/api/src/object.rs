//! A JSON object, and nothing else. A type whose `Deserialize` is derived is also read from an array, field by field in
//! the order in which they are declared: an accident of the format that nobody should come to rely on.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A `T` that is written as an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Object<T>(pub T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData)).map(Self)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A list of objects, for a field of a request.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(deserializer)?;
    Ok(objects.into_iter().map(|Object(item)| item).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AcquireRequest, FenceReportRequest, RenewSessionRequest};

    #[test]
    fn an_array_is_no_object_whatever_is_in_it() {
        let refused = |text: &str| serde_json::from_str::<Object<RenewSessionRequest>>(text).is_err();
        assert!(refused("[]") && refused("[1000]") && refused("null") && refused("1") && !refused("{}"));
        let error = serde_json::from_str::<Object<AcquireRequest>>(r#"["a"]"#).unwrap_err();
        assert!(error.to_string().contains("expected an object"), "{error}");
    }

    #[test]
    fn what_is_inside_is_read_as_strictly() {
        let read = |text: &str| serde_json::from_str::<Object<RenewSessionRequest>>(text);
        assert_eq!(read(r#"{"ttlMs":1000}"#).unwrap().0.ttl_ms, Some(1_000));
        assert!(read(r#"{"ttl":1000}"#).is_err() && read(r#"{"ttlMs":1,"ttlMs":2}"#).is_err());
    }

    #[test]
    fn a_list_of_objects_has_no_arrays_in_it() {
        let read = |rejection: &str| {
            let text = format!(r#"{{"prefix":"","enforces":true,"rejections":[{rejection}]}}"#);
            serde_json::from_str::<FenceReportRequest>(&text)
        };
        let rejection = r#"{"resource":"r","fencingToken":1,"highestToken":2}"#;
        assert_eq!(read(rejection).unwrap().rejections.len(), 1);
        assert!(read(r#"["r",1,2]"#).is_err());
    }
}
