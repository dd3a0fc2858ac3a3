//! The smallest parts: numbers, texts, options, and the words and names of `leasehold_types`.

use leasehold_types::{
    Class, EndReason, FencingToken, Labels, LeaseId, Mode, OwnerId, Permit, RequestKey, ResourceKey,
    ResourceName, SessionId, TenantName, Ttl, WallTime,
};

use super::{CodecError, FORMAT};
use crate::audit::AuditEntry;
use crate::command::{ForceTarget, Operator, Sharing};

/// Writes.
#[derive(Debug, Default)]
pub(crate) struct Encoder(Vec<u8>);

impl Encoder {
    /// Goes on at the end of these bytes.
    pub(crate) const fn over(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.byte(u8::from(flag));
    }

    pub(crate) fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn bytes16(&mut self, bytes: &[u8; 16]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn bytes32(&mut self, bytes: &[u8; 32]) {
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn optional<T>(&mut self, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        self.flag(value.is_some());
        if let Some(value) = value {
            write(self, value);
        }
    }

    pub(crate) fn list<T>(
        &mut self,
        values: impl ExactSizeIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.number(values.len() as u64);
        for value in values {
            write(self, value);
        }
    }

    pub(crate) fn key(&mut self, key: Option<&RequestKey>) {
        self.optional(key, |encoder, key| encoder.text(key.as_str()));
    }

    pub(crate) fn token(&mut self, token: FencingToken) {
        self.number(token.get());
    }

    pub(crate) fn wall(&mut self, at: WallTime) {
        self.number(at.0);
    }

    pub(crate) fn class(&mut self, class: Class) {
        self.byte(class as u8);
    }

    pub(crate) fn reason(&mut self, reason: EndReason) {
        self.byte(reason as u8);
    }

    pub(crate) fn permit(&mut self, permit: Option<Permit>) {
        self.optional(permit, |encoder, permit| encoder.number(permit.0.into()));
    }

    pub(crate) fn sharing(&mut self, sharing: Sharing) {
        match sharing {
            Sharing::Exclusive => self.byte(0),
            Sharing::Shared => self.byte(1),
            Sharing::Semaphore { limit } => {
                self.byte(2);
                self.number(limit.into());
            }
        }
    }

    pub(crate) fn labels(&mut self, labels: &Labels) {
        self.number(labels.len() as u64);
        for (key, value) in labels.iter() {
            self.text(key);
            self.text(value);
        }
    }

    pub(crate) fn operator(&mut self, operator: &Operator) {
        self.text(&operator.actor);
        self.text(&operator.reason);
    }

    pub(crate) fn identity(&mut self, identity: Option<&str>) {
        self.optional(identity, Self::text);
    }

    pub(crate) fn force_target(&mut self, target: ForceTarget) {
        match target {
            ForceTarget::All => self.byte(0),
            ForceTarget::Token(token) => {
                self.byte(1);
                self.token(token);
            }
        }
    }

    pub(crate) fn audit_entry_without_hash(&mut self, entry: &AuditEntry) {
        self.number(entry.seq);
        self.byte(entry.action as u8);
        self.text(&entry.tenant);
        self.optional(entry.resource.as_ref(), |encoder, resource| encoder.text(resource.as_str()));
        self.text(&entry.actor);
        self.identity(entry.identity.as_deref());
        self.text(&entry.reason);
        self.list(entry.tokens.iter(), |encoder, token| encoder.number(*token));
        self.wall(entry.at);
        self.bytes32(&entry.prev_hash);
    }
}

/// Reads. Every method names what it expected and where, and never panics on any bytes.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    format: u8,
}

type Read<T> = Result<T, CodecError>;

impl<'a> Decoder<'a> {
    /// Begins after the format byte.
    pub(crate) fn new(bytes: &'a [u8]) -> Read<Self> {
        let mut decoder = Self { bytes, at: 0, format: 0 };
        decoder.format = decoder.byte()?;
        match decoder.format {
            format if format > FORMAT => Err(CodecError::TooNew(format)),
            0 => decoder.malformed("a format number"),
            _ => Ok(decoder),
        }
    }

    /// The format of what is read.
    pub(crate) const fn format(&self) -> u8 {
        self.format
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn malformed<T>(&self, what: &'static str) -> Read<T> {
        Err(CodecError::Malformed { at: self.at, what })
    }

    /// A value that may be unlawful.
    pub(crate) fn lawful<T>(&self, value: Option<T>, what: &'static str) -> Read<T> {
        value.map_or_else(|| self.malformed(what), Ok)
    }

    fn take(&mut self, n: usize, what: &'static str) -> Read<&'a [u8]> {
        let bytes = self.lawful(self.bytes[self.at..].get(..n), what)?;
        self.at += n;
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Read<u8> {
        Ok(self.take(1, "a byte")?[0])
    }

    pub(crate) fn flag(&mut self) -> Read<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => self.malformed("0 or 1"),
        }
    }

    pub(crate) fn number(&mut self) -> Read<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return self.malformed("a number of at most 64 bits");
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        self.malformed("a number of at most 64 bits")
    }

    pub(crate) fn small(&mut self) -> Read<u32> {
        let number = self.number()?;
        self.lawful(u32::try_from(number).ok(), "a number of at most 32 bits")
    }

    pub(crate) fn text(&mut self) -> Read<&'a str> {
        let length = self.number()?;
        let length = self.lawful(usize::try_from(length).ok(), "a length")?;
        let bytes = self.take(length, "a text of the length before it")?;
        self.lawful(std::str::from_utf8(bytes).ok(), "UTF-8")
    }

    pub(crate) fn bytes16(&mut self) -> Read<[u8; 16]> {
        let bytes = self.take(16, "16 bytes")?;
        Ok(bytes.try_into().expect("16 were taken"))
    }

    pub(crate) fn bytes32(&mut self) -> Read<[u8; 32]> {
        let bytes = self.take(32, "32 bytes")?;
        Ok(bytes.try_into().expect("32 were taken"))
    }

    pub(crate) fn optional<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.flag()? { read(self).map(Some) } else { Ok(None) }
    }

    pub(crate) fn list<T>(&mut self, mut read: impl FnMut(&mut Self) -> Read<T>) -> Read<Vec<T>> {
        let length = self.number()?;
        // Each element has a byte at least: a longer claim is nonsense, and must not reserve memory.
        if length > (self.bytes.len() - self.at) as u64 {
            return self.malformed("a list that fits into the bytes");
        }
        (0..length).map(|_| read(self)).collect()
    }

    pub(crate) fn lease_id(&mut self) -> Read<LeaseId> {
        self.bytes16().map(LeaseId::from_bytes)
    }

    pub(crate) fn session_id(&mut self) -> Read<SessionId> {
        self.bytes16().map(SessionId::from_bytes)
    }

    pub(crate) fn resource(&mut self) -> Read<ResourceKey> {
        let text = self.text()?;
        self.lawful(ResourceKey::parse(text), "tenant and resource name")
    }

    pub(crate) fn resource_name(&mut self) -> Read<ResourceName> {
        let text = self.text()?;
        self.lawful(ResourceName::new(text).ok(), "a resource name")
    }

    pub(crate) fn owner(&mut self) -> Read<OwnerId> {
        let text = self.text()?;
        self.lawful(OwnerId::new(text).ok(), "an owner")
    }

    pub(crate) fn tenant(&mut self) -> Read<TenantName> {
        let text = self.text()?;
        self.lawful(TenantName::new(text).ok(), "a tenant")
    }

    fn request_key(&mut self) -> Read<RequestKey> {
        let text = self.text()?;
        self.lawful(RequestKey::new(text).ok(), "a key")
    }

    pub(crate) fn key(&mut self) -> Read<Option<RequestKey>> {
        self.optional(Self::request_key)
    }

    pub(crate) fn one_key(&mut self) -> Read<RequestKey> {
        self.request_key()
    }

    pub(crate) fn token(&mut self) -> Read<FencingToken> {
        let number = self.number()?;
        self.lawful(FencingToken::new(number).ok(), "a fencing token")
    }

    pub(crate) fn wall(&mut self) -> Read<WallTime> {
        self.number().map(WallTime)
    }

    /// A length of time. Sums of a few of them fit into 64 bits, so that nothing read here can overflow later.
    pub(crate) fn ms(&mut self) -> Read<u64> {
        const LONGEST_MS: u64 = 1 << 48; // nine thousand years
        let ms = self.number()?;
        self.lawful(Some(ms).filter(|ms| *ms <= LONGEST_MS), "a length of time")
    }

    pub(crate) fn ttl(&mut self) -> Read<Ttl> {
        let ms = self.number()?;
        self.lawful(Ttl::from_journal(ms), "a ttl")
    }

    pub(crate) fn word<T: Copy>(&mut self, all: &[T], what: &'static str) -> Read<T> {
        let byte = self.byte()?;
        self.lawful(all.get(usize::from(byte)).copied(), what)
    }

    pub(crate) fn class(&mut self) -> Read<Class> {
        self.word(Class::ALL, "a class")
    }

    pub(crate) fn reason(&mut self) -> Read<EndReason> {
        self.word(EndReason::ALL, "a reason")
    }

    pub(crate) fn mode(&mut self) -> Read<Mode> {
        self.word(Mode::ALL, "a mode")
    }

    pub(crate) fn permit(&mut self) -> Read<Option<Permit>> {
        self.optional(|decoder| decoder.small().map(Permit))
    }

    pub(crate) fn sharing(&mut self) -> Read<Sharing> {
        match self.byte()? {
            0 => Ok(Sharing::Exclusive),
            1 => Ok(Sharing::Shared),
            2 => Ok(Sharing::Semaphore { limit: self.small()? }),
            _ => self.malformed("a mode"),
        }
    }

    pub(crate) fn labels(&mut self) -> Read<Labels> {
        let pairs = self.list(|decoder| Ok((decoder.text()?, decoder.text()?)))?;
        self.lawful(Labels::new(pairs).ok(), "labels")
    }

    pub(crate) fn boxed_text(&mut self) -> Read<Box<str>> {
        self.text().map(Into::into)
    }

    pub(crate) fn operator(&mut self) -> Read<Operator> {
        Ok(Operator { actor: self.boxed_text()?, reason: self.boxed_text()? })
    }

    pub(crate) fn identity(&mut self) -> Read<Option<Box<str>>> {
        self.optional(Self::boxed_text)
    }

    pub(crate) fn force_target(&mut self) -> Read<ForceTarget> {
        match self.byte()? {
            0 => Ok(ForceTarget::All),
            1 => Ok(ForceTarget::Token(self.token()?)),
            _ => self.malformed("all or a token"),
        }
    }

    pub(crate) fn audit_entry_without_hash(&mut self) -> Read<AuditEntry> {
        Ok(AuditEntry {
            seq: self.number()?,
            action: self.word(&crate::audit::AuditAction::ALL, "an action")?,
            tenant: self.boxed_text()?,
            resource: self.optional(Self::resource)?,
            actor: self.boxed_text()?,
            identity: self.identity()?,
            reason: self.boxed_text()?,
            tokens: self.list(Self::number)?,
            at: self.wall()?,
            prev_hash: self.bytes32()?,
            hash: [0; 32],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_written() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut encoder = Encoder::over(vec![FORMAT]);
            encoder.number(number);
            let bytes = encoder.into_bytes();
            assert_eq!(Decoder::new(&bytes).unwrap().number(), Ok(number));
        }
    }

    #[test]
    fn nonsense_is_named_not_trusted() {
        assert_eq!(Decoder::new(&[9]).unwrap_err(), CodecError::TooNew(9));
        assert!(Decoder::new(&[]).is_err());
        let too_long = [FORMAT, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        assert!(Decoder::new(&too_long).unwrap().number().is_err());
        let huge_list = [FORMAT, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert!(Decoder::new(&huge_list).unwrap().list(Decoder::byte).is_err());
    }
}
