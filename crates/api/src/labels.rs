//! Labels on the wire: one JSON object of strings.

use std::fmt;

use leasehold_types::Labels;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::ser::Serializer;

struct LabelsVisitor;

impl<'de> Visitor<'de> for LabelsVisitor {
    type Value = Labels;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Labels, A::Error> {
        let mut pairs: Vec<(String, String)> = Vec::new();
        while let Some((key, value)) = map.next_entry::<String, String>()? {
            if pairs.iter().any(|(seen, _)| *seen == key) {
                return Err(A::Error::custom(format!("duplicate label `{}`", key.escape_debug())));
            }
            // Refused while reading, so that looking for duplicates stays cheap whatever the body holds.
            if pairs.len() > leasehold_types::limits::LABELS {
                break;
            }
            pairs.push((key, value));
        }
        Labels::new(pairs).map_err(A::Error::custom)
    }
}

pub(crate) fn serialize<S: Serializer>(labels: &Labels, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(labels.iter())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Labels, D::Error> {
    deserializer.deserialize_map(LabelsVisitor)
}
