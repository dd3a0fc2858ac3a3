//! What was learnt from the records so far. It judges nothing; the functions in `promises` do.

use std::sync::Arc;

use crate::fold::QuickMap;
use crate::lease::{Ending, Holder, Lease, Life, Mark, Resource};
use crate::record::{Answer, At, Call, Change, Hash, Id, Mode, Record};

/// See the module. Maps are only looked up by key, so that their order never matters.
#[derive(Debug, Default)]
pub struct Book {
    /// Attempts without an answer so far.
    pub(crate) ops: QuickMap<u64, Op>,
    pub(crate) leases: QuickMap<Id, Lease>,
    pub(crate) lives: QuickMap<Id, Life>,
    pub(crate) resources: QuickMap<Arc<str>, Resource>,
    /// Where each lease is, so that its end finds it.
    places: QuickMap<Id, Arc<str>>,
    /// In the order of time.
    pub(crate) claims: Vec<Claimed>,
    pub(crate) last_slot: Option<LastSlot>,
    pub(crate) last_token: (u64, Mark),
    /// The largest token, and the largest audit number, that somebody was told.
    pub(crate) told_token: (u64, Mark),
    pub(crate) told_audit: (u64, Mark),
    /// The newest epoch that served somebody.
    pub(crate) told_epoch: (u64, Mark),
    /// Whose tokens were told.
    pub(crate) tokens: QuickMap<u64, (Id, Mark)>,
    pub(crate) clients: QuickMap<Arc<str>, (u64, Mark)>,
    pub(crate) fences: QuickMap<Arc<str>, (u64, Mark)>,
    pub(crate) seen: QuickMap<Arc<str>, (u64, Mark)>,
    pub(crate) streams: QuickMap<Arc<str>, Position>,
    /// What watchers were shown, in the order of the file; kept where no commits say what there was to show.
    pub(crate) shown: Vec<Shown>,
    /// By slot: how many journaled events came before it, and how many it has.
    pub(crate) events: QuickMap<u64, (u64, u32)>,
    events_total: u64,
    /// When an operator took a token away, as committed; and when operators asked for it, by resource.
    pub(crate) forced: QuickMap<u64, At>,
    pub(crate) forces: QuickMap<Arc<str>, Vec<At>>,
    /// The largest audit number that anybody had been told when a force-release was first asked for.
    forced_first: QuickMap<Id, (u64, Mark)>,
    pub(crate) beliefs: Vec<Belief>,
}

/// One attempt.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) mark: Mark,
    pub(crate) client: Arc<str>,
    pub(crate) call: Call,
    /// What somebody had been told before this attempt began.
    pub(crate) told_token: (u64, Mark),
    pub(crate) told_audit: (u64, Mark),
    pub(crate) told_epoch: (u64, Mark),
}

#[derive(Clone, Debug)]
pub(crate) struct Claimed {
    pub(crate) epoch: u64,
    pub(crate) node: Arc<str>,
    pub(crate) tail: u64,
    pub(crate) mark: Mark,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct LastSlot {
    pub(crate) slot: u64,
    pub(crate) epoch: u64,
    pub(crate) hash: Hash,
    pub(crate) mark: Mark,
}

/// How far a watcher has come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Position {
    /// After so many events.
    After(u64, Mark),
    /// It was told that everything before this slot is gone.
    From(u64, Mark),
}

/// One event as a watcher was shown it, or the news that earlier ones are gone.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) stream: Arc<str>,
    /// Slot and number of the event; `None`: from here on anything may be missing before the next.
    pub(crate) event: Option<(u64, u32)>,
    pub(crate) index: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Belief {
    pub(crate) resource: Arc<str>,
    pub(crate) client: Arc<str>,
    pub(crate) from: At,
    pub(crate) until: At,
    pub(crate) token: u64,
    pub(crate) mode: Mode,
    pub(crate) permit: Option<u32>,
    pub(crate) index: u64,
}

impl Book {
    /// Whether the history shows what was committed.
    pub(crate) fn has_commits(&self) -> bool {
        self.last_slot.is_some()
    }

    /// When an operator took away what this belief is about, without its client knowing.
    pub(crate) fn forced_at(&self, belief: &Belief) -> Option<At> {
        if self.has_commits() {
            return self.forced.get(&belief.token).copied();
        }
        let forces = self.forces.get(&belief.resource)?;
        forces.get(forces.partition_point(|at| *at < belief.from)).copied()
    }

    /// The claim that ended this epoch, if one did.
    pub(crate) fn replaced(&self, epoch: u64) -> Option<&Claimed> {
        let first = self.claims.partition_point(|claim| claim.epoch <= epoch);
        self.claims.get(first)
    }

    /// What keeps a lease alive.
    pub(crate) fn life_of(&self, lease: Id) -> Id {
        self.leases.get(&lease).and_then(|lease| lease.life).unwrap_or(lease)
    }

    /// The life that the answer to an attempt is about.
    pub(crate) fn promised_life(&self, call: &Call) -> Option<Id> {
        match call {
            Call::Acquire { lease, session, .. } => Some(session.unwrap_or(*lease)),
            Call::Renew { life } | Call::OpenSession { session: life } => Some(*life),
            _ => None,
        }
    }

    /// Takes a record in; it was checked before.
    pub(crate) fn take(&mut self, index: u64, record: &Record) {
        let mark = Mark { at: record.at(), index };
        match record {
            Record::Invoke { op, client, call, .. } => self.take_invoke(mark, *op, client, call),
            Record::Answer { op, epoch, answer, .. } => self.take_answer(mark, *op, *epoch, answer),
            Record::Held { from, until, client, resource, token, mode, permit, .. } => {
                self.beliefs.push(Belief {
                    resource: Arc::clone(resource),
                    client: Arc::clone(client),
                    from: *from,
                    until: *until,
                    token: *token,
                    mode: *mode,
                    permit: *permit,
                    index,
                });
            }
            Record::Fence { fence, token, admitted: true, .. } => {
                self.fences.insert(Arc::clone(fence), (*token, mark));
            }
            Record::Claim { node, epoch, tail, .. } => {
                self.claims.push(Claimed { epoch: *epoch, node: Arc::clone(node), tail: *tail, mark });
            }
            Record::Seen { node, slot, .. } => {
                let seen = self.seen.entry(Arc::clone(node)).or_insert((*slot, mark));
                *seen = (*seen).max((*slot, mark));
            }
            Record::Commit { slot, epoch, hash, changes, events, .. } => {
                self.last_slot = Some(LastSlot { slot: *slot, epoch: *epoch, hash: *hash, mark });
                let changed: u32 = changes.iter().map(|change| self.take_change(mark, change)).sum();
                let events = events.unwrap_or(changed);
                self.events.insert(*slot, (self.events_total, events));
                self.events_total += u64::from(events);
            }
            Record::Event { stream, slot, n, .. } => {
                let before = self.events.get(slot).map_or(0, |(before, _)| *before);
                let after = before + u64::from(*n) + 1;
                self.streams.insert(Arc::clone(stream), Position::After(after, mark));
                self.note_shown(stream, Some((*slot, *n)), index);
            }
            Record::Compacted { stream, slot, .. } => {
                self.streams.insert(Arc::clone(stream), Position::From(*slot, mark));
                self.note_shown(stream, None, index);
            }
            Record::Fence { .. } | Record::Fault { .. } => {}
        }
    }

    fn note_shown(&mut self, stream: &Arc<str>, event: Option<(u64, u32)>, index: u64) {
        if !self.has_commits() {
            self.shown.push(Shown { stream: Arc::clone(stream), event, index });
        }
    }

    fn take_invoke(&mut self, mark: Mark, op: u64, client: &Arc<str>, call: &Call) {
        let (mut told_token, mut told_audit) = (self.told_token, self.told_audit);
        match call {
            Call::Acquire { lease, session, .. } => {
                let entry = self.leases.entry(*lease).or_default();
                // Asked for since the first attempt, whichever of them is granted.
                told_token = *entry.told_before.get_or_insert(told_token);
                entry.life = Some(session.unwrap_or(*lease));
                entry.asked.made(mark);
            }
            Call::Release { lease } => self.leases.entry(*lease).or_default().released.made(mark),
            Call::ForceRelease { resource, request } => {
                self.forces.entry(Arc::clone(resource)).or_default().push(mark.at);
                if let Some(request) = request {
                    told_audit = *self.forced_first.entry(*request).or_insert(told_audit);
                }
            }
            _ => {}
        }
        let (client, call) = (Arc::clone(client), call.clone());
        let told_epoch = self.told_epoch;
        let asked = Op { mark, client, call, told_token, told_audit, told_epoch };
        self.ops.insert(op, asked);
    }

    fn take_answer(&mut self, mark: Mark, op: u64, epoch: Option<u64>, answer: &Answer) {
        let Some(Op { mark: sent, call, client, .. }) = self.ops.remove(&op) else { return };
        if let Some(epoch) = epoch {
            self.clients.insert(client, (epoch, mark));
            if epoch > self.told_epoch.0 && !answer.is_error() {
                self.told_epoch = (epoch, mark);
            }
        }
        let nothing = matches!(answer, Answer::Failed | Answer::Refused | Answer::NotGranted);
        match &call {
            Call::Acquire { lease, .. } if nothing => {
                self.leases.entry(*lease).or_default().asked.failed(mark);
            }
            Call::Release { lease } if nothing => {
                self.leases.entry(*lease).or_default().released.failed(mark);
            }
            _ => {}
        }
        match (answer, &call) {
            (Answer::Granted { token, ttl_ms }, Call::Acquire { lease, resource, .. }) => {
                self.told_token = self.told_token.max((*token, mark));
                self.tokens.entry(*token).or_insert((*lease, mark));
                let entry = self.leases.entry(*lease).or_default();
                if entry.told.is_none() {
                    entry.told = Some((*token, mark));
                    self.resources.entry(Arc::clone(resource)).or_default().told.push(*lease);
                }
                self.promise(&call, sent, *ttl_ms);
            }
            (Answer::Renewed { ttl_ms }, _) => self.promise(&call, sent, *ttl_ms),
            (Answer::Released { .. }, Call::Release { lease }) => {
                self.leases.entry(*lease).or_default().given_back.get_or_insert(mark);
            }
            (Answer::Forced { audit_seq }, _) => {
                self.told_audit = self.told_audit.max((*audit_seq, mark));
            }
            _ => {}
        }
    }

    fn promise(&mut self, call: &Call, sent: Mark, ttl_ms: u64) {
        let Some(life) = self.promised_life(call) else { return };
        let until = Mark { at: sent.at + 1_000 * ttl_ms, index: sent.index };
        let life = self.lives.entry(life).or_default();
        if until.at > life.promised.at {
            life.promised = until;
        }
    }

    /// Takes one change in; how many leases began or ended with it.
    fn take_change(&mut self, mark: Mark, change: &Change) -> u32 {
        match change {
            Change::Granted { lease, life, resource, token, mode, permit } => {
                let entry = self.leases.entry(*lease).or_default();
                entry.life = Some(*life);
                entry.granted = Some((*token, mark));
                self.last_token = (*token, mark);
                self.lives.entry(*life).or_default().leases.push(*lease);
                let place = self.resources.entry(Arc::clone(resource)).or_default();
                let (token, mode, permit) = (*token, *mode, *permit);
                place.holders.push(Holder { lease: *lease, token, mode, permit, mark });
                place.changed(mark);
                self.places.insert(*lease, Arc::clone(resource));
                1
            }
            Change::Released { lease } => self.end(*lease, Ending::Released, mark),
            Change::Expired { lease, max_hold } => {
                let ending = if *max_hold { Ending::MaxHold } else { Ending::Expired };
                if !max_hold {
                    let life = self.life_of(*lease);
                    self.lives.entry(life).or_default().expired = Some(mark);
                }
                self.end(*lease, ending, mark)
            }
            Change::SessionExpired { session } => {
                self.lives.entry(*session).or_default().expired = Some(mark);
                self.end_session(*session, Ending::Expired, mark)
            }
            Change::SessionClosed { session } => self.end_session(*session, Ending::SessionClosed, mark),
            Change::Forced { leases } => {
                leases.iter().map(|lease| self.end(*lease, Ending::Forced, mark)).sum()
            }
        }
    }

    fn end_session(&mut self, session: Id, ending: Ending, mark: Mark) -> u32 {
        let leases = self.lives.get_mut(&session).map(|life| std::mem::take(&mut life.leases));
        leases.into_iter().flatten().map(|lease| self.end(lease, ending, mark)).sum()
    }

    fn end(&mut self, lease: Id, ending: Ending, mark: Mark) -> u32 {
        let Some(resource) = self.places.remove(&lease) else { return 0 };
        let entry = self.leases.entry(lease).or_default();
        entry.ended = Some((ending, mark));
        if let (Ending::Forced, Some((token, _))) = (ending, entry.granted) {
            self.forced.insert(token, mark.at);
        }
        if let Some(place) = self.resources.get_mut(&resource) {
            place.holders.retain(|holder| holder.lease != lease);
            place.changed(mark);
        }
        1
    }
}
