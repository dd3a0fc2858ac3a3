//! Admission: from what a request shows to who it comes from.

use std::sync::{Arc, Mutex, PoisonError};

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use leasehold_api::Problem;
use leasehold_core::{Credential, Credentials, Proof};
use leasehold_node::{Clock, Handle};

use super::bearer::Bearer;
use super::principal::{Caller, Principal};
use super::unauthenticated;
use crate::forwarding::ForwardedIdentity;

/// Who may come in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// Everybody who reaches the server.
    Open,
    /// Those who show who they are.
    Protected,
}

/// What is known of the caller at the other end of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCaller {
    /// Alternative names of the certificate that the client has proved to own.
    sans: Vec<Box<str>>,
    /// Who the last request came from: the next one comes from the same, nearly always.
    last: Mutex<Option<Admitted>>,
}

#[derive(Clone, Debug)]
struct Admitted {
    shown: Option<HeaderValue>,
    principal: Arc<Principal>,
    /// What it was looked up in; as soon as there is another list, it is looked up again.
    credentials: Arc<Credentials>,
}

impl ConnectionCaller {
    /// A connection whose client has proved to own a certificate with these names.
    pub(crate) fn with_certificate(sans: Vec<Box<str>>) -> Self {
        Self { sans, last: Mutex::default() }
    }

    /// The name in the caller's certificate that the active node is to be told, when it was this node that saw it: one
    /// that a credential stands for.
    pub(crate) fn vouched(&self, headers: &HeaderMap, credentials: &Credentials) -> Option<HeaderValue> {
        if headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let known = self.sans.iter().find(|san| credentials.by_san(san).is_some());
        HeaderValue::from_str(known.or_else(|| self.sans.first())?).ok()
    }

    fn last(&self) -> Option<Admitted> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn remember(&self, admitted: Admitted) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted);
    }
}

impl Access {
    /// Who a request comes from.
    ///
    /// # Errors
    /// `unauthenticated`, which does not say what was wrong: unknown, revoked and expired look the same.
    pub(crate) fn admit(
        self,
        headers: &HeaderMap,
        connection: &ConnectionCaller,
        passed_on: Option<&ForwardedIdentity>,
        handle: &Handle,
        clock: &dyn Clock,
    ) -> Result<Caller, Problem> {
        let principal = match (self, passed_on) {
            (Self::Open, _) => return Ok(Caller::Open),
            (Self::Protected, None) => known(headers, connection, &handle.credentials())?,
            (Self::Protected, Some(ForwardedIdentity(san))) => {
                let san = san.to_str().map_err(|_| not_accepted())?;
                let credentials = handle.credentials();
                Arc::new(Principal::of(credentials.by_san(san).ok_or_else(not_accepted)?))
            }
        };
        match principal.is_expired(clock.read().wall) {
            true => Err(not_accepted()),
            false => Ok(Caller::Known(principal)),
        }
    }
}

fn known(
    headers: &HeaderMap,
    connection: &ConnectionCaller,
    credentials: &Arc<Credentials>,
) -> Result<Arc<Principal>, Problem> {
    let mut shown = headers.get_all(AUTHORIZATION).iter();
    let (shown, more) = (shown.next(), shown.next());
    if more.is_some() {
        return Err(unauthenticated("Authorization is there more than once"));
    }
    if let Some(last) = connection.last()
        && last.shown.as_ref() == shown
        && Arc::ptr_eq(&last.credentials, credentials)
    {
        return Ok(last.principal);
    }
    let principal = Arc::new(Principal::of(look_up(shown, &connection.sans, credentials)?));
    let (shown, credentials) = (shown.cloned(), Arc::clone(credentials));
    connection.remember(Admitted { shown, principal: Arc::clone(&principal), credentials });
    Ok(principal)
}

fn look_up<'a>(
    shown: Option<&HeaderValue>,
    sans: &[Box<str>],
    credentials: &'a Credentials,
) -> Result<&'a Credential, Problem> {
    let found = match shown {
        Some(header) => by_bearer(header, credentials),
        None if sans.is_empty() => {
            return Err(unauthenticated(
                "show a credential (Authorization: Bearer lh_…) or a client certificate",
            ));
        }
        None => sans.iter().find_map(|san| credentials.by_san(san)),
    };
    found.ok_or_else(not_accepted)
}

fn by_bearer<'a>(header: &HeaderValue, credentials: &'a Credentials) -> Option<&'a Credential> {
    let (scheme, secret) = header.to_str().ok()?.split_once(' ')?;
    let bearer = Bearer::parse(secret.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"))?;
    let credential = credentials.by_id(bearer.id())?;
    match &credential.proof {
        Proof::Secret(hash) if bearer.matches(hash) => Some(credential),
        Proof::Secret(_) | Proof::San(_) => None,
    }
}

fn not_accepted() -> Problem {
    unauthenticated("this credential is not accepted")
}

/// Refuses a caller that was admitted earlier, and has a stream open since, once its credential has ended.
pub(crate) fn must_still_be_admitted(
    caller: &Caller,
    handle: &Handle,
    clock: &dyn Clock,
) -> Result<(), Problem> {
    let Caller::Known(principal) = caller else { return Ok(()) };
    // A credential never changes: it is there, or it was revoked.
    let is_there = handle.credentials().by_id(principal.credential).is_some();
    match is_there && !principal.is_expired(clock.read().wall) {
        true => Ok(()),
        false => Err(not_accepted()),
    }
}
