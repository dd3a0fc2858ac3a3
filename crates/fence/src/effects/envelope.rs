//! Messages that carry their token.

use leasehold_types::{FencingToken, RequestKey, ResourceName};

use crate::{Ask, Grant};

const RESOURCE: &str = "leasehold-resource";
const TOKEN: &str = "leasehold-token";
const OPERATION: &str = "leasehold-operation";

/// What a message says about the grant under which it was sent. It travels in three headers, or columns, of those names.
///
/// A consumer asks its own fence with [`Envelope::ask`] in the transaction in which it acts, and begins the operation in
/// its ledger there. A message of an old grant that arrives after one of its successor is then rejected, *also one that
/// was sent while the old grant still stood*: a fence orders grants, not messages. Where such a message must not be
/// lost, use the ledger without the fence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Envelope {
    /// The lock.
    pub resource: ResourceName,
    /// The token of the grant.
    pub token: FencingToken,
    /// The operation, the same for each attempt at it.
    pub operation: RequestKey,
}

/// A message without the three headers, or with one that cannot be read. Not to be acted upon.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the message has no valid {header}")]
pub struct InvalidEnvelope {
    header: &'static str,
}

impl Envelope {
    /// The envelope of a message that a holder sends.
    pub fn new(grant: &Grant, operation: RequestKey) -> Self {
        Self { resource: grant.resource().clone(), token: grant.token(), operation }
    }

    /// The three headers.
    pub fn headers(&self) -> [(&'static str, String); 3] {
        let (resource, token, operation) = (&self.resource, self.token, &self.operation);
        [(RESOURCE, resource.to_string()), (TOKEN, token.to_string()), (OPERATION, operation.to_string())]
    }

    /// Reads the headers of a message, by name.
    ///
    /// # Errors
    /// Names the header that is missing or cannot be read.
    pub fn read<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Result<Self, InvalidEnvelope> {
        let resource = header(RESOURCE).and_then(|text| ResourceName::new(text).ok());
        let token = header(TOKEN).and_then(|text| FencingToken::new(text.parse().ok()?).ok());
        let operation = header(OPERATION).and_then(|text| RequestKey::new(text).ok());
        let invalid = |header| InvalidEnvelope { header };
        Ok(Self {
            resource: resource.ok_or(invalid(RESOURCE))?,
            token: token.ok_or(invalid(TOKEN))?,
            operation: operation.ok_or(invalid(OPERATION))?,
        })
    }

    /// What the message asks of the consumer's fence.
    pub fn ask(&self) -> Ask {
        Grant::exclusive(self.resource.clone(), self.token).write()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let grant = Grant::exclusive(ResourceName::new("books/ü").unwrap(), FencingToken::new(34).unwrap());
        let envelope = Envelope::new(&grant, RequestKey::new("invoice 17").unwrap());
        let headers = envelope.headers();
        let find =
            |name: &str| headers.iter().find(|(header, _)| *header == name).map(|(_, value)| value.as_str());
        assert_eq!(Envelope::read(find), Ok(envelope));
        for missing in [RESOURCE, TOKEN, OPERATION] {
            let without = Envelope::read(|name| find(name).filter(|_| name != missing));
            assert_eq!(without, Err(InvalidEnvelope { header: missing }));
        }
    }
}
