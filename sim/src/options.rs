//! What a run is asked to be, and what its seed makes of it.

use crate::chance::Chance;
use crate::mistake::Mistake;
use crate::net::Mix;

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Everything is drawn from it.
    pub seed: u64,
    /// A deliberate mistake.
    pub mistake: Option<Mistake>,
    /// A promise that is not checked, to show what it is needed for.
    pub off: Option<String>,
    /// Of the drawn faults (crashes, pauses, cuts and so on) only the first so many happen: how a failing run is shrunk.
    pub most_faults: Option<u64>,
    /// Faults of messages are left out.
    pub calm_network: bool,
    /// Every third answer to a client is late, and nodes take over from each other all the time, so that answers of two
    /// epochs overtake each other.
    pub overtaking: bool,
    /// Keep the records, to be shown.
    pub keep: bool,
}

/// What kind of world a seed makes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) nodes: usize,
    pub(crate) clients: usize,
    pub(crate) resources: u64,
    pub(crate) seconds: u64,
    pub(crate) heal_seconds: u64,
    pub(crate) mix: Mix,
    /// Clocks run at 0.9 to 1.1 of the true rate, and clients trust so much less of a ttl.
    pub(crate) wide_clocks: bool,
    /// Ttls of a minute and more, of which notes are made.
    pub(crate) long_lives: bool,
    /// Longest time between two drawn faults.
    pub(crate) fault_gap_ms: u64,
    /// The engine loses acknowledged writes half-way.
    pub(crate) regresses: bool,
}

impl Options {
    /// How long a run goes on after the last fault.
    pub(crate) const HEAL_SECONDS: u64 = 20;

    /// The run of this seed.
    pub fn of(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Every eighth seed is a run on a disk that loses power and flips bits.
    pub(crate) fn is_disk(&self) -> bool {
        self.seed % 8 == 7 && self.mistake.is_none()
    }

    pub(crate) fn kind(&self, chance: &mut Chance) -> Kind {
        let long_lives = chance.per_mille(250);
        let rough = chance.within(30, 360);
        let mix = Mix { drop: rough / 3, duplicate: rough / 3, late: rough / 3 };
        Kind {
            nodes: 2 + chance.index(2),
            clients: 6 + chance.index(35),
            resources: chance.within(2, 12),
            seconds: if long_lives { 300 } else { chance.within(10, 40) },
            heal_seconds: Self::HEAL_SECONDS,
            mix: if self.calm_network { Mix::default() } else { mix },
            wide_clocks: chance.per_mille(150),
            long_lives,
            fault_gap_ms: if long_lives { 40_000 } else { 900 },
            regresses: chance.per_mille(100),
        }
    }

    /// The command that repeats this run.
    pub fn command(&self) -> String {
        let mut line = format!("cargo xtask sim {}", self.seed);
        if let Some(mistake) = self.mistake {
            line += &format!(" --mistake {}", mistake.name());
        }
        if let Some(off) = &self.off {
            line += &format!(" --without {off}");
        }
        if let Some(most) = self.most_faults {
            line += &format!(" --most-faults {most}");
        }
        if self.calm_network {
            line += " --calm-network";
        }
        if self.overtaking {
            line += " --overtaking";
        }
        line
    }
}
