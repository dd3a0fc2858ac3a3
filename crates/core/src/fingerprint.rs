//! Short hashes of what was asked, kept where the command itself is not, so that the same id or key with another
//! command is noticed. Journaled state depends on them: changing one is a change of format.

use leasehold_types::{Class, Labels, Mode, OwnerId, ResourceKey, SessionId, Ttl};

use crate::codec::Encoder;
use crate::command::{Acquire, ForceRelease, ForceTarget, Operator, Sharing};
use crate::fact::Forced;
use crate::lease::Lease;

/// Of an acquire: what a retry must repeat. Neither wait nor labels; in a session the ttl is the session's, which may
/// change between two attempts.
pub(crate) fn of_acquire(acquire: &Acquire, resource: &ResourceKey) -> u64 {
    let ttl = acquire.ttl.filter(|_| acquire.session.is_none());
    let rest = (acquire.sharing, acquire.class, acquire.max_hold_ms, acquire.lock_delay_ms);
    of_grant(resource, acquire.session, ttl, rest)
}

/// What an ended lease was asked for: the fingerprint, or what it is made of. Hashing costs as much as the rest of an
/// ending, and only a retry or a snapshot needs it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskedFor {
    Hashed(u64),
    /// Exclusive or shared, in a session, and nothing else was asked for.
    InSession {
        session: SessionId,
        is_shared: bool,
        class: Class,
    },
    /// The same without a session.
    Alone {
        ttl: Ttl,
        is_shared: bool,
        class: Class,
    },
}

impl AskedFor {
    /// Of the acquire that was granted this lease.
    pub(crate) fn of(lease: &Lease, session: Option<SessionId>) -> Self {
        let (is_shared, class) = (lease.mode() == Mode::Shared, lease.class());
        let ttl = lease.own().map(|own| own.asked_ttl);
        match (session, ttl) {
            (Some(session), None) if lease.is_plain() => Self::InSession { session, is_shared, class },
            (None, Some(ttl)) if lease.is_plain() => Self::Alone { ttl, is_shared, class },
            _ => {
                let rest = (lease.sharing(), class, lease.max_hold_ms(), lease.lock_delay_ms());
                Self::Hashed(of_grant(&lease.resource, session, ttl, rest))
            }
        }
    }

    /// Whether it surely was exclusive; of the hashed ones that cannot be told.
    pub(crate) fn is_exclusive(self) -> bool {
        matches!(self, Self::InSession { is_shared: false, .. } | Self::Alone { is_shared: false, .. })
    }

    /// The session, where that is not hashed.
    pub(crate) fn session(self) -> Option<SessionId> {
        if let Self::InSession { session, .. } = self { Some(session) } else { None }
    }

    /// The fingerprint, for this resource.
    pub(crate) fn fingerprint(self, resource: &ResourceKey) -> u64 {
        let plain = |is_shared: bool, class| {
            (if is_shared { Sharing::Shared } else { Sharing::Exclusive }, class, None, 0)
        };
        match self {
            Self::Hashed(fingerprint) => fingerprint,
            Self::InSession { session, is_shared, class } => {
                of_grant(resource, Some(session), None, plain(is_shared, class))
            }
            Self::Alone { ttl, is_shared, class } => {
                of_grant(resource, None, Some(ttl), plain(is_shared, class))
            }
        }
    }
}

fn of_grant(
    resource: &ResourceKey,
    session: Option<SessionId>,
    ttl: Option<Ttl>,
    (sharing, class, max_hold_ms, lock_delay_ms): (Sharing, Class, Option<u64>, u64),
) -> u64 {
    let mut encoder = encoder();
    encoder.text(resource.as_str());
    encoder.optional(session, |encoder, id| encoder.bytes16(id.as_bytes()));
    encoder.optional(ttl, |encoder, ttl| encoder.number(ttl.ms()));
    encoder.sharing(sharing);
    encoder.class(class);
    encoder.optional(max_hold_ms, Encoder::number);
    encoder.number(lock_delay_ms);
    short(encoder)
}

/// Of a session's opening.
pub(crate) fn of_opening(owner: &OwnerId, ttl: Ttl, labels: &Labels) -> u64 {
    let mut encoder = encoder();
    encoder.text(owner.as_str());
    encoder.number(ttl.ms());
    encoder.labels(labels);
    short(encoder)
}

/// Of a force-release as asked.
pub(crate) fn of_force(force: &ForceRelease, resource: &ResourceKey) -> u64 {
    of_forcing(resource, force.target, force.skip_lock_delay, &force.operator)
}

/// Of the force-release that this fact came of.
pub(crate) fn of_forced(forced: &Forced) -> u64 {
    of_forcing(&forced.resource, forced.target, forced.skip_lock_delay, &forced.operator)
}

fn of_forcing(
    resource: &ResourceKey,
    target: ForceTarget,
    skip_lock_delay: bool,
    operator: &Operator,
) -> u64 {
    let mut encoder = encoder();
    encoder.text(resource.as_str());
    encoder.force_target(target);
    encoder.flag(skip_lock_delay);
    encoder.operator(operator);
    short(encoder)
}

/// Room for what is hashed of nearly every command: growing it step by step would cost as much as the hash.
fn encoder() -> Encoder {
    Encoder::over(Vec::with_capacity(128))
}

fn short(encoder: Encoder) -> u64 {
    let hash = blake3::hash(&encoder.into_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk().expect("a hash has 32 bytes"))
}
