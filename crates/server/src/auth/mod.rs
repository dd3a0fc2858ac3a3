//! Who asks, and whether they may.
//!
//! There is one way in for everybody: HTTP, gRPC calls, every operation in a session stream, requests that another node
//! passed on, the console. [`Access::admit`] says who a request comes from; [`authorize`] says whether that caller may
//! have a command carried out, and is asked for every single command on its way to the node. Whatever is not allowed
//! there is refused: a command without a declared demand does not compile, nor does a path ([`demand_of`]).
//!
//! On an open server everybody is [`Caller::Open`] and may do everything, which costs one comparison.

mod access;
mod bearer;
mod demand;
mod first;
mod principal;
mod tenants;

pub(crate) use access::{Access, ConnectionCaller, must_still_be_admitted};
pub(crate) use bearer::Bearer;
pub(crate) use demand::{Demand, authorize, demand_of};
pub(crate) use first::make_first;
pub(crate) use principal::Caller;
pub(crate) use tenants::{TenantRoom, Tenants, WatchPlace};

use leasehold_api::{ErrorCode, Problem};

fn unauthenticated(detail: &str) -> Problem {
    Problem::new(ErrorCode::Unauthenticated, detail)
}

fn forbidden(detail: impl Into<String>) -> Problem {
    Problem::new(ErrorCode::Forbidden, detail)
}
