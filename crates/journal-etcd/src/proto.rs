//! The few messages of etcd's v3 API that a journal needs, with the field numbers of that API.
//!
//! Written out instead of generated: no compiler of proto files is needed to build, and a client with its own retries
//! cannot slip in.

use bytes::Bytes;

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResponseHeader {
    #[prost(int64, tag = "3")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct KeyValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
    #[prost(int64, tag = "3")]
    pub(crate) limit: i64,
    #[prost(int64, tag = "4")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RangeResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) kvs: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PutRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct PutResponse {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeleteRangeRequest {
    #[prost(bytes = "bytes", tag = "1")]
    pub(crate) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) range_end: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct DeleteRangeResponse {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestOp {
    #[prost(oneof = "Operation", tags = "1, 2, 3")]
    pub(crate) operation: Option<Operation>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Operation {
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    #[prost(message, tag = "2")]
    Put(PutRequest),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeRequest),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ResponseOp {
    #[prost(oneof = "Answer", tags = "1, 2, 3")]
    pub(crate) answer: Option<Answer>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Answer {
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    #[prost(message, tag = "2")]
    Put(PutResponse),
    #[prost(message, tag = "3")]
    Delete(DeleteRangeResponse),
}

/// The only comparison used: is equal, which is the value 0 of etcd's list.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Compare {
    #[prost(int32, tag = "1")]
    pub(crate) result: i32,
    #[prost(int32, tag = "2")]
    pub(crate) target: i32,
    #[prost(bytes = "bytes", tag = "3")]
    pub(crate) key: Bytes,
    #[prost(oneof = "Target", tags = "4, 7")]
    pub(crate) to: Option<Target>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(crate) enum Target {
    #[prost(int64, tag = "4")]
    Version(i64),
    #[prost(bytes = "bytes", tag = "7")]
    Value(Bytes),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TxnRequest {
    #[prost(message, repeated, tag = "1")]
    pub(crate) compare: Vec<Compare>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) success: Vec<RequestOp>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) failure: Vec<RequestOp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct TxnResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(bool, tag = "2")]
    pub(crate) succeeded: bool,
    #[prost(message, repeated, tag = "3")]
    pub(crate) responses: Vec<ResponseOp>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CompactionRequest {
    #[prost(int64, tag = "1")]
    pub(crate) revision: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct CompactionResponse {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusRequest {}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct StatusResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<ResponseHeader>,
    #[prost(string, tag = "2")]
    pub(crate) version: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AuthenticateRequest {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) password: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AuthenticateResponse {
    #[prost(string, tag = "2")]
    pub(crate) token: String,
}

/// The value of this key is this.
pub(crate) fn is(key: &Bytes, value: &Bytes) -> Compare {
    Compare { result: 0, target: 3, key: key.clone(), to: Some(Target::Value(value.clone())) }
}

/// There is no such key.
pub(crate) fn is_missing(key: &Bytes) -> Compare {
    Compare { result: 0, target: 0, key: key.clone(), to: Some(Target::Version(0)) }
}

pub(crate) fn put(key: &Bytes, value: Bytes) -> RequestOp {
    RequestOp { operation: Some(Operation::Put(PutRequest { key: key.clone(), value })) }
}

pub(crate) fn get(key: &Bytes) -> RequestOp {
    range(key, &Bytes::new(), 0)
}

/// The keys from `from` up to, not including, `to`.
pub(crate) fn range(from: &Bytes, to: &Bytes, limit: i64) -> RequestOp {
    let range = RangeRequest { key: from.clone(), range_end: to.clone(), limit, revision: 0 };
    RequestOp { operation: Some(Operation::Range(range)) }
}

/// Removes the keys from `from` up to, not including, `to`.
pub(crate) fn delete(from: &Bytes, to: &Bytes) -> RequestOp {
    let delete = DeleteRangeRequest { key: from.clone(), range_end: to.clone() };
    RequestOp { operation: Some(Operation::Delete(delete)) }
}

impl TxnResponse {
    /// The keys and values that the operation at this place has read.
    pub(crate) fn read(&self, index: usize) -> &[KeyValue] {
        match self.responses.get(index).and_then(|response| response.answer.as_ref()) {
            Some(Answer::Range(range)) => &range.kvs,
            _ => &[],
        }
    }

    /// The value that the operation at this place has read, if the key was there.
    pub(crate) fn value(&self, index: usize) -> Option<&Bytes> {
        self.read(index).first().map(|kv| &kv.value)
    }

    pub(crate) fn revision(&self) -> i64 {
        self.header.as_ref().map_or(0, |header| header.revision)
    }
}
