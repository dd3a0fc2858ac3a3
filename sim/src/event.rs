//! What can happen next.

use leasehold_core::Reply;
use leasehold_node::{Call, SubmitError};

use crate::clock::Micros;
use crate::engine::{Ask, ClaimIx, Told};
use crate::faults::Fault;

/// Which client.
pub(crate) type ClientIx = usize;
/// One attempt of a client, or one question of a node: numbered through the run.
pub(crate) type OpId = u64;

/// See the module. Millions of them are moved about, so what is large is boxed.
#[derive(Debug)]
pub(crate) enum Event {
    /// A client's timer.
    Client { client: ClientIx, life: u64, at: Micros },
    /// A request reaches a node.
    ToNode { node: usize, client: ClientIx, op: OpId, call: Box<Call> },
    /// An answer reaches a client.
    ToClient { client: ClientIx, op: OpId, epoch: Option<u64>, answer: Box<Result<Reply, SubmitError>> },
    /// A question reaches the engine.
    ToEngine { node: usize, life: u64, op: OpId, ask: Ask },
    /// The second half of an append whose epoch was checked before: a mistake.
    Land { node: usize, life: u64, op: OpId, ask: Ask },
    /// An answer of the engine reaches a node.
    FromEngine { node: usize, life: u64, op: OpId, told: Told },
    /// A node's timer.
    NodeTimer { node: usize, life: u64, at: Micros },
    /// A node has waited long enough for an answer of the engine.
    OpTimeout { node: usize, life: u64, op: OpId },
    /// Ask the engine the same again.
    Retry { node: usize, life: u64, op: OpId },
    /// A write reaches a fence.
    Write { client: ClientIx, resource: usize, token: u64 },
    /// A stored snapshot is made current.
    Install { claim: ClaimIx, slot: u64, keep: u64 },
    /// A node starts.
    Start { node: usize },
    /// A paused node goes on.
    Wake { node: usize, suspended: Micros },
    /// A paused client goes on, or a dead one is replaced.
    WakeClient { client: ClientIx },
    /// Something goes wrong.
    Fault,
    /// Something that went wrong is over.
    Over(Fault),
    /// Nothing goes wrong any more.
    Heal,
}

impl Event {
    /// The node that it happens to, if that must run for it.
    pub(crate) fn of_node(&self) -> Option<usize> {
        match self {
            Self::ToNode { node, .. }
            | Self::FromEngine { node, .. }
            | Self::NodeTimer { node, .. }
            | Self::OpTimeout { node, .. }
            | Self::Retry { node, .. } => Some(*node),
            _ => None,
        }
    }
}
