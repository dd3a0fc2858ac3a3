//! The HTTP surface over real sockets: every call, every class of error, streams, waiters, slow and large requests.

mod bad_input;
mod calls;
mod events;
mod guard;
mod limits;
mod observe;
mod retries;
mod sessions;
mod support;
mod waiters;
