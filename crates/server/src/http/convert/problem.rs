//! From refusals and failures to problems.

use leasehold_api::{ErrorCode, Problem};
use leasehold_core::Refusal;
use leasehold_node::SubmitError;
use leasehold_types::{EndReason, FencingToken};

/// A mistake in one field.
pub(crate) fn bad_field(field: &str, what: impl std::fmt::Display) -> Problem {
    Problem::new(ErrorCode::BadRequest, format!("{field}: {what}"))
}

/// What a failed submission is on the wire.
pub(crate) fn submit_problem(error: SubmitError) -> Problem {
    match error {
        SubmitError::NotActive => Problem::new(ErrorCode::NotActive, "this node is not the active one"),
        SubmitError::ShuttingDown => Problem::new(ErrorCode::NotActive, "the node is shutting down"),
        SubmitError::StoreUnavailable(why) => Problem::new(ErrorCode::StoreUnavailable, why),
        SubmitError::OutcomeUnknown(why) => Problem::new(ErrorCode::OutcomeUnknown, why),
        SubmitError::Overloaded => {
            Problem::new(ErrorCode::Overloaded, "too many requests wait; try again after a pause")
        }
    }
}

/// What a lawful no is on the wire.
pub(crate) fn refusal_problem(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::LeaseNotHeld { reason, max_hold, token } => {
            let mut problem = Problem::new(ErrorCode::LeaseNotHeld, ended(reason, max_hold));
            problem.reason = Some(reason);
            problem.fencing_token = token;
            problem
        }
        Refusal::SessionEnded => {
            let mut problem =
                Problem::new(ErrorCode::LeaseNotHeld, "the session has ended, or nobody knows it");
            problem.reason = Some(EndReason::SessionEnded);
            problem
        }
        Refusal::NotFound => Problem::new(ErrorCode::NotFound, "nobody knows this id"),
        Refusal::IdempotencyMismatch => Problem::new(
            ErrorCode::IdempotencyMismatch,
            "this lease id or Idempotency-Key was used for a request with other content",
        ),
        Refusal::ClassNotSupported => Problem::new(
            ErrorCode::ClassNotSupported,
            "the journal can lose acknowledged grants; ask for the class efficiency, or use another journal",
        ),
        Refusal::StaleToken { current } => {
            let mut problem = Problem::new(ErrorCode::StaleToken, "no present holder has this token");
            problem.current_tokens = Some(current.into_iter().map(FencingToken::get).collect());
            problem
        }
        Refusal::NoSuchWaiter => Problem::new(ErrorCode::NotFound, "nobody of that name is waiting"),
        Refusal::NotAsSession { field } => bad_field(field, "differs from the session's; leave it out"),
        Refusal::NoRoom => {
            Problem::new(ErrorCode::StoreUnavailable, "disk full: releases and renewals still work")
        }
        Refusal::TokensUsedUp => Problem::new(ErrorCode::StoreUnavailable, "all fencing tokens are used up"),
        Refusal::QuotaExceeded { what, limit } => Problem::new(
            ErrorCode::QuotaExceeded,
            format!("the tenant has all the {what} that it may have: {limit}"),
        ),
        Refusal::CredentialTaken => Problem::new(
            ErrorCode::IdempotencyMismatch,
            "a credential was created under this key, or for this certificate name; a secret is shown once",
        ),
        Refusal::FormatTooOld => Problem::new(
            ErrorCode::StoreUnavailable,
            "the journal has a format that cannot hold this yet; run `leasehold upgrade finish` first",
        ),
        Refusal::Superseded => Problem::new(
            ErrorCode::OutcomeUnknown,
            "a later request with the same lease id took this one's place in the queue",
        ),
    }
}

fn ended(reason: EndReason, max_hold: bool) -> &'static str {
    match reason {
        _ if max_hold => "max_hold: the lease reached its longest age",
        EndReason::Released => "the lease was released",
        EndReason::Expired => "the lease has expired",
        EndReason::Forced => "an operator took the lease away",
        EndReason::SessionEnded => "the session of the lease has ended",
        EndReason::Unknown => "nobody knows this lease id",
    }
}
