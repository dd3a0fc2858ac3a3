//! One part of a call, and how long it took.

use std::borrow::Cow;
use std::time::Duration;

use crate::context::TraceContext;
use crate::tracer::{Tracer, now};

/// Which side of a call a span is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Inside of a process.
    Internal,
    /// Whoever answers.
    Server,
    /// Whoever asks.
    Client,
}

/// What is said of a span.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A span that is over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Span {
    /// Itself.
    pub context: TraceContext,
    /// The span that it is a part of.
    pub parent: Option<TraceContext>,
    /// What was done; few different ones, so never a resource.
    pub name: Cow<'static, str>,
    /// Which side.
    pub kind: Kind,
    /// When it began, since 1970.
    pub began: Duration,
    /// When it ended, since 1970.
    pub ended: Duration,
    /// What else is known.
    pub attributes: Vec<(&'static str, Value)>,
    /// Why it failed, where it did.
    pub error: Option<String>,
}

/// A span that has begun. It ends when it is dropped.
#[derive(Debug)]
pub struct OpenSpan {
    tracer: Tracer,
    /// Absent once it was told.
    span: Option<Span>,
}

impl OpenSpan {
    pub(crate) fn new(tracer: Tracer, span: Span) -> Self {
        Self { tracer, span: Some(span) }
    }

    /// What others are told, so that their spans become parts of this one.
    pub fn context(&self) -> TraceContext {
        self.span.as_ref().expect("a span is there until it is dropped").context
    }

    /// Says something of it.
    pub fn set(&mut self, name: &'static str, value: impl Into<Value>) {
        if let Some(span) = &mut self.span {
            span.attributes.push((name, value.into()));
        }
    }

    /// Says that what was done failed.
    pub fn fail(&mut self, why: impl Into<String>) {
        if let Some(span) = &mut self.span {
            span.error = Some(why.into());
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut span) = self.span.take() {
            // A clock that was set back must not make a span that ends before it begins.
            span.ended = now().max(span.began);
            self.tracer.tell(span);
        }
    }
}
