//! From measurements to a ttl. Pure arithmetic, in whole milliseconds.

use std::fmt;

use crate::duration::shown;

/// What a server accepts unless configured otherwise.
const SHORTEST_MS: u64 = 1_000;
const LONGEST_MS: u64 = 3_600_000;
/// What is taken when it fits: long enough for pauses that nobody measured, short enough for a person to wait.
const USUAL_MS: u64 = 15_000;
/// A margin is never longer than this, whatever the ttl.
const MARGIN_MS: u64 = 2_000;

/// What the ttl has to cover, and how long a dead holder may keep others waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub(super) pause_ms: u64,
    pub(super) renewal_ms: u64,
    pub(super) recovery_ms: u64,
}

impl Need {
    fn covered_ms(self) -> u64 {
        self.pause_ms.saturating_add(self.renewal_ms)
    }

    /// The ttl has to be longer than this: ttl > covered + min(2 s, ttl/6).
    pub(super) fn least_ms(self) -> u64 {
        let covered = self.covered_ms();
        // Below 12 s the margin is ttl/6: ttl * 5/6 > covered.
        (covered.saturating_mul(6) / 5).min(covered.saturating_add(MARGIN_MS))
    }

    /// The same for a pause that begins just before a renewal leaves: ttl * 0.99 - ttl/3 > covered + margin.
    pub(super) fn comfortable_ms(self) -> u64 {
        let covered = self.covered_ms();
        // 0.99 - 1/3 = 197/300; with a margin of ttl/6 there is 147/300 left.
        let with_sixth = covered.saturating_mul(300) / 147;
        let with_whole = covered.saturating_add(MARGIN_MS).saturating_mul(300) / 197;
        with_sixth.min(with_whole)
    }

    /// The longest ttl after which a dead holder's lock is free in time: the server waits one per cent longer.
    pub(super) fn most_ms(self) -> u64 {
        self.recovery_ms.saturating_mul(100) / 101
    }

    /// A ttl that fits, or why there is none.
    pub(super) fn advise(self) -> Advice {
        let (least, most) = (self.least_ms(), self.most_ms().min(LONGEST_MS));
        if most < SHORTEST_MS || most <= least {
            return Advice::Impossible { least, most };
        }
        let wanted = self.comfortable_ms().saturating_add(1).max(USUAL_MS);
        let ttl = whole_seconds_up(wanted).min(whole_seconds_down(most)).max(SHORTEST_MS);
        if ttl > least { Advice::Take(ttl) } else { Advice::Take(most) }
    }

    /// Whether this ttl fits.
    pub(super) fn judge(self, ttl_ms: u64) -> Advice {
        match ttl_ms {
            ttl if ttl <= self.least_ms() => Advice::TooShort { ttl, least: self.least_ms() },
            ttl if ttl > self.most_ms() => Advice::TooLong { ttl, most: self.most_ms() },
            ttl => Advice::Take(ttl),
        }
    }
}

/// What comes of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Advice {
    /// This ttl fits.
    Take(u64),
    /// What must be covered is longer than what may be waited.
    Impossible { least: u64, most: u64 },
    /// A live holder would lose it.
    TooShort { ttl: u64, least: u64 },
    /// A dead holder would keep it for too long.
    TooLong { ttl: u64, most: u64 },
}

impl Advice {
    /// The ttl, if there is one.
    pub(super) fn ttl_ms(self) -> Option<u64> {
        match self {
            Self::Take(ttl) => Some(ttl),
            _ => None,
        }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Take(ttl) => write!(f, "ttl {}", shown(ttl)),
            Self::Impossible { least, most } => write!(
                f,
                "no ttl fits: it would have to be more than {} and at most {}; allow a longer recovery, or make pauses and renewals shorter",
                shown(least),
                shown(most)
            ),
            Self::TooShort { ttl, least } => {
                write!(
                    f,
                    "{} is too short: a live holder would lose it; more than {}",
                    shown(ttl),
                    shown(least)
                )
            }
            Self::TooLong { ttl, most } => {
                write!(f, "{} is too long for the wanted recovery; at most {}", shown(ttl), shown(most))
            }
        }
    }
}

fn whole_seconds_up(ms: u64) -> u64 {
    ms.div_ceil(1_000) * 1_000
}

fn whole_seconds_down(ms: u64) -> u64 {
    ms / 1_000 * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(pause_ms: u64, renewal_ms: u64, recovery_ms: u64) -> Need {
        Need { pause_ms, renewal_ms, recovery_ms }
    }

    #[test]
    fn the_least_ttl_covers_pause_renewal_and_its_own_margin() {
        for covered in [0, 1, 7, 500, 2_999, 9_999, 10_000, 10_001, 60_000] {
            let need = need(covered / 2, covered - covered / 2, u64::MAX);
            let covers = |ttl: u64| ttl > covered + (ttl / 6).min(MARGIN_MS);
            let least = need.least_ms();
            assert!(covers(least + 2), "{covered}: {least} and a rounding are enough");
            assert!(least < 2 || !covers(least - 2), "{covered}: {least} is not more than needed");
        }
    }

    #[test]
    fn the_usual_ttl_is_advised_where_it_fits() {
        assert_eq!(need(5, 3, 30_000).advise(), Advice::Take(15_000));
        assert_eq!(need(5, 3, 10_000).advise(), Advice::Take(9_000), "a dead holder is gone within 10 s");
        assert_eq!(need(12_000, 100, 60_000).advise(), Advice::Take(22_000), "pauses of 12 s are covered");
    }

    #[test]
    fn what_cannot_be_had_is_said() {
        assert_eq!(need(20_000, 0, 10_000).advise().ttl_ms(), None);
        assert_eq!(need(1, 1, 500).advise().ttl_ms(), None, "no server accepts that by default");
        assert_eq!(need(4_000, 0, 60_000).judge(3_000), Advice::TooShort { ttl: 3_000, least: 4_800 });
        assert_eq!(need(4, 0, 10_000).judge(15_000), Advice::TooLong { ttl: 15_000, most: 9_900 });
        assert_eq!(need(4, 0, 20_000).judge(15_000), Advice::Take(15_000));
    }
}
