//! Names, ids and words as typed, read into what they mean.

use leasehold_api::ELECTION_PREFIX;
use leasehold_types::{Class, Labels, LeaseId, Mode, OwnerId, ResourceName, SessionId};

use crate::args::{KindArgs, OperatorArgs};
use crate::failure::Failure;
use crate::owner::default_owner;
use crate::plan::Operator;

/// The resource of an election.
pub(super) fn election_resource(name: &str) -> Result<ResourceName, Failure> {
    let resource =
        ResourceName::new(name).and_then(|_| ResourceName::new(&format!("{ELECTION_PREFIX}{name}")));
    resource.map_err(|invalid| usage(invalid.of("the name of the election")))
}

/// The mode and class of a lock.
pub(super) fn kind(args: &KindArgs) -> Result<(Mode, Class), Failure> {
    let mode = Mode::parse(&args.mode).ok_or_else(|| one_of("--mode", &args.mode, Mode::ALL))?;
    if (mode == Mode::Semaphore) != args.limit.is_some() {
        return Err(Failure::Usage("--limit goes with --mode semaphore, and only with it".into()));
    }
    let class = Class::parse(&args.class).ok_or_else(|| one_of("--class", &args.class, Class::ALL))?;
    Ok((mode, class))
}

pub(super) fn operator(args: OperatorArgs) -> Result<Operator, Failure> {
    for (name, text) in [("--actor", &args.actor), ("--reason", &args.reason)] {
        if text.trim().is_empty() {
            return Err(Failure::Usage(format!("{name} is empty; it is kept in the audit log")));
        }
    }
    Ok(Operator { actor: args.actor, reason: args.reason })
}

pub(super) fn labels(given: &[String]) -> Result<Labels, Failure> {
    let pairs: Option<Vec<(&str, &str)>> = given.iter().map(|label| label.split_once('=')).collect();
    let pairs = pairs.ok_or_else(|| Failure::Usage("a label is written KEY=VALUE".into()))?;
    Labels::new(pairs).map_err(usage)
}

pub(crate) fn resource_name(text: &str) -> Result<ResourceName, Failure> {
    ResourceName::new(text).map_err(usage)
}

/// The owner that a flag names.
pub(super) fn owner(flag: &'static str, text: &str) -> Result<OwnerId, Failure> {
    OwnerId::new(text).map_err(|invalid| usage(invalid.of(flag)))
}

/// Whoever was named, or else who runs this.
pub(super) fn owner_or_default(named: Option<&str>) -> Result<OwnerId, Failure> {
    named.map_or_else(|| Ok(default_owner()), |named| owner("--owner", named))
}

pub(super) fn lease_id(text: &str) -> Result<LeaseId, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("lease id `{text}`: {error}")))
}

pub(super) fn session_id(text: &str) -> Result<SessionId, Failure> {
    text.parse().map_err(|error| Failure::Usage(format!("session id `{text}`: {error}")))
}

pub(crate) fn one_of<W: std::fmt::Display>(flag: &str, given: &str, words: &[W]) -> Failure {
    let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    Failure::Usage(format!("{flag}: `{given}` is not one of {}", words.join(", ")))
}

pub(crate) fn usage(error: impl std::fmt::Display) -> Failure {
    Failure::Usage(error.to_string())
}
