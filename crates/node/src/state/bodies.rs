//! Facts that were decided and are not yet in a batch, as bytes.

use std::collections::VecDeque;

use bytes::Bytes;
use leasehold_core::{Event, Fact, codec};
use leasehold_types::WallTime;

/// The bodies of the batches to come. The last one is open and takes further facts; a body that would grow past the
/// journal's limit is closed and the next begun, at any fact.
#[derive(Debug)]
pub(super) struct Bodies {
    queue: VecDeque<Body>,
    limit: usize,
    decided: u64,
    /// The size of the last body taken: a good guess for the next, so that a steady load does not grow buffers.
    usual: Size,
    /// The format that the journal has (N10).
    format: u8,
    /// Goes before the next fact, whenever that comes.
    held: Option<Fact>,
}

/// How large a body is.
#[derive(Clone, Copy, Debug)]
struct Size {
    bytes: usize,
    events: usize,
}

/// The body of one batch to come.
#[derive(Debug)]
pub(super) struct Body {
    bytes: Bytes,
    open: Vec<u8>,
    facts: usize,
    end: u64,
    events: Vec<(WallTime, Event)>,
}

impl Bodies {
    pub(super) fn new(limit: usize, format: u8) -> Self {
        Self {
            queue: VecDeque::new(),
            limit,
            decided: 0,
            usual: Size { bytes: 256, events: 0 },
            format,
            held: None,
        }
    }

    /// Keeps a fact back until the next one comes: it is worth no batch of its own.
    pub(super) fn hold(&mut self, fact: Fact) {
        self.held = Some(fact);
    }

    /// Facts decided since the start.
    pub(super) fn decided(&self) -> u64 {
        self.decided
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(super) fn push(&mut self, fact: &Fact) {
        if let Some(held) = self.held.take() {
            self.push(&held);
        }
        self.decided += 1;
        let raised = match fact {
            Fact::FormatRaised { format, .. } => Some(*format),
            _ => None,
        };
        self.format = raised.unwrap_or(self.format);
        // A body has one format: a newer one begins with a body of its own.
        if self.queue.is_empty() || raised.is_some() {
            self.queue.push_back(Body::begin(self.format, self.usual));
        }
        let last = self.queue.back_mut().expect("one was just made sure of");
        let before = last.open.len();
        codec::encode_fact(fact, &mut last.open);
        if last.open.len() > self.limit && last.facts > 0 {
            let moved = last.open.split_off(before);
            let mut next =
                Body::begin(self.format, Size { bytes: self.usual.bytes.max(moved.len()), ..self.usual });
            next.open.extend_from_slice(&moved);
            self.queue.push_back(next);
        }
        let last = self.queue.back_mut().expect("one was just made sure of");
        last.facts += 1;
        last.end = self.decided;
    }

    /// Adds an event of the fact pushed last.
    pub(super) fn push_event(&mut self, at: WallTime, event: Event) {
        self.queue.back_mut().expect("its fact was pushed before it").events.push((at, event));
    }

    /// Closes the oldest body and takes it.
    pub(super) fn pop(&mut self) -> Option<Body> {
        let mut body = self.queue.pop_front()?;
        self.usual = Size { bytes: body.open.len(), events: body.events.len() };
        body.bytes = std::mem::take(&mut body.open).into();
        Some(body)
    }
}

impl Body {
    fn begin(format: u8, room_for: Size) -> Self {
        let mut open = Vec::with_capacity(room_for.bytes);
        codec::begin_body(format, &mut open);
        Self { bytes: Bytes::new(), open, facts: 0, end: 0, events: Vec::with_capacity(room_for.events) }
    }

    /// What is appended; shared, so that a clone costs nothing.
    pub(super) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(super) fn facts(&self) -> usize {
        self.facts
    }

    /// The count of decided facts up to and with its last.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    pub(super) fn into_events(self) -> Vec<(WallTime, Event)> {
        self.events
    }
}
