//! What was typed.

use leasehold_sim::model::Scope;
use leasehold_sim::{Mistake, Options};

use crate::{gate, interleavings};

pub(crate) const USAGE: &str = "\
usage: cargo xtask sim SEED [--mistake NAME] [--without PROMISE] [--most-faults N] [--calm-network]
                           [--overtaking] [--history FILE]
                                         one run; if it fails, it is shrunk and shown
       cargo xtask sim [--faults N] [--from SEED] [--seconds S] [--overtaking]
                                         seeds one after the other, until so many faults have happened
       cargo xtask sim --gate [--seeds N]
                                         every deliberate mistake: caught by which promise, after how many seeds
       cargo xtask sim --matrix [--seeds N]
                                         what each promise is the first to catch, and what slips through without it
       cargo xtask sim --model [--goal] [--mistake NAME] [--ticks N] [--takeovers N] [--asks N]
                               [--compactions N] [--most-steps N]
                                         every interleaving of a small world; --goal: of a larger one, for hours, or as
                                         much of it as so many steps show";

/// What is to be done.
pub(crate) enum Task {
    One,
    Many { faults: u64, seconds: u64 },
    Catch { seeds: u64 },
    Gate { seeds: u64 },
    Matrix { seeds: u64 },
    Model { scope: Scope, most_steps: usize },
}

pub(crate) struct Args {
    pub(crate) task: Task,
    pub(crate) options: Options,
    /// Where the history of one run is written.
    pub(crate) history: Option<std::path::PathBuf>,
}

impl Args {
    pub(crate) fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, String> {
        let (mut options, mut history) = (Options::default(), None);
        let (mut seed, mut faults, mut seconds, mut seeds, mut verb) =
            (None, 1_000_000, u64::MAX, None, None);
        let (mut scope, mut most_steps) = (Scope::FLOOR, interleavings::MOST_STEPS);
        while let Some(word) = words.next() {
            let mut number = || {
                let value = words.next().ok_or(format!("{word} needs a value"))?;
                value.replace('_', "").parse::<u64>().map_err(|_| format!("{value} is not a whole number"))
            };
            match word.as_str() {
                "--faults" => faults = number()?,
                "--seconds" => seconds = number()?,
                "--seeds" => seeds = Some(number()?),
                "--from" => options.seed = number()?,
                "--most-faults" => options.most_faults = Some(number()?),
                "--calm-network" => options.calm_network = true,
                "--overtaking" => options.overtaking = true,
                "--goal" => scope = Scope::GOAL,
                "--ticks" => scope.ticks = small(number()?),
                "--takeovers" => scope.takeovers = small(number()?),
                "--asks" => scope.asks = small(number()?),
                "--compactions" => scope.compactions = small(number()?),
                "--most-steps" => most_steps = usize::try_from(number()?).unwrap_or(usize::MAX),
                "--gate" | "--matrix" | "--catch" | "--model" => verb = Some(word),
                "--mistake" => {
                    let name = words.next().ok_or("--mistake needs a name")?;
                    options.mistake = Some(Mistake::parse(&name).ok_or(format!("no mistake {name}"))?);
                }
                "--history" => history = Some(words.next().ok_or("--history needs a file")?.into()),
                "--without" => options.off = Some(words.next().ok_or("--without needs a promise")?),
                other => seed = Some(other.parse::<u64>().map_err(|_| format!("{other} is not a seed"))?),
            }
        }
        let task = match (verb.as_deref(), seed) {
            (Some("--gate"), _) => Task::Gate { seeds: seeds.unwrap_or(gate::SEEDS) },
            (Some("--model"), _) => {
                Task::Model { scope: Scope { mistake: options.mistake, ..scope }, most_steps }
            }
            (Some("--matrix"), _) => Task::Matrix { seeds: seeds.unwrap_or(400) },
            (Some(_), _) => Task::Catch { seeds: seeds.unwrap_or(100) },
            (None, Some(seed)) => {
                options.seed = seed;
                Task::One
            }
            (None, None) => Task::Many { faults, seconds },
        };
        Ok(Self { task, options, history })
    }
}

fn small(number: u64) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}
