//! Durations as people write them: `15s`, `500ms`, `2m`, `1h`.

use std::time::Duration;

/// A unit and how many milliseconds it has. Longer suffixes first, so that `ms` is not read as `s`.
const UNITS: &[(&str, u64)] = &[("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)];

/// Reads a whole number with a unit.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is not a duration; write it like 15s, 500ms, 2m or 1h");
    let (digits, unit_ms) = UNITS
        .iter()
        .find_map(|(unit, ms)| text.strip_suffix(unit).map(|digits| (digits, *ms)))
        .ok_or_else(wrong)?;
    let count: u64 = digits.parse().map_err(|_| wrong())?;
    count.checked_mul(unit_ms).map(Duration::from_millis).ok_or_else(wrong)
}

/// Whole milliseconds, as the wire has them.
pub(crate) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A length of time at the precision that people care about.
pub(crate) fn shown(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{}.{}s", ms / 1_000, ms % 1_000 / 100),
        60_000..3_600_000 => format!("{}m{:02}s", ms / 60_000, ms % 60_000 / 1_000),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms % 3_600_000 / 60_000),
    }
}

/// The same in a column that stays as wide as it is while times go by.
pub(crate) fn column(ms: u64) -> String {
    format!("{:<6}", shown(ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_a_number_with_a_unit() {
        assert_eq!(parse("15s"), Ok(Duration::from_secs(15)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(parse("0s"), Ok(Duration::ZERO));
        for text in ["", "15", "s", "-1s", "1.5s", "1d", "99999999999999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn lengths_are_shown_short() {
        let cases = [(7, "7ms"), (14_950, "14.9s"), (61_000, "1m01s"), (7_260_000, "2h01m")];
        for (ms, text) in cases {
            assert_eq!(shown(ms), text);
        }
    }
}
