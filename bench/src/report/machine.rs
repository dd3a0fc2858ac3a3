//! Where and when it was measured.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::args::Plan;
use crate::figures::Occasion;

/// Today, this machine, and how it is measured.
pub(crate) fn occasion(plan: &Plan) -> Occasion {
    let machine = format!(
        "{} cores ({}), Linux {}",
        std::thread::available_parallelism().map_or(1, usize::from),
        line_of("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".to_owned()),
        std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim(),
    );
    Occasion { date: date(), machine, rounds: plan.rounds, turn_seconds: plan.turn.as_secs_f64() }
}

fn line_of(file: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// Today, as year, month and day of UTC.
fn date() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = civil(since.as_secs() / 86_400);
    format!("{year}-{month:02}-{day:02}")
}

/// The date so many days after the first of January 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400);
    let (mut year, mut left) = (1970, days);
    while left >= 365 + u64::from(leap(year)) {
        left -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(19_782), (2024, 2, 29));
        assert_eq!(civil(20_819), (2027, 1, 1));
    }
}
