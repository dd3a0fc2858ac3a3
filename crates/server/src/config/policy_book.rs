//! The policies as they are now.

use std::sync::{Arc, PoisonError, RwLock};

use super::Policies;

/// Shared by everybody who asks for policies, so that all see the new ones at once when an operator changes them. Clones are
/// the same book.
#[derive(Clone, Debug, Default)]
pub struct PolicyBook(Arc<RwLock<Arc<Policies>>>);

impl PolicyBook {
    /// A book with these.
    pub fn new(policies: Policies) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(policies))))
    }

    /// The policies now; they stay as they are while they are looked at.
    pub fn now(&self) -> Arc<Policies> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A short look at them, for what is asked with every event.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&Policies) -> T) -> T {
        look(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// From now on these.
    pub(crate) fn replace(&self, policies: Arc<Policies>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = policies;
    }
}

impl PartialEq for PolicyBook {
    fn eq(&self, other: &Self) -> bool {
        self.now() == other.now()
    }
}

impl Eq for PolicyBook {}
