//! Between the wire and the vocabulary of the table.

mod answer;
mod command;
mod election;
mod problem;

pub(crate) use answer::{
    audit_record, explained, granted, hex, holder, not_granted, record, renewed, session, session_renewed,
};
pub(crate) use command::{acquire, force_release, open_session, operator, renew, renew_session};
pub(crate) use election::{campaign, elected, election_resource, leader, not_elected, value};
pub(crate) use problem::{bad_field, refusal_problem, submit_problem};
