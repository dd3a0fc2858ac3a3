//! How far a fence is switched on.

use std::fmt;

use leasehold_types::ResourceName;

use crate::Rejection;

/// How far a fence is switched on for a prefix. Each stage is switched on after the one before has shown nothing
/// unexpected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Stage {
    /// Counts writes with and without a token; rejects nothing.
    #[default]
    Count,
    /// Counts what it would reject; rejects nothing.
    Shadow,
    /// Rejects for this percentage of the resources, always the same ones; counts for the others.
    Canary(Percent),
    /// Rejects stale tokens and tokens of other locks; writes without a token are counted.
    Enforce,
    /// Rejects writes without a token too.
    Require,
}

/// From 0 to 100.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Percent(u8);

impl Percent {
    /// `None` above 100.
    pub const fn new(percent: u8) -> Option<Self> {
        if percent <= 100 { Some(Self(percent)) } else { None }
    }
}

impl Stage {
    /// Reads `count`, `shadow`, `canary:10`, `enforce`, `require`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.split_once(':') {
            Some(("canary", percent)) => Some(Self::Canary(Percent::new(percent.parse().ok()?)?)),
            Some(_) => None,
            None => match text {
                "count" => Some(Self::Count),
                "shadow" => Some(Self::Shadow),
                "enforce" => Some(Self::Enforce),
                "require" => Some(Self::Require),
                _ => None,
            },
        }
    }

    /// Whether this rejection stops a write under this lock. What is about steps and rows stops it at every stage: only
    /// programs that already use the fence get such an answer.
    pub fn stops(self, guard: &ResourceName, rejection: &Rejection) -> bool {
        match rejection {
            Rejection::Stale { .. } | Rejection::WrongScope { .. } | Rejection::Untrusted(_) => {
                self.enforces(guard)
            }
            Rejection::MissingToken => self == Self::Require,
            Rejection::AlreadyApplied { .. } | Rejection::OutOfOrder { .. } | Rejection::MissingRow => true,
        }
    }

    /// Whether stale tokens are rejected for this resource.
    pub fn enforces(self, guard: &ResourceName) -> bool {
        match self {
            Self::Count | Self::Shadow => false,
            Self::Canary(Percent(percent)) => bucket(guard) < percent,
            Self::Enforce | Self::Require => true,
        }
    }

    /// Whether the fence is asked at all.
    pub fn checks(self) -> bool {
        self != Self::Count
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.write_str("count"),
            Self::Shadow => f.write_str("shadow"),
            Self::Canary(Percent(percent)) => write!(f, "canary:{percent}"),
            Self::Enforce => f.write_str("enforce"),
            Self::Require => f.write_str("require"),
        }
    }
}

/// 0 to 99, for ever the same for a name, on every machine: FNV-1a.
fn bucket(name: &ResourceName) -> u8 {
    let hash = name.as_str().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The low bits of FNV mix badly over short names; the high ones are folded in.
    u8::try_from((hash ^ (hash >> 32)) % 100).expect("below 100")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_are_read_as_they_are_written() {
        for text in ["count", "shadow", "canary:0", "canary:100", "enforce", "require"] {
            assert_eq!(Stage::parse(text).map(|stage| stage.to_string()).as_deref(), Some(text));
        }
        for text in ["", "canary", "canary:101", "canary:x", "enforce:1", "Enforce"] {
            assert_eq!(Stage::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_canary_takes_about_its_share_and_only_grows() {
        let names: Vec<_> = (0..2_000).map(|n| ResourceName::new(&format!("orders/{n}")).unwrap()).collect();
        let taken = |percent| {
            let stage = Stage::Canary(Percent::new(percent).unwrap());
            names.iter().map(|name| stage.enforces(name)).collect::<Vec<_>>()
        };
        let (ten, fifty) = (taken(10), taken(50));
        let count = |taken: &[bool]| taken.iter().filter(|&&taken| taken).count();
        assert!((150..250).contains(&count(&ten)), "{}", count(&ten));
        assert!((900..1_100).contains(&count(&fifty)), "{}", count(&fifty));
        assert!(
            ten.iter().zip(&fifty).all(|(ten, fifty)| !ten || *fifty),
            "a larger share keeps the smaller one's"
        );
        assert_eq!((count(&taken(0)), count(&taken(100))), (0, 2_000));
    }
}
