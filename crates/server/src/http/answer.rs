//! What leaves the server: whole answers, problems, streams.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::{Body, Frame, SizeHint};
use leasehold_api::{ErrorCode, PROBLEM_CONTENT_TYPE, Problem};
use serde::Serialize;

use super::connection::InFlight;

/// An answer on its way out.
pub(crate) type Answer = Response<AnswerBody>;

/// The names of the headers that every answer carries.
pub(crate) static EPOCH: HeaderName = HeaderName::from_static(leasehold_api::EPOCH_HEADER);
pub(crate) static DURABILITY: HeaderName = HeaderName::from_static(leasehold_api::DURABILITY_HEADER);

/// The body of an answer.
pub(crate) enum AnswerBody {
    /// All of it, once.
    Whole(Bytes),
    /// Pieces as they come; the connection is busy as long as this lives.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>, Option<InFlight>),
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Stream(stream, _) => {
                stream.as_mut().poll_next(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Stream(..) => SizeHint::default(),
        }
    }
}

/// A call that failed, with what belongs into the head of its answer.
#[derive(Debug)]
pub(crate) struct Failure {
    problem: Box<Problem>,
    allow: Option<&'static str>,
}

impl Failure {
    /// The path has other methods.
    pub(crate) fn method(allow: &'static str) -> Self {
        let problem = Problem::new(ErrorCode::MethodNotAllowed, format!("this path has {allow}"));
        Self { problem: Box::new(problem), allow: Some(allow) }
    }

    /// Why.
    pub(crate) fn code(&self) -> ErrorCode {
        self.problem.code
    }

    /// The answer.
    pub(crate) fn into_answer(self) -> Answer {
        let status = StatusCode::from_u16(self.problem.status).expect("every code has a valid status");
        let mut answer = whole(status, PROBLEM_CONTENT_TYPE, encoded(&self.problem));
        if let Some(allow) = self.allow {
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
        }
        if self.code() == ErrorCode::TooLarge {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self { problem: Box::new(problem), allow: None }
    }
}

/// A whole answer.
pub(crate) fn whole(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(AnswerBody::Whole(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Lease ids are capabilities, and every answer is true for a moment only.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// 200 with a value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Answer {
    whole(StatusCode::OK, "application/json", encoded(value))
}

fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire types have string keys and no failing parts")
}
