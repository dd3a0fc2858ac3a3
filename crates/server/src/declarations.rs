//! What an operator declares and may change while the server runs: policies, and what each tenant may have.
//!
//! Nothing of it is needed to replay a journal: facts say what was granted, not what was allowed. So nodes may be told one
//! after the other, and a new bound takes nothing away that is held.

use std::sync::Arc;

use leasehold_node::Handle;
use tokio::sync::Mutex;

use crate::auth::Tenants;
use crate::config::{Config, Declared, PolicyBook};

/// See the module.
pub(crate) struct Declarations {
    node: String,
    policies: PolicyBook,
    tenants: Arc<Tenants>,
    /// Held while they are noted, so that the newest are noted last.
    noting: Mutex<()>,
}

impl std::fmt::Debug for Declarations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Declarations").field("node", &self.node).finish_non_exhaustive()
    }
}

impl Declarations {
    /// Those that the server starts with.
    pub(crate) fn new(config: &Config, tenants: Arc<Tenants>) -> Self {
        Self {
            node: config.node.clone(),
            policies: config.limits.policies.clone(),
            tenants,
            noting: Mutex::default(),
        }
    }

    /// From now on those of these settings. At the door they count at once; the table is told by [`Declarations::note`].
    /// Whether anything is different.
    pub(crate) fn replace(&self, config: &Config) -> bool {
        let before = self.now();
        self.policies.replace(config.limits.policies.now());
        self.tenants.set_limits(config.tenants.clone());
        self.now() != before
    }

    /// Tells the table, if this node is active, and the audit log, if that says something else. A node that stands by does
    /// so when it takes over.
    pub(crate) async fn note(&self, handle: &Handle) {
        let _in_turn = self.noting.lock().await;
        self.now().note(handle).await;
    }

    fn now(&self) -> Declared {
        Declared::new(&self.node, &self.policies.now(), &self.tenants.limits())
    }
}
