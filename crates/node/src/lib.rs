//! The node: the only loop of Leasehold. It takes commands, stamps time, decides, commits and answers.
//!
//! Decisions are the core's, durability is the journal's; this crate puts them in the one order that is safe: **nothing
//! is told before everything it saw is durable** (N1). A grant, a refusal and a read all leave only after the commit of
//! every fact decided before them, and renewals and reads also only after a confirmation that this node is still the
//! active one (R1).
//!
//! It speaks no protocol and knows no engine. On a journal of its own a node opens it, replays, serves and stops; on one that
//! others share it stands by first, and again after it was replaced (`lives.rs`, `standby.rs`).
//!
//! - [`start`] opens a journal, replays it and gives a [`Running`] node.
//! - [`Handle::submit`] brings a command to the loop and waits for its durable reply.
//! - [`Handle::lane`] does the same for many commands at once, for whoever has many under way.
//! - [`Handle::watch`] follows what happens, with resume.
//! - [`state::State`] is the loop without threads, clocks or IO; a simulator drives exactly that.

mod awake;
mod beside;
mod call;
mod cell;
mod clock;
mod config;
mod desk;
mod driver;
mod event_id;
mod handle;
mod happened;
mod keepers;
mod lane;
mod lives;
mod mailbox;
pub mod maintenance;
mod node;
mod observer;
mod open;
mod past;
mod post;
mod replay;
mod ring;
mod running;
mod seat;
mod serving_time;
mod shared;
mod standby;
pub mod state;
mod status;
#[cfg(test)]
mod testing;
mod ticket_hash;
mod trail;
mod turns;
mod vigil;
mod warm;
mod watch;

pub use beside::{Beside, Left};
pub use call::{Call, Durable, SubmitError};
pub use clock::{Clock, ManualClock, Reading, RealClock, Sleep};
pub use config::{NodeConfig, SharedJournal};
pub use event_id::{EventId, InvalidEventId};
pub use handle::Handle;
pub use happened::{Happened, SharedEvent};
pub use lane::{Lane, Sending};
pub use observer::{NoObserver, Observer};
pub use running::{Running, StartError, StopReason, start};
pub use status::{Active, Role, Status};
pub use trail::{Settled, Stations, Trail};
pub use watch::{Watch, WatchEnd, WatchFrom, WatchItem};

/// The parts of a node that need no thread, clock or IO of their own, for simulators: together with [`state::State`]
/// they are everything that a node decides.
pub mod parts {
    pub use crate::config::{BEAT, HEARTBEAT, LOOK, RESOLVE_EVERY, STALL, TICK_MOST, WITNESS_EVERY};
    pub use crate::serving_time::{Look, ServingTime};
    pub use crate::vigil::Vigil;
    pub use crate::warm::Warm;
}
