//! Leases and sessions as journaled. Fields that few leases have are boxed apart: a million leases are held in memory.

use leasehold_types::{
    Class, FencingToken, Labels, LeaseId, Mode, OwnerId, Permit, RequestKey, ResourceKey, SessionId,
    TenantName, Ttl, WallTime,
};

use crate::arena::Ix;
use crate::blocks::Blocks;
use crate::command::{Acquire, Sharing};
use crate::fact::{Granted, SessionBegan};
use crate::narrow::{narrow, wide};
use crate::reply::EndedInSession;

pub(crate) type LeaseIx = Ix<Lease>;
pub(crate) type SessionIx = Ix<Session>;

/// One holder's right on one resource. Its size counts: a test watches it.
#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) id: LeaseId,
    pub(crate) resource: ResourceKey,
    /// Absent for a lease that lives in a session and has nothing special: almost all where there are many.
    rest: Option<Box<Rest>>,
    session: Option<SessionIx>,
    /// The token, which has 53 bits, above the mode and the class, which have three together.
    token_and_words: [u8; 7],
    /// Milliseconds after [`CREATED_FROM_MS`], unless [`Rest`] has the time.
    created: [u8; 5],
}

/// The beginning of 2020; forty bits of milliseconds last from there to 2054.
const CREATED_FROM_MS: u64 = 1_577_836_800_000;
const CREATED_BELOW_MS: u64 = CREATED_FROM_MS + (1 << 40);
/// The bits of a mode.
const MODE_BITS: u32 = 2;
/// The bits of mode and class.
const WORD_BITS: u32 = MODE_BITS + 1;

/// What keeps a lease alive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Life<'a> {
    /// Its session's renewals.
    Session(SessionIx),
    /// Its own.
    Own(&'a Own),
}

/// What a lease has that is not merely one of its session's.
#[derive(Clone, Debug, Default)]
struct Rest {
    /// Set without a session, and only then; see [`Lease::life`].
    own: Option<Own>,
    more: Option<Box<More>>,
    /// When it was granted, by a wall clock that is far off.
    created_at: Option<WallTime>,
}

/// Owner and ttl of a lease without a session.
#[derive(Clone, Debug)]
pub(crate) struct Own {
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    /// As asked for at the grant; a retry of the acquire is compared with this.
    pub(crate) asked_ttl: Ttl,
    /// What a longer ttl promised before it was shortened; a restart gives at least this again.
    pub(crate) floor_ms: u64,
}

/// What few leases have.
#[derive(Clone, Debug, Default)]
struct More {
    /// Limit and permit of a semaphore's lease, which always has them.
    semaphore: Option<(u32, Permit)>,
    max_hold_ms: Option<u64>,
    lock_delay_ms: u64,
    labels: Labels,
    value: Option<Box<str>>,
    key: Option<RequestKey>,
    principal: Option<Box<str>>,
    note: Option<Note>,
}

impl More {
    fn is_empty(&self) -> bool {
        self.semaphore.is_none()
            && self.max_hold_ms.is_none()
            && self.lock_delay_ms == 0
            && self.labels.is_empty()
            && self.value.is_none()
            && self.key.is_none()
            && self.principal.is_none()
            && self.note.is_none()
    }
}

/// What was last noted of a life (R6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Note {
    pub(crate) remaining_ms: u64,
    pub(crate) age_ms: u64,
    /// A renewal came after it: the full ttl counts again, the age stays.
    pub(crate) cleared: bool,
}

impl Lease {
    pub(crate) fn new(granted: &Granted, session: Option<SessionIx>) -> Self {
        let own =
            || Own { owner: granted.owner.clone(), ttl: granted.ttl, asked_ttl: granted.ttl, floor_ms: 0 };
        let semaphore = match granted.sharing {
            Sharing::Semaphore { limit } => Some((limit, granted.permit.unwrap_or(Permit(0)))),
            Sharing::Exclusive | Sharing::Shared => None,
        };
        let more = More {
            semaphore,
            max_hold_ms: granted.max_hold_ms,
            lock_delay_ms: granted.lock_delay_ms,
            labels: granted.labels.clone(),
            value: granted.value.clone(),
            key: granted.key.clone(),
            principal: granted.principal.clone(),
            note: None,
        };
        let own = session.is_none().then(own);
        let more = (!more.is_empty()).then(|| Box::new(more));
        let is_near = (CREATED_FROM_MS..CREATED_BELOW_MS).contains(&granted.at.0);
        let created_at = (!is_near).then_some(granted.at);
        let rest = (own.is_some() || more.is_some() || created_at.is_some())
            .then(|| Box::new(Rest { own, more, created_at }));
        let words = (granted.class as u64) << MODE_BITS | granted.sharing.mode() as u64;
        Self {
            id: granted.lease_id,
            resource: granted.resource.clone(),
            rest,
            session,
            token_and_words: narrow(granted.token.get() << WORD_BITS | words),
            created: narrow(if is_near { granted.at.0 - CREATED_FROM_MS } else { 0 }),
        }
    }

    pub(crate) fn token(&self) -> FencingToken {
        let number = wide(self.token_and_words) >> WORD_BITS;
        FencingToken::new(number).expect("it was a token when it was put there")
    }

    pub(crate) fn class(&self) -> Class {
        Class::ALL[usize::from(self.token_and_words[0] >> MODE_BITS & 1)]
    }

    pub(crate) fn mode(&self) -> Mode {
        Mode::ALL[usize::from(self.token_and_words[0] & ((1 << MODE_BITS) - 1))]
    }

    pub(crate) fn created_at(&self) -> WallTime {
        let far = self.rest.as_ref().and_then(|rest| rest.created_at);
        far.unwrap_or_else(|| WallTime(CREATED_FROM_MS + wide(self.created)))
    }

    /// The fact that would grant this lease as it stands; `owner` and `ttl` are its session's where it has one.
    pub(crate) fn as_granted(&self, session: Option<&Session>) -> Granted {
        let (owner, ttl) = match (self.life(), session) {
            (Life::Own(own), _) => (own.owner.clone(), own.asked_ttl),
            (Life::Session(_), Some(session)) => (session.owner.clone(), session.ttl),
            (Life::Session(_), None) => unreachable!("a lease in a session is given with it"),
        };
        Granted {
            lease_id: self.id,
            resource: self.resource.clone(),
            owner,
            session: session.map(|session| session.id),
            sharing: self.sharing(),
            permit: self.permit(),
            class: self.class(),
            ttl,
            max_hold_ms: self.max_hold_ms(),
            lock_delay_ms: self.lock_delay_ms(),
            labels: self.labels().cloned().unwrap_or_default(),
            value: self.value().map(Into::into),
            token: self.token(),
            at: self.created_at(),
            key: self.key().cloned(),
            principal: self.own_principal().map(Into::into),
        }
    }

    pub(crate) fn permit(&self) -> Option<Permit> {
        self.semaphore().map(|(_, permit)| permit)
    }

    pub(crate) fn sharing(&self) -> Sharing {
        match self.mode() {
            Mode::Exclusive => Sharing::Exclusive,
            Mode::Shared => Sharing::Shared,
            Mode::Semaphore => {
                let (limit, _) = self.semaphore().expect("a semaphore's lease has a limit");
                Sharing::Semaphore { limit }
            }
        }
    }

    fn semaphore(&self) -> Option<(u32, Permit)> {
        self.more()?.semaphore
    }

    pub(crate) fn max_hold_ms(&self) -> Option<u64> {
        self.more()?.max_hold_ms
    }

    pub(crate) fn lock_delay_ms(&self) -> u64 {
        self.more().map_or(0, |more| more.lock_delay_ms)
    }

    /// Whether it has neither permit, max hold nor lock delay.
    pub(crate) fn is_plain(&self) -> bool {
        self.more().is_none_or(|more| {
            more.semaphore.is_none() && more.max_hold_ms.is_none() && more.lock_delay_ms == 0
        })
    }

    pub(crate) fn labels(&self) -> Option<&Labels> {
        self.more().map(|more| &more.labels)
    }

    pub(crate) fn value(&self) -> Option<&str> {
        self.more()?.value.as_deref()
    }

    pub(crate) fn set_value(&mut self, value: Box<str>) {
        self.more_mut().value = Some(value);
    }

    pub(crate) fn key(&self) -> Option<&RequestKey> {
        self.more()?.key.as_ref()
    }

    /// Whom it is bound to, where no session says so; see [`crate::Journaled::principal_of`].
    pub(crate) fn own_principal(&self) -> Option<&str> {
        self.more()?.principal.as_deref()
    }

    pub(crate) fn note(&self) -> Option<Note> {
        self.more()?.note
    }

    pub(crate) fn set_note(&mut self, note: Option<Note>) {
        if note.is_some() || self.more().is_some() {
            self.more_mut().note = note;
        }
    }

    fn more(&self) -> Option<&More> {
        self.rest.as_ref()?.more.as_deref()
    }

    fn more_mut(&mut self) -> &mut More {
        self.rest.get_or_insert_default().more.get_or_insert_default()
    }

    pub(crate) fn life(&self) -> Life<'_> {
        match (self.session, self.own()) {
            (Some(ix), _) => Life::Session(ix),
            (None, Some(own)) => Life::Own(own),
            (None, None) => unreachable!("a lease without a session has a life of its own"),
        }
    }

    pub(crate) fn own(&self) -> Option<&Own> {
        self.rest.as_ref()?.own.as_ref()
    }

    pub(crate) fn own_mut(&mut self) -> Option<&mut Own> {
        self.rest.as_mut()?.own.as_mut()
    }

    pub(crate) fn session(&self) -> Option<SessionIx> {
        self.session
    }

    /// Whether this acquire, under the id of this lease, is the one that it was granted to.
    pub(crate) fn was_asked_by(
        &self,
        acquire: &Acquire,
        key: &ResourceKey,
        session: Option<SessionId>,
    ) -> bool {
        let ttl_same = match (self.life(), acquire.ttl) {
            (Life::Own(own), Some(ttl)) => own.asked_ttl == ttl,
            (Life::Own(_), None) => false,
            (Life::Session(_), _) => true,
        };
        ttl_same
            && self.resource == *key
            && self.sharing() == acquire.sharing
            && self.class() == acquire.class
            && session == acquire.session
            && self.max_hold_ms() == acquire.max_hold_ms
            && self.lock_delay_ms() == acquire.lock_delay_ms
    }
}

/// A client's liveness scope: one ttl, one deadline, many leases.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) id: SessionId,
    pub(crate) tenant: TenantName,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    pub(crate) asked_ttl: Ttl,
    /// As for [`Own`].
    pub(crate) floor_ms: u64,
    pub(crate) labels: Labels,
    pub(crate) created_at: WallTime,
    pub(crate) key: Option<RequestKey>,
    /// Whom it is bound to, with every lease in it.
    pub(crate) principal: Option<Box<str>>,
    pub(crate) leases: Blocks<LeaseIx>,
    /// Leases that ended without the client, until it says that it has seen them. At most a page: oldest dropped.
    pub(crate) unseen: Vec<EndedInSession>,
    pub(crate) note: Option<Note>,
}

impl Session {
    pub(crate) fn new(began: &SessionBegan) -> Self {
        Self {
            id: began.session_id,
            tenant: began.tenant.clone(),
            owner: began.owner.clone(),
            ttl: began.ttl,
            asked_ttl: began.ttl,
            floor_ms: 0,
            labels: began.labels.clone(),
            created_at: began.at,
            key: began.key.clone(),
            principal: began.principal.clone(),
            leases: Blocks::default(),
            unseen: Vec::new(),
            note: None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use leasehold_types::{ResourceName, limits};

    use super::*;

    /// What a million held locks cost follows from these; see the page on performance.
    #[test]
    fn a_lease_is_small() {
        assert_eq!(size_of::<Option<Lease>>(), 48);
        assert!(size_of::<Rest>() <= 48, "{}", size_of::<Rest>());
    }

    pub(crate) fn granted(token: u64, at: u64, sharing: Sharing, class: Class) -> Granted {
        let name = ResourceName::new("r").unwrap();
        Granted {
            lease_id: LeaseId::from_bytes([1; 16]),
            resource: ResourceKey::new(&TenantName::default_tenant(), &name),
            owner: OwnerId::new("o").unwrap(),
            session: None,
            sharing,
            permit: (sharing.mode() == Mode::Semaphore).then_some(Permit(2)),
            class,
            ttl: Ttl::from_journal(1_000).unwrap(),
            max_hold_ms: None,
            lock_delay_ms: 0,
            labels: Labels::default(),
            value: None,
            token: FencingToken::new(token).unwrap(),
            at: WallTime(at),
            key: None,
            principal: None,
        }
    }

    #[test]
    fn only_what_is_special_is_kept_apart() {
        let plain = granted(1, CREATED_FROM_MS, Sharing::Exclusive, Class::Correctness);
        let session = Some(SessionIx::from_place(1));
        assert!(Lease::new(&plain, session).rest.is_none());
        let mut lease = Lease::new(&plain, session);
        lease.set_note(None);
        assert!(lease.rest.is_none(), "there was no note to take away");
        assert!(Lease::new(&plain, None).rest.is_some(), "it has an owner and a ttl of its own");
        let delayed = Granted { lock_delay_ms: 1, ..plain };
        assert!(Lease::new(&delayed, session).rest.is_some());
    }

    /// Every token, word and time comes back, from the smallest to the largest.
    #[test]
    fn what_is_packed_comes_back() {
        for (token, at) in [
            (1, 0),
            (2, CREATED_FROM_MS - 1),
            (77, CREATED_FROM_MS),
            (1 << 52, CREATED_BELOW_MS - 1),
            (limits::TOKEN_MAX, CREATED_BELOW_MS),
            (limits::TOKEN_MAX, u64::MAX),
        ] {
            for (sharing, class) in [
                (Sharing::Exclusive, Class::Efficiency),
                (Sharing::Semaphore { limit: 3 }, Class::Correctness),
            ] {
                let granted = granted(token, at, sharing, class);
                assert_eq!(Lease::new(&granted, None).as_granted(None), granted);
            }
        }
    }
}
