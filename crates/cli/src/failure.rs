//! Why a command did not do what was asked: one clear line, a hint, and the exit code.

use std::io;

use serde_json::Value;

use crate::exit::Exit;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The command line means nothing that can be done.
    #[error("{0}")]
    Usage(String),
    /// Nobody answered at any of the addresses.
    #[error(
        "no server at {tried}: {error}; start one with `leasehold serve`, or name another with --server or LEASEHOLD_SERVER"
    )]
    Unreachable {
        /// Every address, in the order they were tried.
        tried: String,
        /// What the last attempt met.
        error: String,
    },
    /// Somebody is there, but a secure connection is not made.
    #[error(
        "no secure connection to {server}: {error}; a server without a certificate is http://, and one whose authority this machine does not know needs --ca or LEASEHOLD_CA"
    )]
    Insecure {
        /// Where.
        server: String,
        /// What broke.
        error: String,
    },
    /// The connection broke after the request had left.
    #[error(
        "the connection to {server} was lost before it answered, so the outcome is unknown: {error}; {hint}"
    )]
    Lost {
        /// Whom we asked.
        server: String,
        /// What broke.
        error: String,
        /// How to find out.
        hint: &'static str,
    },
    /// The server said no.
    #[error("{0}")]
    Problem(Problem),
    /// The server answered something that this version does not understand.
    #[error(
        "{server} gave an answer that this version of leasehold does not understand: {error}; is it a Leasehold server?"
    )]
    Garbled {
        /// Who answered.
        server: String,
        /// What is wrong with it.
        error: String,
    },
    /// Somebody listens at the address who is no server of ours.
    #[error(
        "what listens at {server} does not answer as a Leasehold server: {found}; see that --server or LEASEHOLD_SERVER is right"
    )]
    Foreign {
        /// Where.
        server: String,
        /// What it did instead.
        found: String,
    },
    /// `serve` cannot begin, or a data directory is refused.
    #[error("{0}")]
    RefusedToStart(String),
    /// A check that was asked for came out badly, or the server stopped by itself.
    #[error("{0}")]
    Failed(String),
    /// The engine that a journal lives on does not answer.
    #[error("{0}")]
    Unavailable(String),
    /// What a fence protects cannot be used, so that nothing can be shown about it.
    #[error("{0}")]
    Fence(String),
    /// Reading or writing on this machine failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// Why it failed.
        error: io::Error,
    },
}

impl Failure {
    /// Output that cannot be written.
    pub(crate) fn output(error: io::Error) -> Self {
        Self::Io { what: "cannot write the output".into(), error }
    }

    /// Whether the reader of our output has gone: the usual end of `leasehold ls | head`.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The code that a script sees.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Usage(_) => Exit::Usage,
            Self::Unreachable { .. }
            | Self::Insecure { .. }
            | Self::Lost { .. }
            | Self::Foreign { .. }
            | Self::Unavailable(_)
            | Self::Fence(_) => Exit::Unavailable,
            Self::Problem(problem) => problem.exit(),
            Self::RefusedToStart(_) => Exit::RefusedToStart,
            Self::Garbled { .. } | Self::Failed(_) => Exit::Failed,
            Self::Io { .. } if self.is_closed_pipe() => Exit::Done,
            Self::Io { .. } => Exit::Failed,
        }
    }
}

/// What is said of an error that explains nothing: ours do.
const FOREIGN: &str = "the answer does not say why; is it a Leasehold server?";

/// A problem+json answer. Its codes are a closed list, but a newer server may have more of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The stable word.
    pub(crate) code: String,
    /// The server's sentence.
    pub(crate) detail: String,
    /// Why the lease ended, with `lease_not_held`.
    pub(crate) reason: Option<String>,
}

impl Problem {
    /// Reads the body of an error answer; a body that is none of ours gives a problem that says so.
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            code: text("code").unwrap_or_else(|| format!("http_{status}")),
            detail: text("detail").or_else(|| text("title")).unwrap_or_else(|| FOREIGN.into()),
            reason: text("reason"),
        }
    }

    /// Whether it has none of the words that an error of ours has.
    pub(crate) fn is_foreign(&self) -> bool {
        self.detail == FOREIGN
    }

    /// Whether another server may do better: nothing happened here.
    pub(crate) fn is_not_active(&self) -> bool {
        self.code == "not_active"
    }

    /// Whether the journal may have too old a format for what was asked, or the server too old a version.
    pub(crate) fn may_be_of_the_format(&self) -> bool {
        matches!(self.code.as_str(), "store_unavailable" | "not_found")
    }

    fn exit(&self) -> Exit {
        match self.code.as_str() {
            "bad_request" | "too_large" | "idempotency_mismatch" | "class_not_supported" => Exit::Usage,
            "lease_not_held" => Exit::LeaseGone,
            "not_active" | "store_unavailable" | "outcome_unknown" | "overloaded" | "rate_limited" => {
                Exit::Unavailable
            }
            _ => Exit::Failed,
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self.code.as_str() {
            "stale_token" => "look at it again with `leasehold show`",
            "store_unavailable" if self.detail.contains("disk full") => {
                "make room in the data directory; releases still work"
            }
            "outcome_unknown" => "ask again with the same lease id",
            "overloaded" | "rate_limited" => "try again in a moment",
            _ => return None,
        })
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)?;
        match self.hint() {
            Some(hint) => write!(f, "; {hint}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_the_exit_codes_of_the_table() {
        let exit = |code: &str| Problem::read(400, format!(r#"{{"code":"{code}"}}"#).as_bytes()).exit();
        assert_eq!(exit("bad_request"), Exit::Usage);
        assert_eq!(exit("lease_not_held"), Exit::LeaseGone);
        assert_eq!(exit("store_unavailable"), Exit::Unavailable);
        assert_eq!(exit("stale_token"), Exit::Failed);
        assert_eq!(exit("something_new"), Exit::Failed);
    }

    #[test]
    fn an_error_body_of_somebody_else_is_still_told() {
        let problem = Problem::read(502, b"<html>");
        assert_eq!(problem.to_string(), format!("http_502: {FOREIGN}"));
        assert!(
            problem.is_foreign()
                && !Problem::read(404, br#"{"code":"not_found","detail":"no"}"#).is_foreign()
        );
    }
}
