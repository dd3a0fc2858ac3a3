//! Durations as files, environment and flags write them: `15s`, `500ms`, `10m`, `1h`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration as it is written.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct WrittenDuration(pub Duration);

/// The text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a whole number and ms, s, m or h, such as 15s")]
pub struct InvalidDuration(pub String);

impl std::str::FromStr for WrittenDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, InvalidDuration> {
        let invalid = || InvalidDuration(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let number: u64 = text[..digits].parse().map_err(|_| invalid())?;
        let unit_ms = match &text[digits..] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return Err(invalid()),
        };
        Ok(Self(Duration::from_millis(number.checked_mul(unit_ms).ok_or_else(invalid)?)))
    }
}

impl std::fmt::Display for WrittenDuration {
    /// In the largest unit that is exact.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            _ if ms > 0 && ms.is_multiple_of(3_600_000) => write!(f, "{}h", ms / 3_600_000),
            _ if ms > 0 && ms.is_multiple_of(60_000) => write!(f, "{}m", ms / 60_000),
            _ if ms.is_multiple_of(1_000) => write!(f, "{}s", ms / 1_000),
            _ => write!(f, "{ms}ms"),
        }
    }
}

impl Serialize for WrittenDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for WrittenDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_they_are_written() {
        for text in ["15s", "500ms", "10m", "1h", "0s", "90s"] {
            assert_eq!(
                text.parse::<WrittenDuration>().unwrap().to_string().parse(),
                text.parse::<WrittenDuration>()
            );
        }
        assert_eq!("90s".parse::<WrittenDuration>().unwrap().0, Duration::from_secs(90));
        assert_eq!("3600s".parse::<WrittenDuration>().unwrap().to_string(), "1h");
    }

    #[test]
    fn a_duration_has_a_unit() {
        for text in
            ["", "15", "s", "-1s", "1.5s", "15 s", "15S", "99999999999999999999s", "18446744073709551615h"]
        {
            assert!(text.parse::<WrittenDuration>().is_err(), "{text}");
        }
    }
}
