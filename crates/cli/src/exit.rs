//! Every exit code, for all commands.

use std::process::ExitCode;

/// How the command ended, as a script sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// What was asked is done.
    Done = 0,
    /// Any other failure.
    Failed = 1,
    /// The command line is wrong, or the server calls what it asks for wrong.
    Usage = 64,
    /// No server can be reached, or it cannot serve now.
    Unavailable = 69,
    /// The lock was not acquired in time; somebody else holds it.
    NotAcquired = 75,
    /// The lease is gone or lost.
    LeaseGone = 76,
    /// `serve` refuses to start: corrupt, regressed, directory in use, bad config.
    RefusedToStart = 78,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
