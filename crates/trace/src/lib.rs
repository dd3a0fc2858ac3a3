//! Traces of Leasehold: which trace a call belongs to, how long each part of it took, and the way to a collector.
//!
//! A client and a server each have a [`Tracer`], or none. A span is begun, and told to the collector when it ends; spans
//! of one call find each other by the [`TraceContext`] that travels with it, as the W3C `traceparent` says. Nobody who is
//! traced ever waits: spans go through a bounded queue to a task of their own, and are dropped and counted when the
//! collector is slow or gone.
//!
//! It is not a general tracing library: it knows spans, and OTLP over HTTP as the one way out. Why it is not
//! the OpenTelemetry SDK: see `docs/decisions/0023-traces.md`.
//!
//! - [`TraceContext`] is read from and written to `traceparent`.
//! - [`Tracer::begin`] begins an [`OpenSpan`], which ends when it is dropped; [`Tracer::record`] tells of one that is over.
//! - [`Tracer::flush`] waits until everything so far has left.

mod context;
mod exporter;
mod otlp;
mod span;
mod tracer;

pub use context::{TRACEPARENT, TraceContext};
pub use exporter::InvalidEndpoint;
pub use span::{Kind, OpenSpan, Span, Value};
pub use tracer::{Settings, Tracer, now};
