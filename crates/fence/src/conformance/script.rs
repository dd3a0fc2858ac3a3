//! Acts at a fence and their answers, as words: the table of cases is read by people.

use std::num::NonZeroU64;

use leasehold_types::{FencingToken, Permit, ResourceName};

use super::{Outcome, Protected};
use crate::{Ask, Fence, FenceError, Grant, Kind, Rejection};

/// One act at a fence.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Write(Option<Ask>),
    Claim(Grant),
}

impl Act {
    /// Reads `none`, or `[claim] [shared | permit N | other] TOKEN[.STEP]`.
    pub(super) fn parse(fence: &Fence, text: &str) -> Self {
        if text == "none" {
            return Self::Write(None);
        }
        let (claims, text) = text.strip_prefix("claim ").map_or((false, text), |rest| (true, rest));
        let (resource, kind, token) = scope(fence, text);
        let (token, step) = token.split_once('.').map_or((token, None), |(token, step)| (token, Some(step)));
        let token = FencingToken::new(number(token)).expect("the table has valid tokens");
        let grant = Grant::new(resource, token, kind);
        match step.map(|step| NonZeroU64::new(number(step)).expect("steps are counted from 1")) {
            _ if claims => Self::Claim(grant),
            Some(step) => Self::Write(Some(grant.step(step).expect("the table has no shared steps"))),
            None => Self::Write(Some(grant.write())),
        }
    }

    /// Does it; a write appends the line.
    pub(super) async fn run(&self, protected: &impl Protected, fence: &Fence, line: &str) -> Outcome {
        match self {
            Self::Write(ask) => protected.append(fence, ask.as_ref(), line).await,
            Self::Claim(grant) => protected.claim(fence, grant).await,
        }
    }

    /// Whether a line is there after the act was admitted.
    pub(super) fn writes(&self) -> bool {
        matches!(self, Self::Write(_))
    }
}

fn scope<'a>(fence: &Fence, text: &'a str) -> (ResourceName, Kind, &'a str) {
    let guard = fence.guard().clone();
    match *text.split(' ').collect::<Vec<_>>() {
        [token] => (guard, Kind::Exclusive, token),
        ["shared", token] => (guard, Kind::Shared, token),
        ["permit", permit, token] => {
            (guard, Kind::Permit(Permit(u32::try_from(number(permit)).expect("permits are small"))), token)
        }
        ["other", token] => {
            (ResourceName::new("another lock").expect("a valid name"), Kind::Exclusive, token)
        }
        _ => panic!("no act: {text}"),
    }
}

fn number(text: &str) -> u64 {
    text.parse().unwrap_or_else(|_| panic!("no number: {text}"))
}

/// The answer in the words of the table.
pub(super) fn answer(outcome: &Outcome) -> String {
    match outcome {
        Ok(()) => "admitted".to_owned(),
        Err(FenceError::Rejected(rejection)) => rejected(rejection),
        Err(error) => format!("failed: {error}"),
    }
}

fn rejected(rejection: &Rejection) -> String {
    let word = rejection.as_str();
    match rejection {
        Rejection::Stale { highest, .. } => format!("{word} {highest}"),
        Rejection::OutOfOrder { expected, .. } => format!("{word} {expected}"),
        _ => word.to_owned(),
    }
}
