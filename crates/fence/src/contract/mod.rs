//! The one contract of all fences: what is asked, what is kept, what is answered.
//!
//! [`decide`] and [`decide_claim`] are the whole of it, as pure functions; every adapter gives the verdict that they
//! give, in the same atomic step as the write.

mod admitted;
mod decide;
mod fence;
mod grant;
mod refusal;
mod row;
mod verdict;

pub use admitted::{Admitted, AdmittedMut};
pub use decide::{decide, decide_claim};
pub use fence::{Fence, Policy, Span};
pub use grant::{Ask, Grant, Kind, SharedSteps};
pub use refusal::Refusal;
pub use row::Row;
pub use verdict::{FenceError, Rejection, Verdict};

/// The claim that shuts out this grant and all before it: made by no holder, on behalf of all that come later.
#[cfg(feature = "_sql")]
pub(crate) fn after(grant: &Grant) -> Grant {
    // Past the largest token there is none to shut out the last one: the service refuses to go there.
    let next = leasehold_types::FencingToken::new(grant.token().get() + 1).unwrap_or(grant.token());
    Grant::new(grant.resource().clone(), next, grant.kind())
}

/// What [`after`] is for: a maximum that is already higher is what was wanted.
#[cfg(feature = "_sql")]
pub(crate) fn raised<E>(claimed: Result<(), FenceError<E>>) -> Result<(), FenceError<E>> {
    match claimed {
        Err(FenceError::Rejected(Rejection::Stale { .. })) => Ok(()),
        other => other,
    }
}
