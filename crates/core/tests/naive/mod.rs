//! The lock table as one would write it without caring for speed: plain vectors, looked through from end to end. It was
//! written from the rules, not from the code, and knows nothing of facts and snapshots; where the rules leave room
//! (how far expiries are spread after a restart) it has a window instead of an instant.

mod answers;
mod compare;
mod grants;
mod retry;
mod time;

use leasehold_core::{Acquire, ForceRelease, Sharing, Ticket};
use leasehold_types::{
    Class, EndReason, LeaseId, OwnerId, RequestKey, ResourceName, SessionId, TenantName, time::armed_ms,
};

/// Everything there is. Times are real milliseconds.
#[derive(Clone, Debug)]
pub(crate) struct Naive {
    pub(crate) now: u64,
    node_began: u64,
    /// How long the node did not tick though it should have: so much later is forgotten what is remembered.
    pub(crate) stood_still: u64,
    pub(crate) room: bool,
    pub(crate) last_token: u64,
    generation: u64,
    audited: u64,
    pub(crate) leases: Vec<Lease>,
    sessions: Vec<Session>,
    /// In the order of asking, all resources together.
    pub(crate) waiters: Vec<Waiter>,
    delays: Vec<Delay>,
    remembered: Vec<Remembered>,
    remembered_ever: u64,
    keys: Vec<(TenantName, RequestKey, Use)>,
    /// Of every resource, oldest first.
    endings: Vec<(TenantName, ResourceName, u64, EndReason)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Lease {
    pub(crate) id: LeaseId,
    tenant: TenantName,
    resource: ResourceName,
    owner: OwnerId,
    sharing: Sharing,
    permit: Option<u32>,
    class: Class,
    session: Option<SessionId>,
    asked_ttl: Option<u64>,
    /// Its own; none in a session.
    life: Option<Life>,
    max_hold: Option<u64>,
    /// When max hold ends it.
    hold_ends: Option<u64>,
    noted_age: u64,
    lock_delay: u64,
    pub(crate) token: u64,
    key: Option<RequestKey>,
    value: Option<Box<str>>,
}

#[derive(Clone, Debug)]
struct Session {
    id: SessionId,
    tenant: TenantName,
    owner: OwnerId,
    life: Life,
    key: Option<RequestKey>,
    unseen: Vec<LeaseId>,
}

/// What renewals prolong. It ends somewhere in a window: exactly at its deadline, or a little later after a restart.
#[derive(Clone, Debug)]
struct Life {
    ttl: u64,
    earliest: u64,
    latest: u64,
    /// What a longer ttl had promised: how long from a restart on, and until when in this life of the node.
    floor: Option<(u64, u64)>,
    /// What was noted, until a renewal.
    noted: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) ticket: Ticket,
    tenant: TenantName,
    key: Option<RequestKey>,
    owner: OwnerId,
    acquire: Acquire,
    deadline: u64,
}

#[derive(Clone, Debug)]
struct Delay {
    tenant: TenantName,
    resource: ResourceName,
    token: u64,
    sharing: Sharing,
    permit: Option<u32>,
    ms: u64,
    until: u64,
}

#[derive(Clone, Debug)]
struct Remembered {
    number: u64,
    at: u64,
    tenant: TenantName,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    /// An ended lease; or an id that was closed, and then no lease.
    Lease {
        id: LeaseId,
        reason: EndReason,
        max_hold: bool,
        was: Option<Box<Lease>>,
    },
    Session {
        id: SessionId,
        closed: bool,
        released: u64,
        key: Option<RequestKey>,
    },
    Key(RequestKey),
}

#[derive(Clone, Debug)]
enum Use {
    Acquired(LeaseId),
    Opened { id: SessionId, owner: OwnerId, ttl: u64 },
    Released(LeaseId),
    Closed(SessionId),
    Forced { force: Box<ForceRelease>, tokens: Vec<u64>, seq: u64 },
}

impl Life {
    fn new(ttl: u64, now: u64) -> Self {
        let ends = now + armed_ms(ttl);
        Self { ttl, earliest: ends, latest: ends, floor: None, noted: None }
    }
}

impl Naive {
    pub(crate) fn new() -> Self {
        Self {
            now: 0,
            node_began: 0,
            stood_still: 0,
            room: true,
            last_token: 0,
            generation: 1,
            audited: 0,
            leases: Vec::new(),
            sessions: Vec::new(),
            waiters: Vec::new(),
            delays: Vec::new(),
            remembered: Vec::new(),
            remembered_ever: 0,
            keys: Vec::new(),
            endings: Vec::new(),
        }
    }

    fn holders(&self, tenant: &TenantName, resource: &ResourceName) -> Vec<&Lease> {
        self.leases.iter().filter(|lease| lease.tenant == *tenant && lease.resource == *resource).collect()
    }

    fn session(&self, tenant: &TenantName, id: SessionId) -> Option<&Session> {
        self.sessions.iter().find(|session| session.id == id && session.tenant == *tenant)
    }

    fn lease(&self, tenant: &TenantName, id: LeaseId) -> Option<&Lease> {
        self.leases.iter().find(|lease| lease.id == id && lease.tenant == *tenant)
    }

    fn life_of<'a>(&'a self, lease: &'a Lease) -> &'a Life {
        match (&lease.life, lease.session) {
            (Some(life), _) => life,
            (None, Some(id)) => &self.sessions.iter().find(|session| session.id == id).unwrap().life,
            (None, None) => unreachable!("a lease has a life or a session"),
        }
    }

    /// Whether there is a place beside the holders and the open lock delays, whoever waits; and its permit.
    fn place(&self, tenant: &TenantName, resource: &ResourceName, sharing: Sharing) -> Option<Option<u32>> {
        let holders = self.holders(tenant, resource);
        let delays: Vec<_> = self
            .delays
            .iter()
            .filter(|delay| delay.tenant == *tenant && delay.resource == *resource)
            .collect();
        match sharing {
            Sharing::Exclusive => (holders.is_empty() && delays.is_empty()).then_some(None),
            Sharing::Shared => {
                let is_shared = |sharing: Sharing| sharing == Sharing::Shared;
                let fits = holders.iter().all(|lease| is_shared(lease.sharing))
                    && delays.iter().all(|delay| is_shared(delay.sharing));
                fits.then_some(None)
            }
            Sharing::Semaphore { limit } => {
                let mut most = limit;
                let mut taken = Vec::new();
                for lease in &holders {
                    let Sharing::Semaphore { limit } = lease.sharing else { return None };
                    most = most.min(limit);
                    taken.push(lease.permit.unwrap());
                }
                for delay in delays {
                    taken.push(delay.permit?);
                }
                let lowest = (0..).find(|permit| !taken.contains(permit)).unwrap();
                (taken.len() < most as usize).then_some(Some(lowest))
            }
        }
    }

    /// Ends a lease and remembers how.
    fn end(&mut self, id: LeaseId, reason: EndReason, max_hold: bool, delayed: bool) {
        let place = self.leases.iter().position(|lease| lease.id == id).expect("only live leases end");
        let lease = self.leases.remove(place);
        if let Some(session) = self.sessions.iter_mut().find(|session| Some(session.id) == lease.session)
            && reason != EndReason::Released
        {
            session.unseen.push(id);
        }
        self.endings.push((lease.tenant.clone(), lease.resource.clone(), lease.token, reason));
        if delayed && lease.lock_delay > 0 {
            self.delays.push(Delay {
                tenant: lease.tenant.clone(),
                resource: lease.resource.clone(),
                token: lease.token,
                sharing: lease.sharing,
                permit: lease.permit,
                ms: lease.lock_delay,
                until: self.now + lease.lock_delay,
            });
        }
        let tenant = lease.tenant.clone();
        self.remember(tenant, What::Lease { id, reason, max_hold, was: Some(Box::new(lease)) });
    }

    fn end_session(&mut self, id: SessionId, reason: EndReason, delayed: bool, closed: bool) -> Vec<u64> {
        let place =
            self.sessions.iter().position(|session| session.id == id).expect("only live sessions end");
        let mut leases: Vec<_> = self
            .leases
            .iter()
            .filter(|lease| lease.session == Some(id))
            .map(|lease| (lease.token, lease.id))
            .collect();
        leases.sort_unstable();
        for (_, lease) in &leases {
            self.end(*lease, reason, false, delayed);
        }
        let session = self.sessions.remove(place);
        let released = leases.len() as u64;
        self.remember(session.tenant, What::Session { id, closed, released, key: session.key });
        leases.into_iter().map(|(token, _)| token).collect()
    }

    fn remember(&mut self, tenant: TenantName, what: What) {
        self.remembered_ever += 1;
        self.remembered.push(Remembered { number: self.remembered_ever, at: self.now, tenant, what });
    }

    pub(crate) fn unseen(&self) -> Vec<(SessionId, LeaseId)> {
        let of = |session: &Session| session.unseen.iter().map(|id| (session.id, *id)).collect::<Vec<_>>();
        self.sessions.iter().flat_map(of).collect()
    }

    /// The node crashed; another has what was journaled.
    pub(crate) fn restart(&mut self) {
        let now = self.now;
        self.node_began = now;
        self.waiters.clear();
        self.room = true;
        let lives = self.sessions.iter_mut().map(|session| &mut session.life);
        for life in lives.chain(self.leases.iter_mut().filter_map(|lease| lease.life.as_mut())) {
            let left = life.noted.unwrap_or(armed_ms(life.ttl));
            life.floor = life.floor.map(|(ms, _)| (ms, now + life.noted.map_or(ms, |noted| noted.min(ms))));
            let floor_until = life.floor.map_or(0, |(_, until)| until);
            let spread = (life.ttl / 10).clamp(1, 2_000) - 1;
            life.earliest = (now + left).max(floor_until);
            life.latest = (now + left + spread).max(floor_until);
        }
        for lease in &mut self.leases {
            lease.hold_ends = lease.max_hold.map(|ms| now + armed_ms(ms).saturating_sub(lease.noted_age));
        }
        for delay in &mut self.delays {
            delay.until = now + delay.ms;
        }
    }
}
