//! The one contract of all fences: what is asked, what is kept, what is answered.
//!
//! [`decide`] and [`decide_claim`] are the whole of it, as pure functions; every adapter gives the verdict that they
//! give, in the same atomic step as the write.

mod admitted;
mod decide;
mod fence;
mod grant;
mod row;
mod verdict;

pub use admitted::{Admitted, AdmittedMut};
pub use decide::{decide, decide_claim};
pub use fence::{Fence, Policy, Span};
pub use grant::{Ask, Grant, Kind, SharedSteps};
pub use row::Row;
pub use verdict::{FenceError, Rejection, Verdict};
