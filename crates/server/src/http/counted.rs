//! Commands whose outcomes are counted, whichever way they were asked.

use leasehold_api::Problem;
use leasehold_core::{Acquire, Command, Reply};
use leasehold_types::{FencingToken, LeaseId, RequestKey, ResourceName};
use tokio::time::Instant;

use super::{App, unexpected};

impl App {
    /// An acquire, and what came of it.
    pub(crate) async fn acquire(&self, key: Option<RequestKey>, acquire: Acquire) -> Result<Reply, Problem> {
        let attempt = self.metrics.acquire_begins(&self.tenant, &acquire, Instant::now(), &mut None);
        let reply = self.submit(key, Command::Acquire(acquire)).await;
        attempt.ends(&reply, Instant::now());
        reply
    }

    /// A renewal, of a lease or a session.
    pub(crate) async fn renew(&self, key: Option<RequestKey>, command: Command) -> Result<Reply, Problem> {
        let lease_id = match &command {
            Command::Renew(renew) => Some(renew.lease_id),
            _ => None,
        };
        let reply = self.submit(key, command).await;
        reply.inspect_err(|problem| self.renewal_refused(lease_id, problem))
    }

    /// A command of the holder's that frees its lease. The stream that held the lease is not told of a loss.
    pub(crate) async fn free(
        &self,
        key: Option<RequestKey>,
        lease_id: LeaseId,
        command: Command,
    ) -> Result<(ResourceName, FencingToken), Problem> {
        let reply = self.submit(key, command).await;
        match reply.inspect_err(|problem| self.metrics.release_failed(&self.tenant, problem.code))? {
            Reply::Released { resource, token, session } => {
                self.losses.released(session, lease_id, resource.name(), token);
                Ok((resource.to_name(), token))
            }
            other => unexpected(&other),
        }
    }
}
