//! The messages of OTLP that a trace needs, by their field numbers in `opentelemetry/proto/trace/v1` and `collector/trace/v1`.

use std::time::Duration;

use prost::{Message, Oneof};

use crate::span;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub(crate) attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub(crate) scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Scope {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Span {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    pub(crate) parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub(crate) name: String,
    #[prost(int32, tag = "6")]
    pub(crate) kind: i32,
    #[prost(fixed64, tag = "7")]
    pub(crate) start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub(crate) end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub(crate) attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub(crate) status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(int32, tag = "3")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    #[prost(message, optional, tag = "2")]
    pub(crate) value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 3")]
    pub(crate) value: Option<Any>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum Any {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
}

const KIND_INTERNAL: i32 = 1;
const KIND_SERVER: i32 = 2;
const KIND_CLIENT: i32 = 3;
const STATUS_ERROR: i32 = 2;

impl From<span::Span> for Span {
    fn from(span: span::Span) -> Self {
        Self {
            trace_id: span.context.trace_id().to_vec(),
            span_id: span.context.span_id().to_vec(),
            parent_span_id: span.parent.map_or_else(Vec::new, |parent| parent.span_id().to_vec()),
            name: span.name.into_owned(),
            kind: match span.kind {
                span::Kind::Internal => KIND_INTERNAL,
                span::Kind::Server => KIND_SERVER,
                span::Kind::Client => KIND_CLIENT,
            },
            start_time_unix_nano: nanos(span.began),
            end_time_unix_nano: nanos(span.ended),
            attributes: span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect(),
            status: span.error.map(|message| Status { message, code: STATUS_ERROR }),
        }
    }
}

impl KeyValue {
    pub(crate) fn new(key: &str, value: span::Value) -> Self {
        let value = match value {
            span::Value::Text(text) => Any::Text(text.into_owned()),
            span::Value::Number(number) => Any::Number(number),
        };
        Self { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
    }
}

fn nanos(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}
