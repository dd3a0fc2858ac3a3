//! What an operator does to a journal that no node serves.

use std::path::Path;

use leasehold_core::Operator;
use leasehold_journal::Journal;
use leasehold_types::{ClusterId, Epoch, Generation};

use crate::{Clock, StartError};

/// What `recover` did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recovered {
    /// The journal.
    pub cluster: ClusterId,
    /// The new generation.
    pub generation: Generation,
    /// Every later token is above this.
    pub token_floor: u64,
    /// The epoch that it was done in.
    pub epoch: Epoch,
    /// What was lost, in words, as far as can be told.
    pub loss: Option<String>,
}

/// Accepts what is left of a damaged, regressed or restored journal: raises the generation, the epoch and the token
/// floor above everything that journal and witness know (by 2^40, or to `token_floor` if that is more), and writes the
/// witness anew. Also the last step of a restore.
///
/// # Errors
/// See [`StartError`]; nothing was recovered, and asking again is safe.
pub async fn recover(
    journal: &dyn Journal,
    data_dir: &Path,
    operator: Operator,
    token_floor: Option<u64>,
    clock: &dyn Clock,
) -> Result<Recovered, StartError> {
    let _ = (journal, data_dir, operator, token_floor, clock);
    todo!()
}
