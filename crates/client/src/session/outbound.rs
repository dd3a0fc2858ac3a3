//! What one connection sends: everything that is there, as one frame.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf as _, BufMut as _};
use leasehold_proto::v1 as pb;
use prost::Message as _;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::tokio_stream::Stream;

use super::wire::{State, Wire};

/// Requests of one frame take about this at most: half of what a server accepts, since an opening may come with them.
const FRAME_BYTES: usize = 512 << 10;
/// Room for a few dozen requests.
const PORTION_BYTES: usize = 4 << 10;
/// An answer takes about this much; a grant more, a release less.
const ANSWER_BYTES: usize = 16;
/// The number of `ClientFrame.requests`.
const REQUESTS: u32 = 2;

/// Requests in the form in which they are sent, in portions of a frame.
#[derive(Default)]
pub(super) struct Unsent(VecDeque<Vec<u8>>);

impl Unsent {
    pub(super) fn push(&mut self, request: &pb::Request) {
        if self.0.back().is_none_or(|last| last.len() >= FRAME_BYTES) {
            self.0.push_back(Vec::with_capacity(PORTION_BYTES));
        }
        let last = self.0.back_mut().expect("there is one now");
        leasehold_proto::append_field(REQUESTS, request, last);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn pop(&mut self) -> Vec<u8> {
        self.0.pop_front().unwrap_or_default()
    }
}

/// A frame of the client.
pub(super) struct Frame {
    /// Everything but the requests.
    rest: pb::ClientFrame,
    requests: Vec<u8>,
}

#[cfg(test)]
impl Frame {
    pub(super) fn has_keep_alive(&self) -> bool {
        self.rest.keep_alive.is_some()
    }
}

/// Makes a keep-alive with what there is to report.
pub(super) type Reporter = Box<dyn Fn() -> pb::KeepAlive + Send>;

/// The frames of one connection.
pub(super) struct Outbound {
    wire: Arc<Wire>,
    /// The connection that they are for.
    link: u64,
    is_first: bool,
    report: Reporter,
}

impl Outbound {
    pub(super) fn new(wire: Arc<Wire>, link: u64, report: Reporter) -> Self {
        Self { wire, link, is_first: true, report }
    }

    fn frame(&self, state: &mut State) -> Frame {
        let requests = state.out.pop();
        let is_all = state.out.is_empty();
        let rest = pb::ClientFrame {
            open: state.open.take(),
            requests: Vec::new(),
            keep_alive: state.make_keep_alive(&self.report),
            // Nothing may follow a close.
            close: state.close && is_all,
        };
        Frame { rest, requests }
    }
}

impl Stream for Outbound {
    type Item = Frame;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Frame>> {
        let wire = Arc::clone(&self.wire);
        let mut state = wire.lock();
        if state.link != self.link {
            return Poll::Ready(None);
        }
        if state.is_quiet() && !self.is_first {
            state.waker = Some(cx.waker().clone());
            state.rested = false;
            return Poll::Pending;
        }
        // The answers of one frame wake many callers, which ask again one after the other. Stepping back once lets all
        // of them ask before the frame is made.
        if !self.is_first && !state.rested {
            state.rested = true;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.is_first = false;
        let frame = self.frame(&mut state);
        // What did not fit goes at once.
        state.rested = !state.out.is_empty();
        if frame.rest.close {
            state.link += 1;
        }
        Poll::Ready(Some(frame))
    }
}

/// The frames of a session, as bytes: requests are already in their form when a frame is made.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frames;

impl Codec for Frames {
    type Encode = Frame;
    type Decode = pb::ServerFrame;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Frames {
    type Item = Frame;
    type Error = Status;

    fn encode(&mut self, frame: Frame, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.reserve(frame.rest.encoded_len() + frame.requests.len());
        frame.rest.encode_raw(into);
        into.put_slice(&frame.requests);
        Ok(())
    }
}

impl Decoder for Frames {
    type Item = pb::ServerFrame;
    type Error = Status;

    /// From one piece of memory, in which it lies, and not through the buffer, which looks at every byte anew.
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<pb::ServerFrame>, Status> {
        let answers = Vec::with_capacity(from.remaining() / ANSWER_BYTES);
        let mut frame = pb::ServerFrame { answers, ..pb::ServerFrame::default() };
        let merged = match from.chunk() {
            whole if whole.len() == from.remaining() => frame.merge(whole),
            _ => frame.merge(&mut *from),
        };
        merged.map_err(|error| Status::internal(error.to_string()))?;
        from.advance(from.remaining());
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use leasehold_proto::v1::request::Ask;

    use super::*;

    fn request(id: u64, text: &str) -> pb::Request {
        let proclaim = pb::StreamProclaim { value: text.to_owned(), ..pb::StreamProclaim::default() };
        pb::Request { id, ask: Some(Ask::Proclaim(proclaim)) }
    }

    #[test]
    fn a_portion_is_the_requests_of_a_frame() {
        let mut unsent = Unsent::default();
        let requests: Vec<_> = (1..=3).map(|id| request(id, "x")).collect();
        for request in &requests {
            unsent.push(request);
        }
        let frame = pb::ClientFrame::decode(&*unsent.pop()).expect("it is a frame");
        assert_eq!(frame.requests, requests);
        assert!(unsent.is_empty());
    }

    #[test]
    fn no_portion_is_much_larger_than_a_frame_may_be() {
        let mut unsent = Unsent::default();
        let text = "x".repeat(1_000);
        (0..2_000).for_each(|id| unsent.push(&request(id, &text)));
        let mut ids = 0..;
        while !unsent.is_empty() {
            let portion = unsent.pop();
            assert!(portion.len() < FRAME_BYTES + 2_000);
            let frame = pb::ClientFrame::decode(&*portion).expect("it is a frame");
            assert!(frame.requests.iter().all(|request| Some(request.id) == ids.next()), "in order");
        }
        assert_eq!(ids.next(), Some(2_000), "all of them");
    }
}
