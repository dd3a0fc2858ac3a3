//! The journaled part of the table: what facts alone change, and snapshots hold.

use std::collections::BTreeMap;

use leasehold_types::{
    EndReason, FencingToken, Generation, LeaseId, OwnerId, RequestKey, ResourceKey, ResourceName, SessionId,
    TenantName, Ttl, WallTime, limits,
};

use crate::arena::Arena;
use crate::audit::{Action, AuditAction, AuditLog};
use crate::codec::FIRST_FORMAT;
use crate::credential::Credentials;
use crate::event::{Event, EventKind};
use crate::fact::{Fact, Forced, Granted, LifeId, RaisedBy, SessionBegan, SessionEnd, TookOver};
use crate::fingerprint::{self, AskedFor};
use crate::lease::{Lease, LeaseIx, Life, Note, Session, SessionIx};
use crate::lease_ids::{Known, LeaseIds, Records};
use crate::outcomes::{EndedLease, EndedSession, Ids, Keyed, Outcomes, WasLease};
use crate::reply::{EndedInSession, Ending, Holder};
use crate::resource::{Closes, Delay, Resource};
use crate::resources::Resources;
use crate::secret::ClusterSecret;
use crate::table::Counts;
use crate::usage::Usages;

/// The part of the table that facts alone change, and that snapshots hold. The same facts give the same state, from
/// the beginning or from a snapshot on (S15).
#[derive(Clone, Debug)]
pub struct Journaled {
    pub(crate) leases: Arena<Lease>,
    pub(crate) lease_ids: LeaseIds,
    pub(crate) sessions: Arena<Session>,
    pub(crate) session_ids: BTreeMap<SessionId, SessionIx>,
    pub(crate) resources: Resources,
    /// Counts endings: when a resource was last used.
    pub(crate) used: u64,
    pub(crate) outcomes: Outcomes,
    pub(crate) audit: AuditLog,
    pub(crate) last_token: u64,
    pub(crate) generation: Generation,
    /// Who took the journal over last and has not resigned since.
    pub(crate) active: Option<Box<TookOver>>,
    /// The newest format of facts that may be in the journal (N10).
    pub(crate) format: u8,
    /// What the nodes of this journal prove to each other with (N7).
    pub(crate) secret: Option<ClusterSecret>,
    /// The token floor of the last recovery: who has seen no more than this of an earlier generation has nothing to fear.
    /// Forgotten by a snapshot of format 1.
    pub(crate) recovered_above: Option<u64>,
    /// Who the callers are.
    pub(crate) credentials: Credentials,
    /// What each tenant has; follows from the rest, and is not in snapshots.
    pub(crate) usages: Usages,
}

/// What a fact changed, for the volatile part and for events. In no box, since they lie in a list that is used again.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Granted(LeaseIx),
    Proclaimed(LeaseIx),
    Ended(Ended),
    SessionOpened(SessionIx),
    SessionEnded(SessionIx, SessionId),
    DelayOpened { resource: ResourceKey, delay: Delay },
    DelayEnded { resource: ResourceKey, token: FencingToken },
}

/// A lease that ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) ix: LeaseIx,
    pub(crate) lease: Lease,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Ttl,
    pub(crate) session: Option<SessionId>,
    pub(crate) reason: EndReason,
    pub(crate) max_hold: bool,
}

impl Ended {
    pub(crate) fn event(&self, held_ms: u64) -> Event {
        let kind = EventKind::Ended { reason: self.reason, max_hold: self.max_hold, held_ms };
        event_of(&self.lease, self.owner.clone(), (self.ttl, self.session), kind)
    }
}

fn event_of(
    lease: &Lease,
    owner: OwnerId,
    (ttl, session): (Ttl, Option<SessionId>),
    kind: EventKind,
) -> Event {
    Event {
        kind,
        resource: lease.resource.clone(),
        owner,
        lease_id: lease.id,
        token: Some(lease.token()),
        mode: lease.mode(),
        permit: lease.permit(),
        ttl_ms: ttl.ms(),
        session,
    }
}

/// Facts that are looked at together before they are applied.
const AHEAD: usize = 32;

/// Why and when a lease ends, and whether its lock delay opens.
#[derive(Clone, Copy)]
struct How {
    reason: EndReason,
    max_hold: bool,
    delayed: bool,
    at: WallTime,
}

impl Default for Journaled {
    fn default() -> Self {
        Self::new()
    }
}

impl Journaled {
    /// The empty state before the first fact: generation 1, no token given.
    pub fn new() -> Self {
        Self {
            leases: Arena::default(),
            lease_ids: LeaseIds::default(),
            sessions: Arena::default(),
            session_ids: BTreeMap::new(),
            resources: Resources::default(),
            used: 0,
            outcomes: Outcomes::default(),
            audit: AuditLog::default(),
            last_token: 0,
            generation: Generation(1),
            active: None,
            format: FIRST_FORMAT,
            secret: None,
            recovered_above: None,
            credentials: Credentials::default(),
            usages: Usages::default(),
        }
    }

    /// Applies these facts, and tells nobody what happened.
    pub fn replay_untold(&mut self, facts: &[Fact]) {
        let mut changes = Vec::new();
        for facts in facts.chunks(AHEAD) {
            self.look_ahead(facts);
            for fact in facts {
                self.apply(fact, &mut changes);
                changes.clear();
            }
        }
    }

    /// See [`LeaseIds::look_ahead`].
    fn look_ahead(&self, facts: &[Fact]) {
        for fact in facts {
            if let Fact::Granted(granted) = fact {
                self.lease_ids.look_ahead(granted.lease_id);
            }
        }
    }

    /// Applies one fact and hands out the events it makes, as the live table did.
    pub fn replay(&mut self, fact: &Fact, events: &mut Vec<Event>) {
        let mut changes = Vec::new();
        self.apply(fact, &mut changes);
        for change in &changes {
            match change {
                Change::Granted(ix) => events.push(self.granted_event(*ix, 0)),
                Change::Proclaimed(ix) => events.push(self.proclaimed_event(*ix)),
                Change::Ended(ended) => events.push(ended.event(0)),
                _ => {}
            }
        }
    }

    /// The largest token ever given, or the floor that a recovery set.
    pub fn last_token(&self) -> u64 {
        self.last_token
    }

    /// Who took the journal over last and has not resigned since; `None` as well where one node alone uses the journal.
    /// Whether it still is the active one, its epoch tells.
    pub fn active(&self) -> Option<&TookOver> {
        self.active.as_deref()
    }

    /// The newest format of facts that may be in the journal, and the one that is written (N10).
    pub fn format(&self) -> u8 {
        self.format
    }

    /// The secret of the journal's nodes, once there is one.
    pub fn secret(&self) -> Option<&ClusterSecret> {
        self.secret.as_ref()
    }

    /// The token floor of the last recovery, as far as it is known.
    pub fn recovered_above(&self) -> Option<u64> {
        self.recovered_above
    }

    /// Sizes, without waiters: those are not journaled.
    pub fn counts(&self) -> Counts {
        Counts {
            leases: self.leases.len(),
            sessions: self.session_ids.len(),
            waiters: 0,
            last_token: self.last_token,
            generation: self.generation.0,
            recovered_above: self.recovered_above.unwrap_or(0),
        }
    }

    /// The generation.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// Applies one fact. The only way in which this state changes.
    ///
    /// # Panics
    /// When the fact does not fit the state: the journal was not written by these rules, and going on would guess.
    pub(crate) fn apply(&mut self, fact: &Fact, changes: &mut Vec<Change>) {
        match fact {
            Fact::Granted(granted) => {
                let ix = self.grant(granted);
                changes.push(Change::Granted(ix));
            }
            Fact::Released { lease_id, at, key } => {
                let how = How { reason: EndReason::Released, max_hold: false, delayed: false, at: *at };
                let ix = self.lease_ix(*lease_id);
                let keyed = key.as_ref().map(|key| (key, self.leases.get(ix).resource.clone()));
                self.end_lease(ix, how, changes);
                if let Some((key, resource)) = keyed {
                    let tenant = self.outcomes.tenant(resource.tenant());
                    self.remember_key(&tenant, key, Keyed::Released(*lease_id));
                }
            }
            Fact::Expired { lease_id, max_hold, at } => {
                let how = How { reason: EndReason::Expired, max_hold: *max_hold, delayed: true, at: *at };
                self.end_lease(self.lease_ix(*lease_id), how, changes);
            }
            Fact::SessionOpened(began) => {
                let ix = self.open_session(began);
                changes.push(Change::SessionOpened(ix));
            }
            Fact::SessionEnded { session_id, cause, at, key } => {
                let tenant = self.sessions.get(self.session_ix(*session_id)).tenant.clone();
                self.end_session(*session_id, cause, *at, changes);
                if let Some(key) = key {
                    self.remember_key(&tenant, key, Keyed::Closed(*session_id));
                }
            }
            Fact::ForceReleased(forced) => self.force(forced, changes),
            Fact::TtlChanged { of, ttl, floor_ms } => self.change_ttl(*of, *ttl, *floor_ms),
            Fact::Noted { of, remaining_ms, age_ms } => {
                let note = Note { remaining_ms: *remaining_ms, age_ms: *age_ms, cleared: false };
                self.set_note(*of, note);
            }
            Fact::NoteCleared { of } => {
                if let Some(note) = self.note(*of) {
                    self.set_note(*of, Note { cleared: true, ..note });
                }
            }
            Fact::DelayEnded { resource, token } => self.end_delay(resource, *token, changes),
            Fact::IdClosed { tenant, lease_id, key } => {
                let tenant = self.outcomes.tenant(tenant.as_str());
                let ended = EndedLease {
                    id: *lease_id,
                    tenant: tenant.clone(),
                    reason: EndReason::Unknown,
                    max_hold: false,
                    principal: None,
                    was: None,
                };
                self.remember_ended(ended);
                if let Some(key) = key {
                    self.remember_key(&tenant, key, Keyed::Released(*lease_id));
                }
            }
            Fact::Forgotten { through } => {
                let ids = &mut Ids { ids: &mut self.lease_ids, leases: &self.leases };
                self.outcomes.forget_through(*through, ids);
            }
            Fact::EndingsSeen { session_id, lease_ids } => {
                let ix = self.session_ix(*session_id);
                self.sessions.get_mut(ix).unseen.retain(|ended| !lease_ids.contains(&ended.lease_id));
            }
            Fact::Recovered { generation, token_floor, operator, identity, at } => {
                assert!(*generation > self.generation, "a generation only grows");
                self.generation = *generation;
                self.recovered_above = Some(*token_floor);
                self.last_token = self.last_token.max(*token_floor);
                let identity = identity.as_deref();
                let (action, tokens) = (AuditAction::Recover, vec![*token_floor]);
                self.audit.add(Action {
                    action,
                    tenant: "",
                    resource: None,
                    operator,
                    identity,
                    tokens,
                    at: *at,
                });
            }
            Fact::Proclaimed { lease_id, value } => {
                let ix = self.lease_ix(*lease_id);
                let lease = self.leases.get_mut(ix);
                self.usages.lease_ends(lease);
                lease.set_value(value.clone());
                self.usages.lease_begins(lease);
                changes.push(Change::Proclaimed(ix));
            }
            Fact::Resigned => self.active = None,
            Fact::TookOver(took_over) => self.active = Some(took_over.clone()),
            Fact::SecretMade(secret) => self.secret = Some(secret.clone()),
            Fact::FormatRaised { format, by, at } => self.raise_format(*format, by.as_deref(), *at),
            Fact::CredentialAdded { credential, change } => self.add_credential(credential, change),
            Fact::CredentialRevoked { id, change } => self.revoke_credential(*id, change),
            Fact::SettingsChanged { operator, at } => self.note_settings(operator, *at),
            Fact::BackedUp { operator, identity, at } => self.note_backup(operator, identity.as_deref(), *at),
        }
    }

    fn raise_format(&mut self, format: u8, by: Option<&RaisedBy>, at: WallTime) {
        assert!(format > self.format, "a format only grows");
        self.format = format;
        if let Some(RaisedBy { operator, identity }) = by {
            let (action, identity) = (AuditAction::UpgradeFinish, identity.as_deref());
            let tokens = Vec::new();
            self.audit.add(Action { action, tenant: "", resource: None, operator, identity, tokens, at });
        }
    }

    fn grant(&mut self, granted: &Granted) -> LeaseIx {
        assert!(granted.token.get() > self.last_token, "a token only grows");
        self.last_token = granted.token.get();
        if let Some(key) = &granted.key {
            let tenant = self.outcomes.tenant(granted.resource.tenant());
            self.outcomes.tie(&tenant, key, Keyed::Acquired(granted.lease_id));
        }
        self.insert_lease(granted)
    }

    /// Puts a lease into every index. Also for snapshots, in the order of tokens.
    pub(crate) fn insert_lease(&mut self, granted: &Granted) -> LeaseIx {
        let session = granted.session.map(|id| self.session_ix(id));
        let lease = Lease::new(granted, session);
        self.usages.lease_begins(&lease);
        let ix = self.leases.insert(lease);
        let records = Records { leases: &self.leases, ended: self.outcomes.leases() };
        let former = self.lease_ids.set(granted.lease_id, Known::Live(ix), records);
        assert!(!matches!(former, Some(Known::Live(_))), "a lease id names one grant");
        if let Some(known) = self.resources.add_holder(ix, &self.leases) {
            self.leases.get_mut(ix).resource = known;
        }
        if let Some(session) = session {
            self.sessions.get_mut(session).leases.insert(ix);
        }
        ix
    }

    fn end_lease(&mut self, ix: LeaseIx, how: How, changes: &mut Vec<Change>) {
        let lease = self.leases.get(ix);
        self.usages.lease_ends(lease);
        let (owner, ttl, session_id) = match lease.life() {
            Life::Own(own) => (own.owner.clone(), own.ttl, None),
            Life::Session(session_ix) => {
                let session = self.sessions.get_mut(session_ix);
                session.leases.remove(ix);
                if how.reason != EndReason::Released {
                    note_unseen(session, lease, how.reason);
                }
                (session.owner.clone(), session.ttl, Some(session.id))
            }
        };
        self.keep_ending(ix, &owner, how);
        self.remember_ending(ix, session_id, how);
        // Nothing points at it any more.
        let lease = self.leases.remove(ix);
        let (session, How { reason, max_hold, .. }) = (session_id, how);
        let delay_ms = lease.lock_delay_ms();
        if how.delayed && delay_ms > 0 {
            let closes = Closes::after(lease.sharing(), lease.permit());
            let (resource, delay) =
                (lease.resource.clone(), Delay { token: lease.token(), closes, ms: delay_ms });
            let ended = Ended { ix, lease, owner, ttl, session, reason, max_hold };
            changes.push(Change::Ended(ended));
            self.resources.add_delay(&resource, delay, &self.leases);
            changes.push(Change::DelayOpened { resource, delay });
            return;
        }
        let ended = Ended { ix, lease, owner, ttl, session, reason, max_hold };
        changes.push(Change::Ended(ended));
    }

    fn keep_ending(&mut self, ix: LeaseIx, owner: &OwnerId, how: How) {
        let ending = Ending {
            owner: owner.clone(),
            token: self.leases.get(ix).token(),
            reason: how.reason,
            max_hold: how.max_hold,
            at: how.at,
        };
        self.used += 1;
        self.resources.end_holder(ix, &self.leases, ending, self.used);
        if self.resources.recent_len() > limits::RESOURCES_WITH_ENDINGS {
            self.resources.forget_oldest();
        }
    }

    fn remember_ending(&mut self, ix: LeaseIx, session: Option<SessionId>, how: How) {
        let lease = self.leases.get(ix);
        let was = WasLease {
            resource: lease.resource.clone(),
            token: lease.token(),
            asked_for: AskedFor::of(lease, session),
            key: lease.key().cloned(),
        };
        let ended = EndedLease {
            id: lease.id,
            tenant: self.outcomes.tenant(lease.resource.tenant()),
            reason: how.reason,
            max_hold: how.max_hold,
            principal: self.principal_of(lease).map(Into::into),
            was: Some(was),
        };
        self.remember_ended(ended);
    }

    fn remember_ended(&mut self, ended: EndedLease) {
        let ids = &mut Ids { ids: &mut self.lease_ids, leases: &self.leases };
        self.outcomes.remember_lease(ended, ids);
    }

    fn remember_key(&mut self, tenant: &TenantName, key: &RequestKey, keyed: Keyed) {
        let ids = &mut Ids { ids: &mut self.lease_ids, leases: &self.leases };
        self.outcomes.remember_key(tenant, key, keyed, ids);
    }

    fn open_session(&mut self, began: &SessionBegan) -> SessionIx {
        if let Some(key) = &began.key {
            let fingerprint = fingerprint::of_opening(&began.owner, began.ttl, &began.labels);
            self.outcomes.tie(
                &began.tenant,
                key,
                Keyed::Opened { session_id: began.session_id, fingerprint },
            );
        }
        self.insert_session(Session::new(began))
    }

    /// Also for snapshots.
    pub(crate) fn insert_session(&mut self, session: Session) -> SessionIx {
        let id = session.id;
        self.usages.session_begins(&session);
        let ix = self.sessions.insert(session);
        let former = self.session_ids.insert(id, ix);
        assert!(former.is_none(), "a session id names one session");
        ix
    }

    fn end_session(&mut self, id: SessionId, cause: &SessionEnd, at: WallTime, changes: &mut Vec<Change>) {
        let ix = self.session_ix(id);
        let (reason, delayed) = match cause {
            SessionEnd::Closed => (EndReason::SessionEnded, false),
            SessionEnd::Expired => (EndReason::Expired, true),
            SessionEnd::ByOperator { .. } => (EndReason::SessionEnded, true),
        };
        let leases = self.leases_of(ix);
        let tokens: Vec<u64> = leases.iter().map(|ix| self.leases.get(*ix).token().get()).collect();
        for lease in &leases {
            self.end_lease(*lease, How { reason, max_hold: false, delayed, at }, changes);
        }
        let session = self.sessions.remove(ix);
        self.usages.session_ends(&session);
        self.session_ids.remove(&id);
        if let SessionEnd::ByOperator { operator, identity } = cause {
            let (action, tenant, identity) =
                (AuditAction::SessionEnd, session.tenant.as_str(), identity.as_deref());
            self.audit.add(Action { action, tenant, resource: None, operator, identity, tokens, at });
        }
        let closed = matches!(cause, SessionEnd::Closed);
        let released = leases.len() as u64;
        let Session { tenant, key, principal, .. } = session;
        let ended = EndedSession { tenant, closed, released, key, principal };
        let ids = &mut Ids { ids: &mut self.lease_ids, leases: &self.leases };
        self.outcomes.remember_session(id, ended, ids);
        changes.push(Change::SessionEnded(ix, id));
    }

    /// The leases of a session in the order of their tokens: the arena's own order differs between replays.
    pub(crate) fn leases_of(&self, ix: SessionIx) -> Vec<LeaseIx> {
        let mut leases: Vec<_> = self.sessions.get(ix).leases.iter().collect();
        leases.sort_by_key(|ix| self.leases.get(*ix).token());
        leases
    }

    fn force(&mut self, forced: &Forced, changes: &mut Vec<Change>) {
        let leases: Vec<_> = forced.lease_ids.iter().map(|id| self.lease_ix(*id)).collect();
        let tokens = leases.iter().map(|ix| self.leases.get(*ix).token().get()).collect();
        let released = leases.iter().map(|ix| self.holder(*ix, forced.at)).collect();
        let delayed = !forced.skip_lock_delay;
        for ix in leases {
            let how = How { reason: EndReason::Forced, max_hold: false, delayed, at: forced.at };
            self.end_lease(ix, how, changes);
        }
        let tenant = self.outcomes.tenant(forced.resource.tenant());
        let audit_seq = self.audit.add(Action {
            action: AuditAction::ForceRelease,
            tenant: tenant.as_str(),
            resource: Some(forced.resource.clone()),
            operator: &forced.operator,
            identity: forced.identity.as_deref(),
            tokens,
            at: forced.at,
        });
        if let Some(key) = &forced.key {
            let fingerprint = fingerprint::of_forced(forced);
            self.remember_key(&tenant, key, Keyed::Forced { fingerprint, released, audit_seq });
        }
    }

    fn end_delay(&mut self, key: &ResourceKey, token: FencingToken, changes: &mut Vec<Change>) {
        self.resources.remove_delay(key, token, &self.leases);
        changes.push(Change::DelayEnded { resource: key.clone(), token });
    }

    fn change_ttl(&mut self, of: LifeId, ttl: Ttl, floor_ms: u64) {
        match of {
            LifeId::Session(id) => {
                let ix = self.session_ix(id);
                let session = self.sessions.get_mut(ix);
                (session.ttl, session.floor_ms) = (ttl, floor_ms);
            }
            LifeId::Lease(id) => {
                let ix = self.lease_ix(id);
                let own = self.leases.get_mut(ix).own_mut();
                let own = own.expect("a lease in a session has no ttl of its own");
                (own.ttl, own.floor_ms) = (ttl, floor_ms);
            }
        }
    }

    pub(crate) fn note(&self, of: LifeId) -> Option<Note> {
        match of {
            LifeId::Lease(id) => self.leases.get(self.lease_ix(id)).note(),
            LifeId::Session(id) => self.sessions.get(self.session_ix(id)).note,
        }
    }

    pub(crate) fn set_note(&mut self, of: LifeId, note: Note) {
        match of {
            LifeId::Lease(id) => {
                let ix = self.lease_ix(id);
                self.leases.get_mut(ix).set_note(Some(note));
            }
            LifeId::Session(id) => {
                let ix = self.session_ix(id);
                self.sessions.get_mut(ix).note = Some(note);
            }
        }
    }

    /// What became of the grant with this id, as far as it is remembered.
    pub(crate) fn known(&self, id: LeaseId) -> Option<Known> {
        self.lease_ids.get(id, Records { leases: &self.leases, ended: self.outcomes.leases() })
    }

    /// The live lease with this id.
    pub(crate) fn find_lease(&self, id: LeaseId) -> Option<LeaseIx> {
        match self.known(id)? {
            Known::Live(ix) => Some(ix),
            Known::Ended(_) => None,
        }
    }

    /// How the lease with this id ended.
    pub(crate) fn ended_lease(&self, id: LeaseId) -> Option<&EndedLease> {
        match self.known(id)? {
            Known::Live(_) => None,
            Known::Ended(ix) => Some(self.outcomes.leases().get(ix)),
        }
    }

    /// What is known of a resource, if anything is.
    pub(crate) fn resource(&self, key: &ResourceKey) -> Option<Resource<'_>> {
        self.resources.get(key, &self.leases)
    }

    pub(crate) fn lease_ix(&self, id: LeaseId) -> LeaseIx {
        self.find_lease(id).expect("a fact names a live lease")
    }

    fn session_ix(&self, id: SessionId) -> SessionIx {
        *self.session_ids.get(&id).expect("a fact names a live session")
    }

    /// The principal that alone may use a lease.
    pub(crate) fn principal_of<'a>(&'a self, lease: &'a Lease) -> Option<&'a str> {
        match lease.session() {
            Some(ix) => self.sessions.get(ix).principal.as_deref(),
            None => lease.own_principal(),
        }
    }

    pub(crate) fn owner_of<'a>(&'a self, lease: &'a Lease) -> &'a OwnerId {
        match lease.life() {
            Life::Own(own) => &own.owner,
            Life::Session(ix) => &self.sessions.get(ix).owner,
        }
    }

    pub(crate) fn ttl_of(&self, lease: &Lease) -> Ttl {
        match lease.life() {
            Life::Own(own) => own.ttl,
            Life::Session(ix) => self.sessions.get(ix).ttl,
        }
    }

    pub(crate) fn session_id_of(&self, lease: &Lease) -> Option<SessionId> {
        lease.session().map(|ix| self.sessions.get(ix).id)
    }

    pub(crate) fn event_of(&self, lease: &Lease, kind: EventKind) -> Event {
        let life = (self.ttl_of(lease), self.session_id_of(lease));
        event_of(lease, self.owner_of(lease).clone(), life, kind)
    }

    pub(crate) fn granted_event(&self, ix: LeaseIx, waited_ms: u64) -> Event {
        self.event_of(self.leases.get(ix), EventKind::Granted { waited_ms })
    }

    pub(crate) fn proclaimed_event(&self, ix: LeaseIx) -> Event {
        self.event_of(self.leases.get(ix), EventKind::Proclaimed)
    }

    /// A holder as others see it.
    pub(crate) fn holder(&self, ix: LeaseIx, expires_at: WallTime) -> Holder {
        let lease = self.leases.get(ix);
        Holder {
            owner: self.owner_of(lease).clone(),
            token: lease.token(),
            permit: lease.permit(),
            expires_at,
            mode: lease.mode(),
        }
    }
}

/// Remembers an ending for the session's client, dropping the oldest beyond a page.
fn note_unseen(session: &mut Session, lease: &Lease, reason: EndReason) {
    if session.unseen.len() >= limits::PAGE_SIZE {
        session.unseen.remove(0);
    }
    session.unseen.push(EndedInSession {
        lease_id: lease.id,
        resource: name_of(&lease.resource),
        token: lease.token(),
        reason,
    });
}

pub(crate) fn name_of(key: &ResourceKey) -> ResourceName {
    key.to_name()
}
