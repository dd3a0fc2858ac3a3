//! Times as people read them: RFC 3339, UTC, milliseconds.

use std::fmt;
use std::str::FromStr;

use leasehold_types::WallTime;
use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// A wall time on the wire: `2026-11-15T20:21:22.123Z`. For people; no decision is made from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Timestamp(pub WallTime);

/// The text is not a time as the service writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a time of the form 2026-11-15T20:21:22.123Z")]
pub struct InvalidTimestamp;

const DAY_MS: u64 = 86_400_000;
/// Days from 0000-03-01 to 1970-01-01; years that begin in March have their leap day last, which makes the sums easy.
const EPOCH_DAY: u64 = 719_468;
const DAYS_PER_ERA: u64 = 146_097;
/// 9999-12-31T23:59:59.999Z: later times are shown as this one, so that the form stays the same.
const LATEST_MS: u64 = 253_402_300_799_999;

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    let day = days + EPOCH_DAY;
    let (era, day_of_era) = (day / DAYS_PER_ERA, day % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day_of_month)
}

/// The reverse of [`civil_from_days`]; `None` before 1970.
fn days_from_civil(year: u64, month: u64, day: u64) -> Option<u64> {
    let year = year.checked_sub(u64::from(month <= 2))?;
    let (era, year_of_era) = (year / 400, year % 400);
    let march_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * march_month + 2) / 5 + day - 1;
    (era * DAYS_PER_ERA + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year)
        .checked_sub(EPOCH_DAY)
}

impl Timestamp {
    /// The 24 characters of it.
    fn write(self) -> [u8; 24] {
        let ms = self.0.0.min(LATEST_MS);
        let (year, month, day) = civil_from_days(ms / DAY_MS);
        let (second, milli) = (ms % DAY_MS / 1_000, ms % 1_000);
        let mut text = *b"0000-00-00T00:00:00.000Z";
        let mut put = |at: usize, width: usize, mut number: u64| {
            for place in (at..at + width).rev() {
                text[place] = b'0' + (number % 10) as u8;
                number /= 10;
            }
        };
        put(0, 4, year);
        put(5, 2, month);
        put(8, 2, day);
        put(11, 2, second / 3_600);
        put(14, 2, second / 60 % 60);
        put(17, 2, second % 60);
        put(20, 3, milli);
        text
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(std::str::from_utf8(&self.write()).expect("digits and punctuation are UTF-8"))
    }
}

impl FromStr for Timestamp {
    type Err = InvalidTimestamp;

    /// Accepts the form that the service writes, and no other.
    fn from_str(text: &str) -> Result<Self, InvalidTimestamp> {
        let bytes = text.as_bytes();
        let number = |at: usize, width: usize| -> Option<u64> {
            let digits = bytes.get(at..at + width)?;
            digits.iter().try_fold(0, |sum, d| d.is_ascii_digit().then(|| sum * 10 + u64::from(d - b'0')))
        };
        let read = || {
            let days = days_from_civil(number(0, 4)?, number(5, 2)?, number(8, 2)?.max(1))?;
            let second = number(11, 2)? * 3_600 + number(14, 2)? * 60 + number(17, 2)?;
            Some(days * DAY_MS + second * 1_000 + number(20, 3)?)
        };
        // Writing it again is the check of every separator and range.
        let time = Self(WallTime(read().ok_or(InvalidTimestamp)?));
        if time.write() == *bytes { Ok(time) } else { Err(InvalidTimestamp) }
    }
}

impl From<WallTime> for Timestamp {
    fn from(time: WallTime) -> Self {
        Self(time)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .serialize_str(std::str::from_utf8(&self.write()).expect("digits and punctuation are UTF-8"))
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times_are_written_as_everybody_writes_them() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_794_774_082_123, "2026-11-15T20:21:22.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (u64::MAX, "9999-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(Timestamp(WallTime(ms)).to_string(), text);
        }
    }

    #[test]
    fn every_day_of_four_centuries_is_read_as_it_is_written() {
        for day in 0..DAYS_PER_ERA + 1_000 {
            let time = Timestamp(WallTime(day * DAY_MS + day % DAY_MS));
            assert_eq!(time.to_string().parse(), Ok(time), "{time}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in
            ["", "2026-11-15", "2026-11-15T20:21:22Z", "2026-02-30T00:00:00.000Z", "2026-11-15T20:21:22.123+"]
        {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
        for text in ["1969-12-31T23:59:59.999Z", "2026-00-00T00:00:00.000Z", "2026-13-01T00:00:00.000Z"] {
            assert_eq!(text.parse::<Timestamp>(), Err(InvalidTimestamp), "{text}");
        }
    }
}
