//! A lock table under watch: whatever is done to it, every promise that can be checked is checked after each step.

#![allow(dead_code, reason = "each test binary uses a part of it")]

pub(crate) mod ids;
mod promises;

use std::convert::Infallible;

use bytes::Bytes;
use leasehold_core::codec::{self, SnapshotDecoder};
use leasehold_core::{
    Decision, Event, EventAt, EventKind, Fact, Journaled, LockTable, Request, Settings, invariants,
};
use leasehold_types::{Durability, Now, Time, WallTime};

use promises::Promises;

/// How many facts one tick may make, as a node would bound it.
const MOST_FACTS: usize = 64;
/// The wall clock when the world begins; nothing may depend on it.
const WALL_BEGINS_MS: u64 = 1_800_000_000_000;

/// A table, what its facts say when they are replayed, and what was promised to clients.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) table: LockTable,
    settings: Settings,
    /// Every fact since the beginning, through bytes and back.
    replica: Journaled,
    /// A snapshot at some point, and the facts since (S15).
    from_snapshot: Journaled,
    /// Real time. The table's own time begins anew with each life of the node.
    pub(crate) clock_ms: u64,
    born_ms: u64,
    last_token: u64,
    promises: Promises,
    checked: u64,
}

/// The state is followed from a snapshot at every step, and compared at some: comparing is dear.
const COMPARED_EVERY: u64 = 8;

impl World {
    pub(crate) fn new(durability: Durability) -> Self {
        let settings = Settings::on(durability);
        Self {
            table: LockTable::restore(Journaled::new(), settings, Now::default()),
            settings,
            replica: Journaled::new(),
            from_snapshot: Journaled::new(),
            clock_ms: 0,
            born_ms: 0,
            last_token: 0,
            promises: Promises::default(),
            checked: 0,
        }
    }

    pub(crate) fn now(&self) -> Now {
        let wall = WallTime(WALL_BEGINS_MS + self.clock_ms);
        Now { time: Time(self.clock_ms - self.born_ms), wall }
    }

    pub(crate) fn decide(&mut self, request: Request) -> Decision {
        let decision = self.table.decide(request, self.now());
        self.absorb(&decision);
        decision
    }

    /// One tick, as a node whose time has come.
    pub(crate) fn tick(&mut self) -> Decision {
        let decision = self.table.tick(self.now(), MOST_FACTS);
        self.absorb(&decision);
        decision
    }

    /// When the table wants its next tick, in real time.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        self.table.next_deadline().map(|at| at.0 + self.born_ms)
    }

    /// The node crashes and another takes over what was journaled, read from a snapshot in chunks of this size.
    pub(crate) fn restart(&mut self, chunk_bytes: usize) {
        let restored = through_bytes(self.table.journaled(), chunk_bytes);
        self.born_ms = self.clock_ms.saturating_sub(self.clock_ms % 7);
        self.table = LockTable::restore(restored, self.settings, self.now());
        self.check();
    }

    /// From here on the state is also followed from a snapshot taken now.
    pub(crate) fn take_snapshot(&mut self) {
        let live = self.table.journaled();
        invariants::states_are_equal(live, &self.from_snapshot).unwrap_or_else(|broken| panic!("{broken}"));
        self.from_snapshot = through_bytes(self.table.journaled(), 64);
    }

    pub(crate) fn set_durability(&mut self, durability: Durability) {
        self.settings = Settings::on(durability);
    }

    fn absorb(&mut self, decision: &Decision) {
        let facts = facts_through_bytes(decision);
        let mut events = Vec::new();
        for fact in &facts {
            self.replica.replay(fact, &mut events);
        }
        self.from_snapshot.replay_untold(&facts);
        assert_eq!(journaled_events(decision), events, "replay makes the same events (S14)");
        self.last_token = invariants::tokens_grow(&decision.facts, self.last_token)
            .unwrap_or_else(|broken| panic!("{broken}"));
        let unconfirmed = decision.facts.is_empty() && !decision.replies.is_empty();
        assert_eq!(
            decision.confirm, unconfirmed,
            "whoever is told without a commit waits for a confirmation (R1)"
        );
        self.promises.hold(decision, self.clock_ms);
        self.check();
    }

    fn check(&mut self) {
        self.checked += 1;
        let live = self.table.journaled();
        let mut checks =
            vec![invariants::check(&self.table), invariants::states_are_equal(live, &self.replica)];
        if self.checked.is_multiple_of(COMPARED_EVERY) {
            checks.push(invariants::states_are_equal(live, &self.from_snapshot));
        }
        for check in checks {
            check.unwrap_or_else(|broken| panic!("{broken}"));
        }
    }
}

/// A state as its snapshot gives it back.
pub(crate) fn through_bytes(state: &Journaled, chunk_bytes: usize) -> Journaled {
    let mut decoder = SnapshotDecoder::default();
    for chunk in snapshot_chunks(state, chunk_bytes) {
        decoder.chunk(&chunk).expect("a snapshot is read as it was written");
    }
    decoder.finish().expect("a snapshot is whole")
}

pub(crate) fn snapshot_chunks(state: &Journaled, chunk_bytes: usize) -> Vec<Bytes> {
    let mut chunks = Vec::new();
    let written: Result<(), Infallible> = codec::encode_snapshot(state, chunk_bytes, &mut |chunk| {
        chunks.push(chunk);
        Ok(())
    });
    written.expect("the sink never fails");
    chunks
}

/// The snapshot as chunks of one record each: with chunks that hold next to nothing every record has its own.
pub(crate) fn snapshot_records(state: &Journaled) -> Vec<Bytes> {
    let (mut records, mut begun) = (Vec::new(), Vec::new());
    for chunk in snapshot_chunks(state, 2) {
        let (format, goes_on) = (chunk[0] & 0x7f, chunk[0] & 0x80 != 0);
        if begun.is_empty() {
            begun.push(format);
        }
        begun.extend_from_slice(&chunk[1..]);
        if !goes_on {
            records.push(std::mem::take(&mut begun).into());
        }
    }
    records
}

fn facts_through_bytes(decision: &Decision) -> Vec<Fact> {
    let mut body = Vec::new();
    let format = decision.facts.iter().map(Fact::format).max().unwrap_or(codec::FIRST_FORMAT);
    codec::begin_body(format, &mut body);
    for fact in &decision.facts {
        codec::encode_fact(fact, &mut body);
    }
    let decoded = codec::decode_body(&body).expect("facts are read as they were written");
    assert_eq!(decoded, decision.facts, "facts survive their bytes");
    decoded
}

/// The events that stand in the journal, without what only the live table knows.
fn journaled_events(decision: &Decision) -> Vec<Event> {
    let mut events = Vec::new();
    let mut last = 0;
    for (at, event) in &decision.events {
        let is_journaled = *at != EventAt::Nowhere;
        assert_eq!(
            event.kind.is_journaled(),
            is_journaled,
            "{event:?} says whether it has a place in the journal"
        );
        let EventAt::Fact(fact) = at else { continue };
        assert!(*fact >= last && *fact < decision.facts.len(), "events stand in the order of their facts");
        last = *fact;
        let kind = match event.kind {
            EventKind::Granted { .. } => EventKind::Granted { waited_ms: 0 },
            EventKind::Ended { reason, max_hold, .. } => EventKind::Ended { reason, max_hold, held_ms: 0 },
            other => other,
        };
        events.push(Event { kind, ..event.clone() });
    }
    events
}
