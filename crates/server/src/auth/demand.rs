//! What a command or a path demands of its caller. Exhaustive on purpose: whatever is new has to say so here.

use leasehold_api::Problem;
use leasehold_core::{Command, Query};
use leasehold_types::{ResourceName, Verb};

use super::principal::{Caller, Principal};
use super::{forbidden, unauthenticated};
use crate::http::Place;

/// What is demanded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Demand<'a> {
    /// Nothing: everybody may know whether the process lives.
    Nothing,
    /// To be somebody; what exactly, the command that follows says.
    SignedIn,
    /// To be allowed this with one's own leases and sessions, which others cannot name.
    Own(Verb),
    /// To be allowed this with one name.
    Name(Verb, &'a ResourceName),
    /// To be allowed this with every name that begins like this.
    Prefix(Verb, &'a str),
    /// To be allowed this at all, whatever the scopes.
    Everywhere(Verb),
}

impl Demand<'_> {
    fn is_met_by(self, principal: &Principal) -> bool {
        match self {
            Self::Nothing | Self::SignedIn => true,
            Self::Own(verb) => principal.role.may(verb),
            Self::Name(verb, name) => principal.may(verb, name.as_str()),
            Self::Prefix(verb, prefix) => principal.may(verb, prefix),
            Self::Everywhere(verb) => principal.may(verb, ""),
        }
    }

    fn refusal(self) -> Problem {
        let verb = match self {
            Self::Nothing | Self::SignedIn => return forbidden("not allowed"),
            Self::Own(verb) | Self::Name(verb, _) | Self::Prefix(verb, _) | Self::Everywhere(verb) => verb,
        };
        let what = match self {
            Self::Name(_, name) => format!(" {name}"),
            Self::Prefix(_, prefix) if !prefix.is_empty() => format!(" what begins with {prefix}"),
            _ => String::new(),
        };
        forbidden(format!("this credential may not {verb}{what}"))
    }

    /// Refuses a caller that may not.
    pub(crate) fn check(self, caller: &Caller) -> Result<(), Problem> {
        match caller {
            Caller::Open => Ok(()),
            Caller::Nobody if self == Self::Nothing => Ok(()),
            Caller::Nobody => Err(unauthenticated("show who you are")),
            Caller::Known(principal) if self.is_met_by(principal) => Ok(()),
            Caller::Known(_) => Err(self.refusal()),
        }
    }
}

/// Whether this caller may have this command carried out. The one place where that is decided.
///
/// # Errors
/// `forbidden`, naming what is not allowed.
pub(crate) fn authorize(caller: &Caller, command: &Command) -> Result<(), Problem> {
    match caller {
        Caller::Open => Ok(()),
        Caller::Nobody | Caller::Known(_) => demanded_by(command).check(caller),
    }
}

fn demanded_by(command: &Command) -> Demand<'_> {
    match command {
        Command::Acquire(acquire) => Demand::Name(Verb::Acquire, &acquire.resource),
        Command::Renew(_)
        | Command::Release { .. }
        | Command::Resign { .. }
        | Command::Proclaim { .. }
        | Command::OpenSession(_)
        | Command::RenewSession(_)
        | Command::CloseSession { by_operator: None, .. } => Demand::Own(Verb::Acquire),
        Command::CloseSession { by_operator: Some(_), .. } => Demand::Everywhere(Verb::Operate),
        Command::ForceRelease(force) => Demand::Name(Verb::Operate, &force.resource),
        // The node withdraws by itself; nobody asks for it by name.
        Command::Withdraw { .. }
        | Command::Recover(_)
        | Command::RaiseFormat(_)
        | Command::AddCredential(_)
        | Command::RevokeCredential(_)
        | Command::NoteBackup(_)
        | Command::NoteSettings { .. } => Demand::Everywhere(Verb::Administer),
        Command::Query(query) => demanded_by_query(query),
    }
}

fn demanded_by_query(query: &Query) -> Demand<'_> {
    match query {
        Query::Lease(_) | Query::Successor(_) | Query::Session(_) | Query::Usage => Demand::Own(Verb::Read),
        // What is in one's own session, whatever its names; another's is empty.
        Query::Locks(filter) if filter.session.is_some() => Demand::Own(Verb::Read),
        Query::Locks(filter) => Demand::Prefix(Verb::Read, filter.prefix.as_deref().unwrap_or_default()),
        Query::Explain(resource) | Query::Validate { resource, .. } => Demand::Name(Verb::Read, resource),
        Query::Audit { resource: Some(resource), .. } => Demand::Name(Verb::Inspect, resource),
        Query::Sessions { .. } | Query::Audit { resource: None, .. } | Query::AuditVerify => {
            Demand::Everywhere(Verb::Inspect)
        }
        Query::Credentials { .. } | Query::WholeAudit { .. } => Demand::Everywhere(Verb::Administer),
    }
}

/// What a path demands before anything else is looked at. Those of the table demand more by their commands.
pub(crate) fn demand_of(place: Place<'_>) -> Demand<'static> {
    match place {
        // Files that anybody can read in the source; whoever opens them still has to sign in.
        Place::Root | Place::Console(_) | Place::OpenApi => Demand::Nothing,
        Place::Healthz | Place::Readyz => Demand::Nothing,
        Place::Status => Demand::SignedIn,
        Place::Metrics => Demand::Everywhere(Verb::Inspect),
        Place::Acquire
        | Place::Locks
        | Place::Lock(_)
        | Place::RenewLock(_)
        | Place::Resource(_)
        | Place::ForceRelease(_)
        | Place::ValidateToken
        | Place::FenceReport
        | Place::Fences
        | Place::Identity
        | Place::Sessions
        | Place::Session(_)
        | Place::RenewSession(_)
        | Place::Campaign(_)
        | Place::Election(_)
        | Place::Proclaim(_)
        | Place::Resign(_)
        | Place::Observe(_)
        | Place::Events
        | Place::Audit
        | Place::AuditVerify => Demand::SignedIn,
        Place::Credentials | Place::Credential(_) | Place::UpgradeFinish | Place::Backups => {
            Demand::Everywhere(Verb::Administer)
        }
    }
}
