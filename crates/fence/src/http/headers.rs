//! What a request presents.

use std::num::NonZeroU64;

use http::HeaderMap;
use leasehold_types::{FencingToken, Permit, ResourceName};

use crate::signed::Checker;
use crate::{Ask, Fence, Grant, Kind, Refusal};

/// The fencing token: a number, or what the service signed.
pub const TOKEN_HEADER: &str = "x-fencing-token";
/// The lock that the token is of; without it, the lock that guards the fence.
pub const RESOURCE_HEADER: &str = "x-fencing-resource";
/// The permit of a semaphore's grant.
pub const PERMIT_HEADER: &str = "x-fencing-permit";
/// Which write of the grant this is, counted from 1.
pub const STEP_HEADER: &str = "x-fencing-step";

/// What a request asks of which fence; the layer leaves it in the request's extensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// The fence.
    pub fence: Fence,
    /// What is asked; `None` when the request came without a token.
    pub ask: Option<Ask>,
}

/// A header that is there and cannot be read. Answered with 400: a token that was meant and mistyped is no missing one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the header {name} is not valid")]
pub struct InvalidHeader {
    /// Its name.
    pub name: &'static str,
}

/// What a request came with: nothing, an ask, or a token that does not count.
pub(crate) type Presented = Result<Option<Ask>, Refusal>;

/// Reads the headers of a request to this fence. A signed token says itself which lock and which permit it is of.
pub(crate) fn read(
    headers: &HeaderMap,
    fence: &Fence,
    checker: Option<&Checker>,
) -> Result<Presented, InvalidHeader> {
    let text = parsed(headers, TOKEN_HEADER, |text| Some(text.to_owned()))?;
    let resource = parsed(headers, RESOURCE_HEADER, |text| ResourceName::new(text).ok())?;
    let permit = parsed(headers, PERMIT_HEADER, |text| u32::try_from(number(text)?).ok())?;
    let step = parsed(headers, STEP_HEADER, |text| NonZeroU64::new(number(text)?))?;
    let Some(text) = text else { return Ok(Ok(None)) };
    let grant = match checker.filter(|checker| checker.concerns(&text)) {
        Some(checker) => match checker.check(&text) {
            Ok(grant) => grant,
            Err(refusal) => return Ok(Err(refusal)),
        },
        None => {
            let token = number(&text).and_then(|number| FencingToken::new(number).ok());
            let kind = permit.map_or(Kind::Exclusive, |permit| Kind::Permit(Permit(permit)));
            let resource = resource.unwrap_or_else(|| fence.guard().clone());
            Grant::new(resource, token.ok_or(InvalidHeader { name: TOKEN_HEADER })?, kind)
        }
    };
    match step {
        Some(step) => Ok(Ok(Some(grant.step(step).map_err(|_| InvalidHeader { name: STEP_HEADER })?))),
        None => Ok(Ok(Some(grant.write()))),
    }
}

/// The one value of a header; two of the same name are no value.
fn parsed<T>(
    headers: &HeaderMap,
    name: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, InvalidHeader> {
    let invalid = InvalidHeader { name };
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(invalid),
        (Some(value), None) => {
            let text = std::str::from_utf8(value.as_bytes()).map_err(|_| invalid.clone())?;
            parse(text).map(Some).ok_or(invalid)
        }
    }
}

/// Digits alone: no sign, no space, no exponent.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
