//! The way to the loop.

use leasehold_core::Reply;
use leasehold_types::TenantName;

use crate::{Call, Durable, Status, SubmitError, Watch, WatchFrom};

/// Brings commands to the loop. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Handle {}

impl Handle {
    /// Brings a command to the loop and waits for its reply, at most the wait of an acquire and some seconds (L5).
    ///
    /// Cancel-safe in this sense: dropping the future of a waiting acquire withdraws it, and a grant that meets a
    /// dropped future is given back at once, unless the caller chose the lease id or sent a key (A6). Any other command
    /// may still happen when its future is dropped.
    ///
    /// # Errors
    /// See [`SubmitError`]; a lawful no is a reply, not an error.
    pub async fn submit(&self, call: Call) -> Result<Durable<Reply>, SubmitError> {
        let _ = call;
        todo!()
    }

    /// The node as it is now; never waits for the loop.
    pub fn status(&self) -> Status {
        todo!()
    }

    /// Follows what happens to a tenant's resources.
    pub fn watch(&self, tenant: TenantName, from: WatchFrom) -> Watch {
        let _ = (tenant, from);
        todo!()
    }
}
