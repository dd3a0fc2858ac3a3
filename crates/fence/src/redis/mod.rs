//! Redis: one script checks, advances and writes.
//!
//! The protected thing is a hash: its field `value`, beside the fields in which the fence keeps its guard and its
//! highest tokens. One script does everything, and Redis runs one script at a time.
//!
//! Guarantee: atomic on one primary. Redis acknowledges before its replicas have the write: a fail-over can lose the
//! newest maximum together with the newest writes, and with `appendfsync` other than `always` a crash can too. Where
//! that matters, keep the fence in a database.

use redis::aio::ConnectionLike;
use redis::{RedisError, Script, ScriptInvocation};

use crate::{Ask, Fence, FenceError, Grant, Policy, Rejection};

/// What can come of asking the fence. [`FenceError::Store`] with a connection error means that the outcome is unknown;
/// a retry by step is safe.
pub type Error = FenceError<RedisError>;

/// What to do with the value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change<'a> {
    /// Replace it.
    Put(&'a [u8]),
    /// Add to its end.
    Append(&'a [u8]),
    /// Take it away. What the fence keeps stays: an old holder must not find a fresh fence.
    Delete,
}

/// The script, ready to run on any connection.
#[derive(Debug)]
pub struct RedisFence {
    script: Script,
    prefix: String,
}

impl RedisFence {
    /// A fence whose hashes have the keys `prefix` + name of the fence. All of a fence is under one key, so a cluster
    /// keeps it together.
    pub fn new(prefix: &str) -> Self {
        Self { script: script(include_str!("fence.lua")), prefix: prefix.to_owned() }
    }

    /// The key of a fence's hash.
    pub fn key(&self, fence: &Fence) -> String {
        format!("{}{}", self.prefix, fence.name())
    }

    /// Changes the value, if the fence admits it, in one atomic step with the check.
    ///
    /// If the future is dropped, the outcome is unknown.
    ///
    /// # Errors
    /// Rejected: stop the work. Store: unknown.
    pub async fn write<'ask>(
        &self,
        connection: &mut impl ConnectionLike,
        fence: &Fence,
        ask: impl Into<Option<&'ask Ask>>,
        change: Change<'_>,
    ) -> Result<(), Error> {
        let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
        let (act, value) = match change {
            Change::Put(value) => ("put", value),
            Change::Append(value) => ("append", value),
            Change::Delete => ("delete", &b""[..]),
        };
        let answer = self.run(connection, fence, ask, act, value).await?;
        verdict(ask, &answer)
    }

    /// Raises the maximum before the first read, so that no older holder can write between that read and the write that
    /// follows from it. Can be repeated.
    ///
    /// # Errors
    /// Rejected: the lease is lost. Store: try again.
    pub async fn claim(
        &self,
        connection: &mut impl ConnectionLike,
        fence: &Fence,
        grant: &Grant,
    ) -> Result<(), Error> {
        let ask = grant.write();
        let answer = self.run(connection, fence, &ask, "claim", b"").await?;
        verdict(&ask, &answer)
    }

    /// The protected value.
    ///
    /// # Errors
    /// Store.
    pub async fn value(
        &self,
        connection: &mut impl ConnectionLike,
        fence: &Fence,
    ) -> Result<Option<Vec<u8>>, Error> {
        Ok(redis::cmd("HGET").arg(self.key(fence)).arg("value").query_async(connection).await?)
    }

    async fn run(
        &self,
        connection: &mut impl ConnectionLike,
        fence: &Fence,
        ask: &Ask,
        act: &str,
        value: &[u8],
    ) -> Result<Vec<String>, Error> {
        let grant = ask.grant();
        let policy = if fence.policy() == Policy::Strict { "strict" } else { "monotonic" };
        let step = ask.step().map_or(String::new(), |step| step.to_string());
        let mut call = self.script.prepare_invoke();
        call.key(self.key(fence));
        present(&mut call, fence, grant);
        call.arg(u8::from(grant.advances())).arg(policy).arg(step).arg(act).arg(value);
        Ok(call.invoke_async(connection).await?)
    }
}

/// A script that asks a fence.
pub(crate) fn script(body: &str) -> Script {
    Script::new(&format!("{}{body}", include_str!("kept.lua")))
}

/// The first five arguments of such a script.
pub(crate) fn present(call: &mut ScriptInvocation<'_>, fence: &Fence, grant: &Grant) {
    call.arg(fence.guard().as_str()).arg(grant.resource().as_str());
    call.arg(u8::from(fence.takes(grant.kind()))).arg(grant.row_number()).arg(grant.token().get());
}

/// The script's words as a verdict; words that it cannot say are corruption, never an admission.
pub(crate) fn verdict(ask: &Ask, answer: &[String]) -> Result<(), Error> {
    let corrupt = || FenceError::Corrupt(format!("{answer:?}"));
    let number = || answer.get(1).and_then(|text| text.parse::<u64>().ok());
    let (token, step) = (ask.token(), ask.step());
    let rejection = match (answer.first().map(String::as_str), step) {
        (Some("admitted"), _) => return Ok(()),
        (Some("stale"), _) => {
            let highest = number().and_then(|number| leasehold_types::FencingToken::new(number).ok());
            Rejection::Stale { presented: token, highest: highest.ok_or_else(corrupt)? }
        }
        (Some("wrong_scope"), _) => {
            let guard = answer.get(1).and_then(|guard| leasehold_types::ResourceName::new(guard).ok());
            let presented = ask.grant().resource().clone();
            Rejection::WrongScope { presented, guard: guard.ok_or_else(corrupt)? }
        }
        (Some("already_applied"), Some(step)) => Rejection::AlreadyApplied { token, step },
        (Some("out_of_order"), Some(step)) => {
            let expected = number().and_then(std::num::NonZeroU64::new).ok_or_else(corrupt)?;
            Rejection::OutOfOrder { token, step, expected }
        }
        _ => return Err(corrupt()),
    };
    Err(FenceError::Rejected(rejection))
}
