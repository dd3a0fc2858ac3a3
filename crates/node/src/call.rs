//! What a caller hands in and gets back.

use leasehold_core::{Acquire, Command, Reply};
use leasehold_types::{Epoch, RequestKey, TenantName};

/// A command with who asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Call {
    /// Whose names are meant; from the caller's identity, never from the body.
    pub tenant: TenantName,
    /// The authenticated caller, for the audit log; `None` on an open server.
    pub identity: Option<Box<str>>,
    /// Makes a retry the same command.
    pub key: Option<RequestKey>,
    /// What is asked. Never [`Command::Withdraw`]: dropping the future of the waiting acquire does that.
    pub command: Command,
}

impl Call {
    /// How long the caller is ready to wait in a queue; 0 for everything that does not wait.
    pub(crate) fn wait_ms(&self) -> u64 {
        match &self.command {
            Command::Acquire(acquire) => acquire.wait_ms,
            _ => 0,
        }
    }

    /// Whether a grant that reaches nobody is to be given back: the caller cannot ask for it again, since it chose
    /// neither the lease id nor a key (A6).
    pub fn is_given_back_unheard(&self) -> bool {
        matches!(&self.command, Command::Acquire(Acquire { lease_id_chosen: false, .. }))
            && self.key.is_none()
    }

    /// Whether it may use the capacity that is kept free in overload (N8): it ends something or keeps something alive.
    pub(crate) fn has_reserve(&self) -> bool {
        !matches!(self.command, Command::Acquire(_) | Command::OpenSession(_) | Command::Query(_))
    }
}

/// Something that may be told, because everything it rests on is durable. Made by the commit step of the loop alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durable<T> {
    value: T,
    epoch: Epoch,
}

impl<T> Durable<T> {
    /// Only [`crate::state::State`] calls this, when the commit that the value waited for has come.
    pub(crate) fn new(value: T, epoch: Epoch) -> Self {
        Self { value, epoch }
    }

    /// The value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// The value, without the proof.
    pub fn into_inner(self) -> T {
        self.value
    }

    /// The epoch of the node that decided.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }
}

impl Durable<Reply> {
    /// The lease that this reply gives, if it is a grant.
    pub(crate) fn granted_lease(&self) -> Option<leasehold_types::LeaseId> {
        match &self.value {
            Reply::Granted(grant) => Some(grant.lease_id),
            _ => None,
        }
    }
}

/// Why a command has no reply.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// This node is not the active one any more. Nothing happened; ask the active node.
    #[error("this node is not active")]
    NotActive,
    /// The journal does not commit. Nothing happened; try again later.
    #[error("the journal is not available: {0}")]
    StoreUnavailable(String),
    /// It may or may not have happened. Ask again with the same lease id or key, never a new one (K3).
    #[error("the outcome is unknown: {0}")]
    OutcomeUnknown(String),
    /// Too much is waiting. Nothing happened; try again after a pause.
    #[error("overloaded")]
    Overloaded,
    /// The node is shutting down. Nothing happened.
    #[error("the node is shutting down")]
    ShuttingDown,
}
