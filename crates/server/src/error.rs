//! Why a server did not start, or stopped.

use std::io;
use std::net::SocketAddr;

use leasehold_journal::{OpenError, ReadError};
use leasehold_node::{StartError, StopReason};

use crate::config::ConfigError;

/// Why a server did not start, or stopped by itself.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting makes no sense.
    #[error("configuration: {0}")]
    Config(#[from] ConfigError),
    /// The node did not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// The operating system refuses something that every process needs.
    #[error("cannot start: {0}")]
    System(io::Error),
    /// The node stopped serving by itself.
    #[error("the node stopped: {0}")]
    Stopped(StopReason),
    /// The journal did not finish its last commit in time.
    #[error("shut down without the journal, which did not finish what it was committing")]
    Stuck,
}

impl ServeError {
    /// Whether the server refused to start, and will refuse again until somebody does something (exit code 78); else
    /// starting again may help.
    pub const fn is_refusal(&self) -> bool {
        match self {
            Self::Config(_) | Self::Listen { .. } => true,
            Self::Start(_) if self.is_unavailable() => false,
            Self::Start(StartError::Thread(_) | StartError::Died) => false,
            Self::Start(_) | Self::Stopped(StopReason::Halted(_)) => true,
            Self::System(_) | Self::Stopped(_) | Self::Stuck => false,
        }
    }

    /// Whether it did not start because its journal is out of reach, or another node's just now (exit code 69): it will
    /// start when that is over.
    pub const fn is_unavailable(&self) -> bool {
        matches!(
            self,
            Self::Start(
                StartError::Open(OpenError::Unavailable(_) | OpenError::LostDuel(_))
                    | StartError::Read(ReadError::Unavailable(_) | ReadError::Replaced)
            )
        )
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some("every setting is explained in docs/reference/configuration.md"),
            Self::Listen { error, .. } if error.kind() == io::ErrorKind::AddrInUse => {
                Some("something else listens there; stop it, or choose another address with --listen")
            }
            Self::Listen { .. } => Some("choose another address with --listen"),
            Self::Start(error) => start_hint(error),
            Self::Stopped(StopReason::JournalFailed(_)) => Some(
                "what is durable is no longer known: look at the log of the disk or the engine before starting again",
            ),
            Self::Stuck => {
                Some("what was answered is durable; look at the disk or the engine before starting again")
            }
            Self::System(_) | Self::Stopped(_) => None,
        }
    }
}

/// What to do about a node that does not start; also used by the maintenance commands.
pub(crate) fn start_hint(error: &StartError) -> Option<&'static str> {
    match error {
        StartError::Open(error) => open_hint(error),
        StartError::Read(ReadError::Corrupt { .. }) => Some(CORRUPT),
        StartError::Witness(_) => {
            Some("the data directory must be writable, and its witness file as this program left it")
        }
        StartError::Read(_) | StartError::Refused(_) | StartError::Thread(_) | StartError::Died => None,
    }
}

const CORRUPT: &str = "nothing was changed; restore a backup with `leasehold restore`, or give up what is damaged with \
                       `leasehold recover`, which raises all tokens";

pub(crate) fn open_hint(error: &OpenError) -> Option<&'static str> {
    match error {
        OpenError::InUse(_) => {
            Some("another leasehold serves this directory; stop it, or choose another with --data")
        }
        OpenError::Corrupt { .. } => Some(CORRUPT),
        OpenError::Unsuitable(_) => Some(
            "the embedded journal needs a directory that can be written (--data), on a local disk; what an engine must be \
             like is in docs/operating/engines.md",
        ),
        OpenError::Refused(_) => Some(
            "see user, password, database and certificates in the URL of the journal; what the engine must allow is in \
             docs/operating/engines.md",
        ),
        OpenError::TooNew(_) => Some("run the version that wrote it, or a newer one"),
        // The message of a regression is long, and says what to do itself.
        OpenError::Regressed(_) | OpenError::LostDuel(_) => None,
        OpenError::Unavailable(_) => {
            Some("see that the disk or the engine is there, or choose another with --data or --journal")
        }
    }
}
