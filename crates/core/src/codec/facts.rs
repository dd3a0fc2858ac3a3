//! Facts as bytes: one byte for the kind, then its fields in order.

use super::CodecError;
use super::bytes::{Decoder, Encoder};
use crate::credential::{Credential, Proof};
use crate::fact::{
    CredentialChange, Fact, Forced, Granted, LifeId, RaisedBy, SessionBegan, SessionEnd, TookOver,
};
use crate::secret::ClusterSecret;
use leasehold_types::{CredentialId, Epoch, Generation, PrincipalName, Role, Scope, Verb};

impl Encoder {
    pub(crate) fn fact(&mut self, fact: &Fact) {
        match fact {
            Fact::Granted(granted) => {
                self.principal(20, granted.principal.as_deref());
                self.byte(1);
                self.granted(granted);
            }
            Fact::Released { lease_id, at, key } => {
                self.byte(2);
                self.bytes16(lease_id.as_bytes());
                self.wall(*at);
                self.key(key.as_ref());
            }
            Fact::Expired { lease_id, max_hold, at } => {
                self.byte(3);
                self.bytes16(lease_id.as_bytes());
                self.flag(*max_hold);
                self.wall(*at);
            }
            Fact::SessionOpened(began) => {
                self.principal(20, began.principal.as_deref());
                self.byte(4);
                self.session_began(began);
            }
            Fact::SessionEnded { session_id, cause, at, key } => {
                self.byte(5);
                self.bytes16(session_id.as_bytes());
                self.session_end(cause);
                self.wall(*at);
                self.key(key.as_ref());
            }
            Fact::ForceReleased(forced) => {
                self.byte(6);
                self.forced(forced);
            }
            Fact::TtlChanged { of, ttl, floor_ms } => {
                self.byte(7);
                self.life_id(*of);
                self.number(ttl.ms());
                self.number(*floor_ms);
            }
            Fact::Noted { of, remaining_ms, age_ms } => {
                self.byte(8);
                self.life_id(*of);
                self.number(*remaining_ms);
                self.number(*age_ms);
            }
            Fact::NoteCleared { of } => {
                self.byte(9);
                self.life_id(*of);
            }
            Fact::DelayEnded { resource, token } => {
                self.byte(10);
                self.text(resource.as_str());
                self.token(*token);
            }
            Fact::IdClosed { tenant, lease_id, key } => {
                self.byte(11);
                self.text(tenant.as_str());
                self.bytes16(lease_id.as_bytes());
                self.key(key.as_ref());
            }
            Fact::Forgotten { through } => {
                self.byte(12);
                self.number(*through);
            }
            Fact::EndingsSeen { session_id, lease_ids } => {
                self.byte(13);
                self.bytes16(session_id.as_bytes());
                self.list(lease_ids.iter(), |encoder, id| encoder.bytes16(id.as_bytes()));
            }
            Fact::Recovered { generation, token_floor, operator, identity, at } => {
                self.byte(14);
                self.number(generation.0);
                self.number(*token_floor);
                self.operator(operator);
                self.identity(identity.as_deref());
                self.wall(*at);
            }
            Fact::Resigned => self.byte(15),
            Fact::Proclaimed { lease_id, value } => {
                self.byte(16);
                self.bytes16(lease_id.as_bytes());
                self.text(value);
            }
            Fact::TookOver(took_over) => {
                self.byte(17);
                self.took_over(took_over);
            }
            Fact::SecretMade(secret) => {
                self.byte(18);
                self.bytes32(secret.as_bytes());
            }
            Fact::FormatRaised { format, by, at } => {
                self.byte(19);
                self.byte(*format);
                self.optional(by.as_deref(), Self::raised_by);
                self.wall(*at);
            }
            Fact::CredentialAdded { credential, change } => {
                self.byte(21);
                self.credential(credential);
                self.credential_change(change);
            }
            Fact::CredentialRevoked { id, change } => {
                self.byte(22);
                self.credential_id(*id);
                self.credential_change(change);
            }
            Fact::SettingsChanged { operator, at } => {
                self.byte(23);
                self.operator(operator);
                self.wall(*at);
            }
            Fact::BackedUp { operator, identity, at } => {
                self.byte(24);
                self.operator(operator);
                self.identity(identity.as_deref());
                self.wall(*at);
            }
        }
    }

    /// What is bound to a principal has it in front, under a kind of its own: what is not is written as it always was.
    pub(crate) fn principal(&mut self, kind: u8, principal: Option<&str>) {
        if let Some(principal) = principal {
            self.byte(kind);
            self.text(principal);
        }
    }

    pub(crate) fn credential(&mut self, credential: &Credential) {
        self.credential_id(credential.id);
        self.text(credential.principal.as_str());
        self.text(credential.tenant.as_str());
        self.byte(credential.role as u8);
        self.list(credential.scopes.iter(), |encoder, scope| {
            encoder.list(scope.verbs().iter(), |encoder, verb| encoder.byte(*verb as u8));
            encoder.text(scope.prefix());
        });
        match &credential.proof {
            Proof::Secret(hash) => {
                self.byte(0);
                self.bytes32(hash);
            }
            Proof::San(san) => {
                self.byte(1);
                self.text(san);
            }
        }
        self.wall(credential.created_at);
        self.optional(credential.expires_at, Self::wall);
    }

    fn credential_id(&mut self, id: CredentialId) {
        self.number(u64::from_be_bytes(*id.as_bytes()));
    }

    fn credential_change(&mut self, change: &CredentialChange) {
        self.operator(&change.operator);
        self.identity(change.identity.as_deref());
        self.wall(change.at);
    }

    fn raised_by(&mut self, by: &RaisedBy) {
        self.operator(&by.operator);
        self.identity(by.identity.as_deref());
    }

    pub(crate) fn took_over(&mut self, took_over: &TookOver) {
        self.number(took_over.epoch.0);
        self.text(&took_over.node);
        self.text(&took_over.url);
    }

    pub(crate) fn granted(&mut self, granted: &Granted) {
        self.bytes16(granted.lease_id.as_bytes());
        self.text(granted.resource.as_str());
        self.text(granted.owner.as_str());
        self.optional(granted.session, |encoder, id| encoder.bytes16(id.as_bytes()));
        self.sharing(granted.sharing);
        self.permit(granted.permit);
        self.class(granted.class);
        self.number(granted.ttl.ms());
        self.optional(granted.max_hold_ms, Self::number);
        self.number(granted.lock_delay_ms);
        self.labels(&granted.labels);
        self.optional(granted.value.as_deref(), Self::text);
        self.token(granted.token);
        self.wall(granted.at);
        self.key(granted.key.as_ref());
    }

    pub(crate) fn session_began(&mut self, began: &SessionBegan) {
        self.bytes16(began.session_id.as_bytes());
        self.text(began.tenant.as_str());
        self.text(began.owner.as_str());
        self.number(began.ttl.ms());
        self.labels(&began.labels);
        self.wall(began.at);
        self.key(began.key.as_ref());
    }

    fn session_end(&mut self, cause: &SessionEnd) {
        match cause {
            SessionEnd::Closed => self.byte(0),
            SessionEnd::Expired => self.byte(1),
            SessionEnd::ByOperator { operator, identity } => {
                self.byte(2);
                self.operator(operator);
                self.identity(identity.as_deref());
            }
        }
    }

    fn forced(&mut self, forced: &Forced) {
        self.text(forced.resource.as_str());
        self.list(forced.lease_ids.iter(), |encoder, id| encoder.bytes16(id.as_bytes()));
        self.force_target(forced.target);
        self.flag(forced.skip_lock_delay);
        self.operator(&forced.operator);
        self.identity(forced.identity.as_deref());
        self.wall(forced.at);
        self.key(forced.key.as_ref());
    }

    fn life_id(&mut self, id: LifeId) {
        match id {
            LifeId::Lease(id) => {
                self.byte(0);
                self.bytes16(id.as_bytes());
            }
            LifeId::Session(id) => {
                self.byte(1);
                self.bytes16(id.as_bytes());
            }
        }
    }
}

impl Decoder<'_> {
    pub(crate) fn fact(&mut self) -> Result<Fact, CodecError> {
        Ok(match self.byte()? {
            1 => Fact::Granted(Box::new(self.granted()?)),
            2 => Fact::Released { lease_id: self.lease_id()?, at: self.wall()?, key: self.key()? },
            3 => Fact::Expired { lease_id: self.lease_id()?, max_hold: self.flag()?, at: self.wall()? },
            4 => Fact::SessionOpened(Box::new(self.session_began()?)),
            5 => Fact::SessionEnded {
                session_id: self.session_id()?,
                cause: self.session_end()?,
                at: self.wall()?,
                key: self.key()?,
            },
            6 => Fact::ForceReleased(Box::new(self.forced()?)),
            7 => Fact::TtlChanged { of: self.life_id()?, ttl: self.ttl()?, floor_ms: self.ms()? },
            8 => Fact::Noted { of: self.life_id()?, remaining_ms: self.ms()?, age_ms: self.ms()? },
            9 => Fact::NoteCleared { of: self.life_id()? },
            10 => Fact::DelayEnded { resource: self.resource()?, token: self.token()? },
            11 => Fact::IdClosed { tenant: self.tenant()?, lease_id: self.lease_id()?, key: self.key()? },
            12 => Fact::Forgotten { through: self.number()? },
            13 => Fact::EndingsSeen { session_id: self.session_id()?, lease_ids: self.list(Self::lease_id)? },
            14 => Fact::Recovered {
                generation: Generation(self.number()?),
                token_floor: self.number()?,
                operator: self.operator()?,
                identity: self.identity()?,
                at: self.wall()?,
            },
            15 => Fact::Resigned,
            16 => Fact::Proclaimed { lease_id: self.lease_id()?, value: self.boxed_text()? },
            17 => Fact::TookOver(Box::new(self.took_over()?)),
            18 => Fact::SecretMade(ClusterSecret::from_bytes(self.bytes32()?)),
            19 => self.format_raised()?,
            20 => self.bound_fact()?,
            21 => Fact::CredentialAdded {
                credential: Box::new(self.credential()?),
                change: self.credential_change()?,
            },
            22 => Fact::CredentialRevoked { id: self.credential_id()?, change: self.credential_change()? },
            23 => Fact::SettingsChanged { operator: self.operator()?, at: self.wall()? },
            24 => Fact::BackedUp { operator: self.operator()?, identity: self.identity()?, at: self.wall()? },
            _ => return self.malformed("a kind of fact"),
        })
    }

    /// A body begins with the format that it raises to, so that an older version is told by the first byte.
    fn format_raised(&mut self) -> Result<Fact, CodecError> {
        let (format, by, at) = (self.byte()?, self.optional(Self::raised_by)?, self.wall()?);
        if format != self.format() {
            return self.malformed("the format of its body");
        }
        Ok(Fact::FormatRaised { format, by, at })
    }

    fn raised_by(&mut self) -> Result<Box<RaisedBy>, CodecError> {
        Ok(Box::new(RaisedBy { operator: self.operator()?, identity: self.identity()? }))
    }

    /// A principal, and the fact that binds something to it.
    fn bound_fact(&mut self) -> Result<Fact, CodecError> {
        let principal = Some(self.boxed_text()?);
        match self.byte()? {
            1 => Ok(Fact::Granted(Box::new(Granted { principal, ..self.granted()? }))),
            4 => Ok(Fact::SessionOpened(Box::new(SessionBegan { principal, ..self.session_began()? }))),
            _ => self.malformed("a fact that binds something to a principal"),
        }
    }

    pub(crate) fn credential(&mut self) -> Result<Credential, CodecError> {
        let id = self.credential_id()?;
        let principal = PrincipalName::new(self.text()?).ok();
        Ok(Credential {
            id,
            principal: self.lawful(principal, "the name of a principal")?,
            tenant: self.tenant()?,
            role: self.word(Role::ALL, "a role")?,
            scopes: self.list(Self::scope)?,
            proof: self.proof()?,
            created_at: self.wall()?,
            expires_at: self.optional(Self::wall)?,
        })
    }

    fn scope(&mut self) -> Result<Scope, CodecError> {
        let verbs = self.list(|decoder| decoder.word(Verb::ALL, "a verb"))?;
        let scope = Scope::new(&verbs, self.text()?).ok();
        self.lawful(scope, "a scope")
    }

    fn proof(&mut self) -> Result<Proof, CodecError> {
        match self.byte()? {
            0 => self.bytes32().map(Proof::Secret),
            1 => self.boxed_text().map(Proof::San),
            _ => self.malformed("what a credential is proved by"),
        }
    }

    fn credential_id(&mut self) -> Result<CredentialId, CodecError> {
        self.number().map(|number| CredentialId::from_bytes(number.to_be_bytes()))
    }

    fn credential_change(&mut self) -> Result<CredentialChange, CodecError> {
        Ok(CredentialChange { operator: self.operator()?, identity: self.identity()?, at: self.wall()? })
    }

    pub(crate) fn took_over(&mut self) -> Result<TookOver, CodecError> {
        Ok(TookOver { epoch: Epoch(self.number()?), node: self.boxed_text()?, url: self.boxed_text()? })
    }

    pub(crate) fn granted(&mut self) -> Result<Granted, CodecError> {
        Ok(Granted {
            lease_id: self.lease_id()?,
            resource: self.resource()?,
            owner: self.owner()?,
            session: self.optional(Self::session_id)?,
            sharing: self.sharing()?,
            permit: self.permit()?,
            class: self.class()?,
            ttl: self.ttl()?,
            max_hold_ms: self.optional(Self::ms)?,
            lock_delay_ms: self.ms()?,
            labels: self.labels()?,
            value: self.optional(Self::boxed_text)?,
            token: self.token()?,
            at: self.wall()?,
            key: self.key()?,
            principal: None,
        })
    }

    pub(crate) fn session_began(&mut self) -> Result<SessionBegan, CodecError> {
        Ok(SessionBegan {
            session_id: self.session_id()?,
            tenant: self.tenant()?,
            owner: self.owner()?,
            ttl: self.ttl()?,
            labels: self.labels()?,
            at: self.wall()?,
            key: self.key()?,
            principal: None,
        })
    }

    fn session_end(&mut self) -> Result<SessionEnd, CodecError> {
        match self.byte()? {
            0 => Ok(SessionEnd::Closed),
            1 => Ok(SessionEnd::Expired),
            2 => Ok(SessionEnd::ByOperator { operator: self.operator()?, identity: self.identity()? }),
            _ => self.malformed("how a session ended"),
        }
    }

    fn forced(&mut self) -> Result<Forced, CodecError> {
        Ok(Forced {
            resource: self.resource()?,
            lease_ids: self.list(Self::lease_id)?,
            target: self.force_target()?,
            skip_lock_delay: self.flag()?,
            operator: self.operator()?,
            identity: self.identity()?,
            at: self.wall()?,
            key: self.key()?,
        })
    }

    fn life_id(&mut self) -> Result<LifeId, CodecError> {
        match self.byte()? {
            0 => self.lease_id().map(LifeId::Lease),
            1 => self.session_id().map(LifeId::Session),
            _ => self.malformed("a lease or a session"),
        }
    }
}
