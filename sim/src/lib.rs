//! A deterministic simulator of clients, nodes, a journal engine, fences and the network between them.
//!
//! What decides is real: the lock table, the node's loop ([`leasehold_node::state::State`]), its sense of time and of its
//! turn ([`leasehold_node::parts`]), the memory journal that passes the conformance suite, the client's deadline
//! arithmetic, the fence's decision. What is simulated is everything in between: time, threads, network, disks. All
//! chance comes from one seed, so that the same seed gives the same run, and a failing one is repeated by one command.
//!
//! A run first lets things go wrong, with every promise of a history checked as it happens, and then heals everything
//! and asks whether what is alive gets on. [`run()`] does one; the gate shows that deliberate mistakes are caught.
//!
//! It opens no socket, reads no clock and starts no thread. Nothing depends on it.

mod chance;
mod client;
mod clock;
mod disk;
mod engine;
mod event;
mod faults;
mod fence;
mod judge;
mod mistake;
pub mod model;
mod net;
mod node;
mod options;
mod run;
mod timeline;
mod trace;
mod world;

pub use chance::Chance;
pub use mistake::Mistake;
pub use options::Options;
pub use run::{Outcome, run, shrink};
pub use world::Failure;
