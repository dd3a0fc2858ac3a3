//! What passes between the state and whoever drives it.

use leasehold_core::{Event, Reply, Ticket};
use leasehold_journal::Chained;
use leasehold_types::{Slot, WallTime};

use crate::{Durable, StopReason};

/// What the driver is to do next. Nothing else is begun before its outcome is reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Work {
    /// Append this; report with [`super::State::appended`].
    Append(Chained),
    /// Confirm the epoch; report with [`super::State::confirmed`].
    Confirm,
}

/// How things go on after an outcome.
#[derive(Debug)]
pub enum Next {
    /// It is durable; look for deliveries and further work.
    Committed(CommittedBatch),
    /// The epoch is confirmed; look for deliveries and further work.
    Confirmed,
    /// Do the same work again, with the same bytes, until it is known (J3). Given up after 2 s with [`super::State::stop`].
    Again(String),
    /// Stop answering at once (N2); then call [`super::State::stop`].
    Stop(StopReason),
}

/// A batch that has just become durable.
#[derive(Debug)]
pub struct CommittedBatch {
    /// Where.
    pub slot: Slot,
    /// How many facts.
    pub facts: usize,
    /// How many bytes.
    pub bytes: usize,
    /// The events of its facts in order, with the time they were decided at; numbered from 0 as [`crate::EventId`].
    pub events: Vec<(WallTime, Event)>,
}

/// Something that may leave the node.
#[derive(Debug)]
pub enum Delivery {
    /// The reply to a command.
    Reply(Ticket, Durable<Reply>),
    /// An event that is not journaled.
    Live(WallTime, Event),
}
