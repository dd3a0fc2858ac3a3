//! Errors on the wire of gRPC: the same closed list as over HTTP.

use leasehold_api::{Problem, SideEffects};
use leasehold_proto::v1 as pb;
use prost::Message;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Code, Status};

use super::convert;

/// A problem as it stands in a stream.
pub(super) fn wire(problem: Problem) -> pb::Problem {
    pb::Problem {
        code: problem.code.as_str().to_owned(),
        detail: problem.detail,
        retryable: problem.retryable,
        side_effects_unknown: problem.side_effects == SideEffects::Unknown,
        reason: problem.reason.map(|reason| convert::end_reason(reason).into()),
        fencing_token: problem.fencing_token.map(leasehold_types::FencingToken::get),
        current_tokens: problem.current_tokens.unwrap_or_default(),
    }
}

/// A problem as the status of a unary call: the code for every gRPC client, the whole problem for ours.
pub(crate) fn status(problem: Problem) -> Status {
    let code = Code::from_i32(i32::try_from(problem.code.grpc_status()).expect("a small number"));
    let detail = problem.detail.clone();
    let mut metadata = MetadataMap::new();
    metadata.insert("leasehold-code", MetadataValue::from_static(problem.code.as_str()));
    let bytes = wire(problem).encode_to_vec();
    metadata.insert_bin("leasehold-problem-bin", MetadataValue::from_bytes(&bytes));
    Status::with_metadata(code, detail, metadata)
}
