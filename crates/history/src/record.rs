//! What is recorded, one thing a line.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Microseconds of one clock that does not jump. All times of a history are of the same clock.
pub type At = u64;

/// A lease or session id, or any other name that is used once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub [u8; 16]);

/// A hash of the journal's chain.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Hash(pub [u8; 32]);

/// One thing that was seen.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Record {
    /// A client sends one attempt. A retry is another attempt, with the same lease id.
    Invoke {
        /// When, before anything is sent.
        at: At,
        /// The attempt's number, unique in the history.
        op: u64,
        /// Who.
        client: Arc<str>,
        /// What.
        call: Call,
    },
    /// The answer to an attempt came. An attempt without one may or may not have happened.
    Answer {
        /// When.
        at: At,
        /// Which attempt.
        op: u64,
        /// The epoch that the answer carried, where it carried one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<u64>,
        /// What was answered.
        answer: Answer,
    },
    /// A client believed, all this time, that it held a resource; written when that is over.
    Held {
        /// When it is written.
        at: At,
        /// From then.
        from: At,
        /// Until then.
        until: At,
        /// Who.
        client: Arc<str>,
        /// What.
        resource: Arc<str>,
        /// Under this token.
        token: u64,
        /// How it is shared.
        mode: Mode,
        /// Which place of a semaphore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<u32>,
    },
    /// A fence decided about one write.
    Fence {
        /// When.
        at: At,
        /// The fence; one for each resource, or each permit of it.
        fence: Arc<str>,
        /// The token that was presented.
        token: u64,
        /// Whether the write went through.
        admitted: bool,
    },
    /// A node took the journal over.
    Claim {
        /// When the engine did it.
        at: At,
        /// Which node.
        node: Arc<str>,
        /// Its epoch.
        epoch: u64,
        /// The last slot that it found.
        tail: u64,
    },
    /// A node has written down that the journal reaches to this slot.
    Seen {
        /// When.
        at: At,
        /// Which node.
        node: Arc<str>,
        /// The slot.
        slot: u64,
    },
    /// The journal committed one slot.
    Commit {
        /// When the engine did it.
        at: At,
        /// Which.
        slot: u64,
        /// By which epoch.
        epoch: u64,
        /// The chain before it.
        prev: Hash,
        /// The chain with it.
        hash: Hash,
        /// What it says about leases, in order; facts that change no lease are left out.
        changes: Vec<Change>,
        /// How many journaled events it has for watchers, where that is more than one for each lease that began or ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        events: Option<u32>,
    },
    /// A watcher received a journaled event.
    Event {
        /// When.
        at: At,
        /// Which stream; a resumed one goes on under its name.
        stream: Arc<str>,
        /// The slot of the event's id.
        slot: u64,
        /// The number within the slot.
        n: u32,
    },
    /// A watcher was told that events before this slot are gone.
    Compacted {
        /// When.
        at: At,
        /// Which stream.
        stream: Arc<str>,
        /// The oldest slot that is still there.
        slot: u64,
    },
    /// Something was done to the system on purpose; for those who read the history.
    Fault {
        /// When.
        at: At,
        /// What.
        what: Arc<str>,
    },
}

/// What an attempt asks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Call {
    /// Take a resource.
    Acquire {
        /// What.
        resource: Arc<str>,
        /// The lease to be.
        lease: Id,
        /// The session it lives with, if any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        session: Option<Id>,
    },
    /// Keep a lease without a session, or a session, alive.
    Renew {
        /// Which.
        life: Id,
    },
    /// Give a lease back.
    Release {
        /// Which.
        lease: Id,
    },
    /// Begin a session.
    OpenSession {
        /// Which.
        session: Id,
    },
    /// End a session.
    CloseSession {
        /// Which.
        session: Id,
    },
    /// An operator takes a resource away.
    ForceRelease {
        /// What.
        resource: Arc<str>,
        /// The same for every attempt, where it is asked again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request: Option<Id>,
    },
    /// Who holds it?
    Read {
        /// What.
        resource: Arc<str>,
    },
}

/// What an attempt was told.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Answer {
    /// Granted now, or by an earlier attempt, and live.
    Granted {
        /// The token.
        token: u64,
        /// What was promised, counted from the moment of sending.
        ttl_ms: u64,
    },
    /// Somebody else has it. Nothing happened.
    NotGranted,
    /// Renewed, or the session was opened.
    Renewed {
        /// What was promised, counted from the moment of sending.
        ttl_ms: u64,
    },
    /// Given back, now or by an earlier attempt.
    Released {
        /// Whose token it was.
        token: u64,
    },
    /// The session is over.
    Closed,
    /// Taken away.
    Forced {
        /// The number of the audit entry that says so.
        audit_seq: u64,
    },
    /// These tokens hold the resource.
    Holders {
        /// In growing order.
        tokens: Vec<u64>,
    },
    /// A lawful no. Nothing happened.
    Refused,
    /// An error that says that nothing happened.
    Failed,
    /// An error that does not say whether anything happened; the same as no answer.
    Unknown,
}

/// How a resource is shared among holders.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// One holder.
    Exclusive,
    /// Any number of readers.
    Shared,
    /// One holder a permit.
    Semaphore,
}

/// What a committed slot says about a lease.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Change {
    /// It was given.
    Granted {
        /// Which.
        lease: Id,
        /// What keeps it alive: itself, or its session.
        life: Id,
        /// Of what.
        resource: Arc<str>,
        /// Its token.
        token: u64,
        /// How it is shared.
        mode: Mode,
        /// Which place of a semaphore.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permit: Option<u32>,
    },
    /// Its holder gave it back.
    Released {
        /// Which.
        lease: Id,
    },
    /// Its time ended. `max_hold`: it had reached its longest age.
    Expired {
        /// Which.
        lease: Id,
        /// Whether by age.
        #[serde(default)]
        max_hold: bool,
    },
    /// A session's time ended, and with it its leases.
    SessionExpired {
        /// Which.
        session: Id,
    },
    /// A session was closed, and with it its leases ended.
    SessionClosed {
        /// Which.
        session: Id,
    },
    /// An operator took them away.
    Forced {
        /// Which.
        leases: Vec<Id>,
    },
}

impl Answer {
    /// Whether nothing was decided: an error, with or without doubt.
    pub(crate) fn is_error(&self) -> bool {
        matches!(self, Self::Failed | Self::Unknown)
    }
}

impl Record {
    /// When it was written.
    pub fn at(&self) -> At {
        match self {
            Self::Invoke { at, .. }
            | Self::Answer { at, .. }
            | Self::Held { at, .. }
            | Self::Fence { at, .. }
            | Self::Claim { at, .. }
            | Self::Seen { at, .. }
            | Self::Commit { at, .. }
            | Self::Event { at, .. }
            | Self::Compacted { at, .. }
            | Self::Fault { at, .. } => *at,
        }
    }
}

macro_rules! hex {
    ($name:ident, $bytes:literal) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0[..4].iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }

        impl $name {
            /// The bytes that these hexadecimal digits name; hyphens, as UUIDs have them, are passed over.
            pub fn parse(text: &str) -> Option<Self> {
                let digits: Option<Vec<u32>> =
                    text.chars().filter(|c| *c != '-').map(|c| c.to_digit(16)).collect();
                let digits = digits.filter(|digits| digits.len() == 2 * $bytes)?;
                let mut bytes = [0; $bytes];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
                    *byte = u8::try_from(pair[0] << 4 | pair[1]).ok()?;
                }
                Some(Self(bytes))
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'_, str>>::deserialize(from)?;
                let digits: Vec<char> = text.chars().filter(|c| *c != '-').collect();
                let wrong =
                    || serde::de::Error::custom(concat!("expected ", $bytes, " bytes in hexadecimal"));
                if digits.len() != 2 * $bytes {
                    return Err(wrong());
                }
                let mut bytes = [0; $bytes];
                for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
                    let value = |c: char| c.to_digit(16).and_then(|value| u8::try_from(value).ok());
                    *byte = match (value(pair[0]), value(pair[1])) {
                        (Some(high), Some(low)) => high << 4 | low,
                        _ => return Err(wrong()),
                    };
                }
                Ok(Self(bytes))
            }
        }
    };
}

hex!(Id, 16);
hex!(Hash, 32);
