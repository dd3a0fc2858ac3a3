//! The journaled part as a stream of records in a canonical order, cut into chunks of whole records. The same state
//! gives the same bytes, which is how tests compare states.

use std::collections::BTreeMap;

use bytes::Bytes;
use leasehold_types::{Generation, LeaseId, RequestKey, ResourceKey, TenantName};

use super::CodecError;
use super::bytes::{Decoder, Encoder};
use crate::arena::Ix;
use crate::fact::{Granted, SessionBegan};
use crate::fingerprint::{self, AskedFor};
use crate::journaled::Journaled;
use crate::lease::{Lease, Note, Session};
use crate::outcomes::{EndedLease, EndedSession, Ids, Keyed, Remembered, WasLease};
use crate::reply::{EndedInSession, Ending, Holder};
use crate::resource::{Closes, Delay, Full, Resource};
use crate::secret::ClusterSecret;

/// Stands before the record of something that is bound to a principal, with its name. Since format 2.
const BOUND: u8 = 10;

/// Writes the journaled part as chunks of at most `chunk_bytes`. They are of whole records, but for a record that is longer by
/// itself: it is cut, and every part of it but the last is a chunk that is marked as going on.
///
/// # Errors
/// Those of `sink`.
pub fn encode_snapshot<E>(
    state: &Journaled,
    chunk_bytes: usize,
    sink: &mut dyn FnMut(Bytes) -> Result<(), E>,
) -> Result<(), E> {
    let (encoder, format) = (Encoder::over(vec![state.format]), state.format);
    let chunk_bytes = chunk_bytes.max(HEAD + 1);
    let mut chunks = Chunks { encoder, format, records: 0, chunk_bytes, sink };
    chunks.record(|encoder| encoder.meta(state))?;
    if let Some(active) = &state.active {
        chunks.record(|encoder| {
            encoder.byte(7);
            encoder.took_over(active);
        })?;
    }
    if state.format >= 2 {
        chunks.since_format_2(state)?;
    }
    for ix in state.session_ids.values() {
        chunks.record(|encoder| encoder.session(state.sessions.get(*ix)))?;
    }
    let mut leases: Vec<&Lease> = state.leases.iter().map(|(_, lease)| lease).collect();
    leases.sort_unstable_by_key(|lease| lease.token());
    for lease in leases {
        chunks.record(|encoder| encoder.lease(lease, state))?;
    }
    for (key, resource) in state.resources.with_past(&state.leases) {
        chunks.record(|encoder| encoder.resource(key.as_str(), resource))?;
    }
    for (tenant, number, what) in state.outcomes.in_order() {
        chunks.record(|encoder| encoder.outcome(tenant, number, what, state))?;
    }
    for entry in &state.audit.entries {
        chunks.record(|encoder| {
            encoder.byte(6);
            encoder.audit_entry_without_hash(entry);
            encoder.bytes32(&entry.hash);
        })?;
    }
    chunks.end()
}

/// What every chunk begins with: the format, and perhaps a flag.
const HEAD: usize = 1;
/// Beside the format: the chunk ends within a record, which goes on in the next.
const GOES_ON: u8 = 0x80;

struct Chunks<'a, E> {
    encoder: Encoder,
    format: u8,
    records: u64,
    chunk_bytes: usize,
    sink: &'a mut dyn FnMut(Bytes) -> Result<(), E>,
}

impl<E> Chunks<'_, E> {
    fn record(&mut self, write: impl FnOnce(&mut Encoder)) -> Result<(), E> {
        let before = self.encoder.len();
        write(&mut self.encoder);
        self.records += 1;
        if self.encoder.len() <= self.chunk_bytes {
            return Ok(());
        }
        if before > HEAD {
            self.cut(before, 0)?;
        }
        // What is longer than a chunk by itself: names with many thousand delays, say.
        while self.encoder.len() > self.chunk_bytes {
            self.cut(self.chunk_bytes, GOES_ON)?;
        }
        Ok(())
    }

    /// Hands over the first bytes as a chunk; the others begin the next one.
    fn cut(&mut self, length: usize, flag: u8) -> Result<(), E> {
        let mut chunk = std::mem::replace(&mut self.encoder, Encoder::over(vec![self.format])).into_bytes();
        self.encoder.raw(&chunk[length..]);
        chunk.truncate(length);
        chunk[0] |= flag;
        (self.sink)(chunk.into())
    }

    /// What an older version could not read, and has no need of.
    fn since_format_2(&mut self, state: &Journaled) -> Result<(), E> {
        if let Some(secret) = &state.secret {
            self.record(|encoder| {
                encoder.byte(8);
                encoder.bytes32(secret.as_bytes());
            })?;
        }
        if let Some(floor) = state.recovered_above {
            self.record(|encoder| {
                encoder.byte(9);
                encoder.number(floor);
            })?;
        }
        for credential in state.credentials.iter() {
            self.record(|encoder| {
                encoder.byte(11);
                encoder.credential(credential);
            })?;
        }
        Ok(())
    }

    /// The last record counts the others, so that a missing chunk is noticed here too.
    fn end(mut self) -> Result<(), E> {
        let records = self.records;
        self.record(|encoder| {
            encoder.byte(0);
            encoder.number(records);
        })?;
        (self.sink)(self.encoder.into_bytes().into())
    }
}

impl Encoder {
    fn meta(&mut self, state: &Journaled) {
        self.byte(1);
        self.number(state.last_token);
        self.number(state.generation.0);
        self.number(state.used);
        self.number(state.outcomes.count);
        self.number(state.audit.count - state.audit.entries.len() as u64);
        self.bytes32(&state.audit.anchor);
    }

    fn session(&mut self, session: &Session) {
        self.principal(BOUND, session.principal.as_deref());
        self.byte(2);
        self.session_began(&SessionBegan {
            session_id: session.id,
            tenant: session.tenant.clone(),
            owner: session.owner.clone(),
            ttl: session.asked_ttl,
            labels: session.labels.clone(),
            at: session.created_at,
            key: session.key.clone(),
            principal: None,
        });
        self.number(session.ttl.ms());
        self.number(session.floor_ms);
        self.note(session.note);
        self.list(session.unseen.iter(), |encoder, ended| {
            encoder.bytes16(ended.lease_id.as_bytes());
            encoder.text(ended.resource.as_str());
            encoder.token(ended.token);
            encoder.reason(ended.reason);
        });
    }

    fn lease(&mut self, lease: &Lease, state: &Journaled) {
        self.principal(BOUND, lease.own_principal());
        self.byte(3);
        let session = lease.session().map(|ix| state.sessions.get(ix));
        self.granted(&lease.as_granted(session));
        self.optional(lease.own(), |encoder, own| {
            encoder.number(own.ttl.ms());
            encoder.number(own.floor_ms);
        });
        self.note(lease.note());
    }

    fn note(&mut self, note: Option<Note>) {
        self.optional(note, |encoder, note| {
            encoder.number(note.remaining_ms);
            encoder.number(note.age_ms);
            encoder.flag(note.cleared);
        });
    }

    fn resource(&mut self, key: &str, resource: Resource<'_>) {
        self.byte(4);
        self.text(key);
        self.number(resource.used());
        self.list(resource.endings(), |encoder, ending| {
            encoder.text(ending.owner.as_str());
            encoder.token(ending.token);
            encoder.reason(ending.reason);
            encoder.flag(ending.max_hold);
            encoder.wall(ending.at);
        });
        self.list(resource.delays().iter(), |encoder, delay| {
            encoder.token(delay.token);
            encoder.number(delay.ms);
            match delay.closes {
                Closes::All => encoder.byte(0),
                Closes::ButShared => encoder.byte(1),
                Closes::Permit(permit) => {
                    encoder.byte(2);
                    encoder.number(permit.0.into());
                }
            }
        });
    }

    fn outcome(&mut self, tenant: &TenantName, number: u64, what: &Remembered, state: &Journaled) {
        let outcomes = &state.outcomes;
        self.principal(BOUND, outcomes.principal_of(what));
        self.byte(5);
        self.text(tenant.as_str());
        self.number(number);
        match what {
            Remembered::Lease(ix) => {
                let ended = outcomes.leases().get(*ix);
                self.byte(0);
                self.bytes16(ended.id.as_bytes());
                self.ended_lease(ended);
            }
            Remembered::Session(id) => {
                self.byte(1);
                self.bytes16(id.as_bytes());
                let ended = outcomes.session(*id).expect("what is in the order is remembered");
                self.flag(ended.closed);
                self.number(ended.released);
                self.key(ended.key.as_ref());
                self.number(outcomes.opening_fingerprint(tenant, ended.key.as_ref()));
            }
            Remembered::Key(key) => {
                self.byte(2);
                self.text(key.as_str());
                self.keyed(outcomes.keyed(tenant, key).expect("what is in the order is remembered"));
            }
        }
    }

    fn ended_lease(&mut self, ended: &EndedLease) {
        self.reason(ended.reason);
        self.flag(ended.max_hold);
        self.optional(ended.was.as_ref(), |encoder, was| {
            encoder.text(was.resource.as_str());
            encoder.token(was.token);
            encoder.number(was.fingerprint());
            encoder.key(was.key.as_ref());
        });
    }

    fn keyed(&mut self, keyed: &Keyed) {
        match keyed {
            Keyed::Released(id) => {
                self.byte(0);
                self.bytes16(id.as_bytes());
            }
            Keyed::Closed(id) => {
                self.byte(1);
                self.bytes16(id.as_bytes());
            }
            Keyed::Forced { fingerprint, released, audit_seq } => {
                self.byte(2);
                self.number(*fingerprint);
                self.list(released.iter(), Self::holder);
                self.number(*audit_seq);
            }
            Keyed::Acquired(_) | Keyed::Opened { .. } => {
                unreachable!("those are tied to a lease or a session")
            }
        }
    }

    fn holder(&mut self, holder: &Holder) {
        self.text(holder.owner.as_str());
        self.token(holder.token);
        self.permit(holder.permit);
        self.wall(holder.expires_at);
        self.byte(holder.mode as u8);
    }
}

/// Builds the journaled part again from chunks. Refuses what no table can have written (a thing twice, or out of order),
/// so that no state is built on which a later fact would panic.
#[derive(Debug, Default)]
pub struct SnapshotDecoder {
    state: Journaled,
    records: u64,
    ended: bool,
    /// Of the last lease: they stand in the order of tokens, each once.
    last_lease: u64,
    /// They stand in the order of names, each once.
    last_resource: Option<ResourceKey>,
    /// Those with endings, by when they were last used.
    used: BTreeMap<u64, Ix<Full>>,
    /// Whom the record that is being read is bound to.
    principal: Option<Box<str>>,
    /// What there is so far of a record in several chunks, with its format before it.
    begun: Vec<u8>,
}

impl SnapshotDecoder {
    /// Takes the next chunk, in order.
    ///
    /// # Errors
    /// See [`CodecError`].
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        let goes_on = bytes.first().is_some_and(|first| first & GOES_ON != 0);
        if !goes_on && self.begun.is_empty() {
            return self.records(bytes);
        }
        match (self.begun.first(), bytes.split_first()) {
            (None, Some((head, rest))) => {
                self.begun.push(head & !GOES_ON);
                self.begun.extend_from_slice(rest);
            }
            (Some(format), Some((head, rest))) if head & !GOES_ON == *format => {
                self.begun.extend_from_slice(rest)
            }
            _ => return Err(CodecError::Malformed { at: 0, what: "the format of the chunks before" }),
        }
        if goes_on {
            return Ok(());
        }
        let whole = std::mem::take(&mut self.begun);
        self.records(&whole)
    }

    fn records(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        let mut decoder = Decoder::new(bytes)?;
        if self.records == 0 {
            self.state.format = decoder.format();
        }
        if self.state.format != decoder.format() {
            return decoder.malformed("the format of the chunks before");
        }
        while !decoder.is_at_end() {
            if self.ended {
                return decoder.malformed("nothing after the end");
            }
            self.record(&mut decoder)?;
        }
        Ok(())
    }

    /// The state, once the last chunk was taken.
    ///
    /// # Errors
    /// See [`CodecError`]; also when the end is missing.
    pub fn finish(mut self) -> Result<Journaled, CodecError> {
        if self.ended && self.begun.is_empty() {
            self.state.resources.restore_order(self.used.into_values());
            return Ok(self.state);
        }
        Err(CodecError::Malformed { at: 0, what: "the end of the snapshot" })
    }

    fn record(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let mut kind = decoder.byte()?;
        if kind == BOUND && self.records > 0 && decoder.format() >= 2 {
            self.principal = Some(decoder.boxed_text()?);
            kind = decoder.byte()?;
        }
        match kind {
            0 => {
                self.ended = decoder.number()? == self.records;
                return if self.ended { Ok(()) } else { decoder.malformed("the number of records") };
            }
            1 if self.records == 0 => self.meta(decoder)?,
            _ if self.records == 0 => return decoder.malformed("the counters first"),
            2 => self.session(decoder)?,
            3 => self.lease(decoder)?,
            4 => self.resource(decoder)?,
            5 => self.outcome(decoder)?,
            6 => self.audit_entry(decoder)?,
            7 => self.state.active = Some(Box::new(decoder.took_over()?)),
            8 if decoder.format() >= 2 => {
                self.state.secret = Some(ClusterSecret::from_bytes(decoder.bytes32()?));
            }
            9 if decoder.format() >= 2 => self.state.recovered_above = Some(decoder.number()?),
            11 if decoder.format() >= 2 => self.credential(decoder)?,
            _ => return decoder.malformed("a kind of record"),
        }
        if self.principal.is_some() {
            return decoder.malformed("a record that is bound to a principal");
        }
        self.records += 1;
        Ok(())
    }

    fn credential(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let is_new = self.state.credentials.insert(decoder.credential()?);
        if is_new { Ok(()) } else { decoder.malformed("a credential once") }
    }

    fn meta(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        self.state.last_token = decoder.number()?;
        self.state.generation = Generation(decoder.number()?);
        self.state.used = decoder.number()?;
        self.state.outcomes.count = decoder.number()?;
        self.state.audit.count = decoder.number()?;
        self.state.audit.anchor = decoder.bytes32()?;
        self.state.audit.head = self.state.audit.anchor;
        Ok(())
    }

    fn session(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let began = SessionBegan { principal: self.principal.take(), ..decoder.session_began()? };
        if self.state.session_ids.contains_key(&began.session_id) {
            return decoder.malformed("a session once");
        }
        self.key_is_new(&began.tenant, began.key.as_ref(), decoder)?;
        let mut session = Session::new(&began);
        session.ttl = decoder.ttl()?;
        session.floor_ms = decoder.ms()?;
        session.note = decoder.note()?;
        session.unseen = decoder.list(|decoder| {
            Ok(EndedInSession {
                lease_id: decoder.lease_id()?,
                resource: decoder.resource_name()?,
                token: decoder.token()?,
                reason: decoder.reason()?,
            })
        })?;
        if let Some(key) = &began.key {
            let fingerprint = fingerprint::of_opening(&began.owner, began.ttl, &began.labels);
            let keyed = Keyed::Opened { session_id: began.session_id, fingerprint };
            self.state.outcomes.tie(&began.tenant, key, keyed);
        }
        self.state.insert_session(session);
        Ok(())
    }

    fn lease(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let granted = Granted { principal: self.principal.take(), ..decoder.granted()? };
        if granted.session.is_some_and(|id| !self.state.session_ids.contains_key(&id)) {
            return decoder.malformed("a lease of a live session");
        }
        if self.state.find_lease(granted.lease_id).is_some() {
            return decoder.malformed("a lease once");
        }
        let token = granted.token.get();
        if token <= self.last_lease || token > self.state.last_token {
            return decoder.malformed("leases in the order of their tokens");
        }
        self.last_lease = token;
        let ttl = decoder.optional(|decoder| Ok((decoder.ttl()?, decoder.ms()?)))?;
        let note = decoder.note()?;
        if ttl.is_some() == granted.session.is_some() {
            return decoder.malformed("a ttl of its own or a session");
        }
        let tenant = self.state.outcomes.tenant(granted.resource.tenant());
        self.key_is_new(&tenant, granted.key.as_ref(), decoder)?;
        if let Some(key) = &granted.key {
            self.state.outcomes.tie(&tenant, key, Keyed::Acquired(granted.lease_id));
        }
        let ix = self.state.insert_lease(&granted);
        let lease = self.state.leases.get_mut(ix);
        lease.set_note(note);
        if let Some((own, (ttl, floor_ms))) = lease.own_mut().zip(ttl) {
            (own.ttl, own.floor_ms) = (ttl, floor_ms);
        }
        Ok(())
    }

    fn resource(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let key = decoder.resource()?;
        let used = decoder.number()?;
        let endings = decoder.list(|decoder| {
            Ok(Ending {
                owner: decoder.owner()?,
                token: decoder.token()?,
                reason: decoder.reason()?,
                max_hold: decoder.flag()?,
                at: decoder.wall()?,
            })
        })?;
        let delays = decoder.list(Decoder::delay)?;
        if self.last_resource.as_ref().is_some_and(|last| *last >= key) {
            return decoder.malformed("resources in the order of their names");
        }
        let used_once = used <= self.state.used && !self.used.contains_key(&used);
        if (used > 0) == endings.is_empty() || !used_once || (endings.is_empty() && delays.is_empty()) {
            return decoder.malformed("a resource that is remembered for something");
        }
        self.last_resource = Some(key.clone());
        let Journaled { resources, leases, .. } = &mut self.state;
        let ix = resources.restore(&key, used, endings, delays, leases);
        if used > 0 {
            self.used.insert(used, ix);
        }
        Ok(())
    }

    fn outcome(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let tenant = decoder.tenant()?;
        let tenant = self.state.outcomes.tenant(tenant.as_str());
        let number = decoder.number()?;
        if !self.state.outcomes.may_be_next(&tenant, number) {
            return decoder.malformed("outcomes in the order of remembering");
        }
        let what = match decoder.byte()? {
            0 => {
                let id = decoder.lease_id()?;
                let principal = self.principal.take();
                let ended = EndedLease { principal, ..decoder.ended_lease(id, &tenant)? };
                if self.state.known(id).is_some() {
                    return decoder.malformed("an ended lease once");
                }
                self.key_is_new(&tenant, ended.was.as_ref().and_then(|was| was.key.as_ref()), decoder)?;
                let Journaled { outcomes, leases, lease_ids, .. } = &mut self.state;
                Remembered::Lease(outcomes.put_lease(ended, &mut Ids { ids: lease_ids, leases }))
            }
            1 => {
                let id = decoder.session_id()?;
                let (closed, released, key) = (decoder.flag()?, decoder.number()?, decoder.key()?);
                if self.state.outcomes.session(id).is_some() || self.state.session_ids.contains_key(&id) {
                    return decoder.malformed("an ended session once");
                }
                self.key_is_new(&tenant, key.as_ref(), decoder)?;
                let principal = self.principal.take();
                let ended = EndedSession { tenant: tenant.clone(), closed, released, key, principal };
                self.state.outcomes.put_session(id, ended, decoder.number()?);
                Remembered::Session(id)
            }
            2 => {
                let key = decoder.one_key()?;
                let keyed = decoder.keyed()?;
                self.key_is_new(&tenant, Some(&key), decoder)?;
                self.state.outcomes.tie(&tenant, &key, keyed);
                Remembered::Key(key)
            }
            _ => return decoder.malformed("what is remembered"),
        };
        self.state.outcomes.push(&tenant, number, what);
        Ok(())
    }

    fn audit_entry(&mut self, decoder: &mut Decoder<'_>) -> Result<(), CodecError> {
        let mut entry = decoder.audit_entry_without_hash()?;
        entry.hash = decoder.bytes32()?;
        if entry.seq != self.state.audit.count + 1 {
            return decoder.malformed("audit entries without gaps");
        }
        self.state.audit.push(entry);
        Ok(())
    }

    fn key_is_new(
        &self,
        tenant: &TenantName,
        key: Option<&RequestKey>,
        decoder: &Decoder<'_>,
    ) -> Result<(), CodecError> {
        match key.and_then(|key| self.state.outcomes.keyed(tenant, key)) {
            Some(_) => decoder.malformed("a key once"),
            None => Ok(()),
        }
    }
}

impl Decoder<'_> {
    fn note(&mut self) -> Result<Option<Note>, CodecError> {
        self.optional(|decoder| {
            Ok(Note { remaining_ms: decoder.ms()?, age_ms: decoder.ms()?, cleared: decoder.flag()? })
        })
    }

    fn delay(&mut self) -> Result<Delay, CodecError> {
        let (token, ms) = (self.token()?, self.ms()?);
        let closes = match self.byte()? {
            0 => Closes::All,
            1 => Closes::ButShared,
            2 => Closes::Permit(leasehold_types::Permit(self.small()?)),
            _ => return self.malformed("what a lock delay closes"),
        };
        Ok(Delay { token, closes, ms })
    }

    fn ended_lease(&mut self, id: LeaseId, tenant: &TenantName) -> Result<EndedLease, CodecError> {
        let (reason, max_hold) = (self.reason()?, self.flag()?);
        let was = self.optional(|decoder| {
            Ok(WasLease {
                resource: decoder.resource()?,
                token: decoder.token()?,
                asked_for: AskedFor::Hashed(decoder.number()?),
                key: decoder.key()?,
            })
        })?;
        Ok(EndedLease { id, tenant: tenant.clone(), reason, max_hold, principal: None, was })
    }

    fn keyed(&mut self) -> Result<Keyed, CodecError> {
        match self.byte()? {
            0 => self.lease_id().map(Keyed::Released),
            1 => self.session_id().map(Keyed::Closed),
            2 => Ok(Keyed::Forced {
                fingerprint: self.number()?,
                released: self.list(Self::holder)?,
                audit_seq: self.number()?,
            }),
            _ => self.malformed("what came of a command"),
        }
    }

    fn holder(&mut self) -> Result<Holder, CodecError> {
        Ok(Holder {
            owner: self.owner()?,
            token: self.token()?,
            permit: self.permit()?,
            expires_at: self.wall()?,
            mode: self.mode()?,
        })
    }
}
