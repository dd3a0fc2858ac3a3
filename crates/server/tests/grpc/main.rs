//! The gRPC surface over real sockets: unary calls, the session stream with raw frames, health and reflection.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod cluster;
mod stream;
mod support;
mod traces;
mod unary;
