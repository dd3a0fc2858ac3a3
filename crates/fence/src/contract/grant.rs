//! What a writer presents.

use std::num::NonZeroU64;

use leasehold_types::{FencingToken, Permit, ResourceName};

use super::fence::row_number;

/// How the lock was held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// By one holder.
    Exclusive,
    /// By readers: checked at a fence, never advancing its maximum.
    Shared,
    /// One of a semaphore's places.
    Permit(Permit),
}

/// A grant as its holder presents it: which lock, which token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    resource: ResourceName,
    token: FencingToken,
    kind: Kind,
}

/// Steps are counted where the maximum is kept, and a shared grant leaves nothing there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a shared grant has no steps: its writes leave no mark at the fence")]
pub struct SharedSteps;

impl Grant {
    /// A grant of this kind.
    pub fn new(resource: ResourceName, token: FencingToken, kind: Kind) -> Self {
        Self { resource, token, kind }
    }

    /// A grant to one holder.
    pub fn exclusive(resource: ResourceName, token: FencingToken) -> Self {
        Self::new(resource, token, Kind::Exclusive)
    }

    /// A reader's grant.
    pub fn shared(resource: ResourceName, token: FencingToken) -> Self {
        Self::new(resource, token, Kind::Shared)
    }

    /// A semaphore's grant.
    pub fn permit(resource: ResourceName, token: FencingToken, permit: Permit) -> Self {
        Self::new(resource, token, Kind::Permit(permit))
    }

    /// Asks to write, any number of times as far as the fence's policy goes.
    pub fn write(&self) -> Ask {
        Ask { grant: self.clone(), step: None }
    }

    /// Asks to make the n-th write of this grant at this fence, counted from 1 without gaps: sent twice it is applied
    /// once, sent out of order it is rejected until its turn.
    ///
    /// # Errors
    /// For a shared grant.
    pub fn step(&self, n: NonZeroU64) -> Result<Ask, SharedSteps> {
        match self.kind {
            Kind::Shared => Err(SharedSteps),
            _ => Ok(Ask { grant: self.clone(), step: Some(n) }),
        }
    }

    /// The lock.
    pub fn resource(&self) -> &ResourceName {
        &self.resource
    }

    /// The token.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// How the lock was held.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether admitting this grant moves the maximum.
    pub fn advances(&self) -> bool {
        self.kind != Kind::Shared
    }

    /// The number of the row that keeps the maximum for this grant: -1 for the whole fence, else the permit's.
    pub fn row_number(&self) -> i64 {
        match self.kind {
            Kind::Permit(permit) => row_number(Some(permit)),
            Kind::Exclusive | Kind::Shared => row_number(None),
        }
    }
}

/// A grant that asks for one write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    grant: Grant,
    step: Option<NonZeroU64>,
}

impl Ask {
    /// The grant.
    pub fn grant(&self) -> &Grant {
        &self.grant
    }

    /// Which write of the grant, when it is counted.
    pub fn step(&self) -> Option<NonZeroU64> {
        self.step
    }

    /// The token.
    pub fn token(&self) -> FencingToken {
        self.grant.token
    }
}
