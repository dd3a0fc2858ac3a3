//! The suite that every adapter passes.
//!
//! An adapter's test implements [`Protected`] for a thing of lines behind its fence, in a fresh store, and calls
//! [`run`]: a table of cases with the answers written down, random sequences against [`decide`](crate::decide), and a
//! race of many writers. A store without real atomicity does not get through the race.
//!
//! It cannot show that acknowledged writes survive a crash of the store; that is the store's own promise.

mod agreement;
mod cases;
mod race;
mod random;
mod script;
mod store;

use std::error::Error;
use std::future::Future;

pub use agreement::agreement;
pub use cases::cases;
pub use race::{Race, race};
pub use store::{CasLines, store};

use crate::{Ask, Fence, FenceError, Grant};

/// An error of the store under test.
pub type Failure = Box<dyn Error + Send + Sync>;
/// What came of one ask.
pub type Outcome = Result<(), FenceError<Failure>>;

/// A thing of lines, protected by the adapter under test.
pub trait Protected: Sync {
    /// Whether this fence can keep one maximum for each permit. If not, nothing is asked of it that needs it.
    fn keeps_permits(&self) -> bool {
        true
    }

    /// Appends a line to the thing that this fence protects, in one atomic step with the check.
    ///
    /// [`FenceError::Store`] means that the outcome is unknown: the line may be there or not.
    fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> impl Future<Output = Outcome> + Send;

    /// Claims the fence.
    fn claim(&self, fence: &Fence, grant: &Grant) -> impl Future<Output = Outcome> + Send;

    /// The lines of the thing, in the order in which they were written.
    fn lines(&self, fence: &Fence) -> impl Future<Output = Vec<String>> + Send;
}

/// Runs the whole suite on a fresh store.
///
/// # Panics
/// When the adapter breaks the contract: says how, and with which seed.
pub async fn run(protected: &impl Protected, seed: u64) {
    cases(protected).await;
    agreement(protected, seed).await;
    race(protected, seed, Race::default()).await;
}
