//! What is signed.

use leasehold_types::{FencingToken, Generation, Permit, ResourceName, TenantName};

use crate::{Grant, Kind};

/// A grant as the service signed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signed {
    /// Whose it is.
    pub tenant: TenantName,
    /// The life of the journal in which it was granted.
    pub generation: Generation,
    /// What was granted.
    pub grant: Grant,
}

impl Signed {
    /// NUL occurs in no part, so that two different grants never have the same bytes.
    pub(super) fn encode(&self) -> String {
        let kind = match self.grant.kind() {
            Kind::Exclusive => "exclusive".to_owned(),
            Kind::Shared => "shared".to_owned(),
            Kind::Permit(Permit(permit)) => format!("permit {permit}"),
        };
        let (tenant, resource, token) = (&self.tenant, self.grant.resource(), self.grant.token());
        format!("{tenant}\0{resource}\0{kind}\0{}\0{token}", self.generation.0)
    }

    pub(super) fn decode(text: &str) -> Option<Self> {
        let mut parts = text.split('\0');
        let tenant = TenantName::new(parts.next()?).ok()?;
        let resource = ResourceName::new(parts.next()?).ok()?;
        let kind = match parts.next()? {
            "exclusive" => Kind::Exclusive,
            "shared" => Kind::Shared,
            other => Kind::Permit(Permit(other.strip_prefix("permit ")?.parse().ok()?)),
        };
        let generation = Generation(parts.next()?.parse().ok()?);
        let token = FencingToken::new(parts.next()?.parse().ok()?).ok()?;
        parts.next().is_none().then(|| Self { tenant, generation, grant: Grant::new(resource, token, kind) })
    }
}
