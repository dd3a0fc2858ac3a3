//! A node of the model.

use super::engine::{Entry, Fact, Outcome};

/// A node waits this long from deciding before it ends a lease. Clocks do not drift here; that is the simulator's affair.
pub(crate) const ARMED: u8 = 1;
/// A client counts on this much from sending.
pub(crate) const TTL: u8 = 1;

/// See the module.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Node {
    /// It stands still.
    pub paused: bool,
    /// What it believes while it serves.
    pub active: Option<Active>,
}

/// What a serving node has in memory.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Active {
    /// Its epoch.
    pub epoch: u8,
    /// How many slots it knows to be committed.
    pub durable: u8,
    /// Who holds the lock: client, token, deadline; decided, perhaps not durable yet.
    pub holder: Option<(u8, u8, u8)>,
    /// The largest token.
    pub last_token: u8,
    /// Askings that were granted, ever: so that a retry is not another grant.
    pub granted: Vec<(u8, u8, u8)>,
    /// The append in flight.
    pub work: Option<Work>,
    /// Renewals that wait for a confirmation: client, and when it was sent.
    pub renewals: Vec<(u8, u8)>,
}

/// An append whose outcome is awaited.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Work {
    /// For which slot.
    pub slot: u8,
    /// What.
    pub fact: Fact,
    /// It is to be sent, for the first time or again.
    pub unsent: bool,
    /// What the engine said, on its way back.
    pub outcome: Option<Outcome>,
}

impl Active {
    /// A node that replays these slots and serves from now on: the holder has its full time again.
    pub(crate) fn new(epoch: u8, slots: &[Entry], now: u8) -> Self {
        let (mut holder, mut last_token, mut granted) = (None, 0, Vec::new());
        for entry in slots {
            match entry.fact {
                Fact::Granted { client, ask, token } => {
                    holder = Some((client, token, now + ARMED));
                    last_token = token;
                    granted.push((client, ask, token));
                }
                Fact::Released { .. } | Fact::Expired { .. } => holder = None,
            }
        }
        let durable = u8::try_from(slots.len()).unwrap_or(u8::MAX);
        Self { epoch, durable, holder, last_token, granted, work: None, renewals: Vec::new() }
    }

    /// Decides a fact: it is applied at once, and told when it is durable.
    pub(crate) fn decide(&mut self, fact: Fact, now: u8) {
        match fact {
            Fact::Granted { client, ask, token } => {
                self.holder = Some((client, token, now + ARMED));
                self.last_token = token;
                self.granted.push((client, ask, token));
            }
            Fact::Released { .. } | Fact::Expired { .. } => self.holder = None,
        }
        self.work = Some(Work { slot: self.durable + 1, fact, unsent: true, outcome: None });
    }
}
