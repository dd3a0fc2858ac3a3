//! Which fence: its name, the lock that guards it, its policy.

use leasehold_types::{Permit, ResourceName};

use super::grant::Kind;

/// How many writes a fence admits from one grant.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Policy {
    /// Admits a token that is not lower than the highest: a holder may write many times.
    #[default]
    Monotonic,
    /// Admits a token that is higher than the highest, or claimed and not used yet: one write for each grant.
    Strict,
}

/// What one maximum of a fence stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Span {
    /// One maximum for the whole fence. Admits exclusive and shared grants.
    #[default]
    Whole,
    /// One maximum for each permit of a semaphore. Admits semaphore grants.
    EachPermit,
}

/// The declaration of a fence around one protected thing.
///
/// Every program that writes the thing declares the fence with the same values: the name finds what the fence keeps,
/// and the guard is the only lock whose tokens mean anything here. Tokens of another lock are not comparable, however
/// large: they are rejected as of the wrong scope.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fence {
    name: ResourceName,
    guard: ResourceName,
    policy: Policy,
    span: Span,
}

impl Fence {
    /// The fence around the thing that has the same name as the lock that guards it.
    pub fn of(resource: &ResourceName) -> Self {
        Self::named(resource.clone(), resource.clone())
    }

    /// A fence around the thing `name`, guarded by the lock on `guard`.
    pub fn named(name: ResourceName, guard: ResourceName) -> Self {
        Self { name, guard, policy: Policy::default(), span: Span::default() }
    }

    /// Admits one write for each grant.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.policy = Policy::Strict;
        self
    }

    /// Keeps one maximum for each permit of a semaphore.
    #[must_use]
    pub fn each_permit(mut self) -> Self {
        self.span = Span::EachPermit;
        self
    }

    /// The name of the fence.
    pub fn name(&self) -> &ResourceName {
        &self.name
    }

    /// The lock whose tokens are admitted.
    pub fn guard(&self) -> &ResourceName {
        &self.guard
    }

    /// How many writes one grant may make.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// What one maximum stands for.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Whether this grant's tokens mean anything here, as far as the declaration says.
    #[cfg(any(feature = "_sql", test))]
    pub(crate) fn fences(&self, grant: &super::Grant) -> bool {
        grant.resource() == &self.guard && self.takes(grant.kind())
    }

    /// Whether grants of this kind are fenced here.
    pub(crate) fn takes(&self, kind: Kind) -> bool {
        match self.span {
            Span::Whole => matches!(kind, Kind::Exclusive | Kind::Shared),
            Span::EachPermit => matches!(kind, Kind::Permit(_)),
        }
    }
}

/// Which row of a fence a grant is checked against: stores without optional keys write -1 for the whole.
pub(crate) fn row_number(permit: Option<Permit>) -> i64 {
    permit.map_or(-1, |Permit(number)| i64::from(number))
}
