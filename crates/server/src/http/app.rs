//! What handlers may use, and through which everything goes to the node: in the name of one caller.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use leasehold_api::Problem;
use leasehold_core::{Command, Counts, Query, Reply};
use leasehold_node::{Call, Clock, Durable, Handle, Status, SubmitError, Trail, Watch, WatchFrom};
use leasehold_types::{RequestKey, ResourceName, Role, TenantName, Verb};
use tokio::sync::watch;

use super::convert;
use super::forward::Forward;
use super::route::Place;
use crate::auth::{
    self, Access, Caller, ConnectionCaller, Demand, TenantRoom, Tenants, WatchPlace, authorize, demand_of,
};
use crate::config::{HostPolicy, Limits};
use crate::fences::Fences;
use crate::forwarding::{self, ForwardedIdentity};
use crate::grpc::Losses;
use crate::metrics::Metrics;
use crate::peers::Peers;
use crate::signing::{Provable, Signer};
use crate::traces::{self, Traces};

/// What all requests of one life share.
pub(crate) struct Base {
    pub(crate) handle: Handle,
    /// The way to the active node, while that is another one.
    pub(crate) forward: Option<Forward>,
    /// Which other nodes were heard of.
    pub(crate) peers: Arc<Peers>,
    /// When this life of the node began, in the time of `peers`.
    pub(crate) since: Duration,
    pub(crate) limits: Limits,
    pub(crate) hosts: HostPolicy,
    /// `<cluster id>/<epoch>`. A node serves one epoch from start to stop, so it is written once.
    pub(crate) epoch: HeaderValue,
    /// What an acknowledged commit survives, as the journal said when this life began. Static text: a copy costs nothing.
    pub(crate) durability: HeaderValue,
    /// Where others reach this node.
    pub(crate) address: String,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    pub(crate) access: Access,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tenants: Arc<Tenants>,
    /// Which fences are known.
    pub(crate) fences: Arc<Fences>,
    pub(crate) drain: watch::Receiver<bool>,
    /// Which gRPC stream is told of the loss of a lease.
    pub(crate) losses: Arc<Losses>,
    /// What signs tokens, where there are keys.
    pub(crate) signer: Option<Arc<Signer>>,
}

/// What the handlers of one request may use: what is shared, in the name of its caller.
pub(crate) struct App {
    base: Arc<Base>,
    caller: Caller,
    /// Whose names are meant.
    pub(crate) tenant: TenantName,
    room: Arc<TenantRoom>,
}

impl Deref for App {
    type Target = Base;

    fn deref(&self) -> &Base {
        &self.base
    }
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App")
            .field("epoch", &self.epoch)
            .field("forward", &self.forward)
            .field("caller", &self.caller)
            .finish_non_exhaustive()
    }
}

impl App {
    /// What requests begin with: everybody on an open server, nobody yet on a protected one.
    pub(crate) fn new(base: Base) -> Self {
        let caller = match base.access {
            Access::Open => Caller::Open,
            Access::Protected => Caller::Nobody,
        };
        Self::of(Arc::new(base), caller)
    }

    fn of(base: Arc<Base>, caller: Caller) -> Self {
        let tenant = match &caller {
            Caller::Open | Caller::Nobody => TenantName::default_tenant(),
            Caller::Known(principal) => principal.tenant.clone(),
        };
        let room = base.tenants.room(&tenant);
        Self { base, caller, tenant, room }
    }

    /// The same in the name of whoever a request comes from, as far as its place demands that.
    ///
    /// # Errors
    /// `unauthenticated`, `forbidden`.
    pub(crate) fn admit(
        self: &Arc<Self>,
        demand: Demand<'_>,
        head: &Parts,
        connection: &ConnectionCaller,
    ) -> Result<Arc<Self>, Problem> {
        if self.access == Access::Open || demand == Demand::Nothing {
            return Ok(Arc::clone(self));
        }
        let passed_on = head.extensions.get::<ForwardedIdentity>();
        let caller = self.access.admit(&head.headers, connection, passed_on, &self.handle, &*self.clock)?;
        demand.check(&caller)?;
        Ok(Arc::new(Self::of(Arc::clone(&self.base), caller)))
    }

    /// What a path demands of its caller.
    pub(crate) fn demand_of(path: &str) -> Demand<'static> {
        // There is nothing behind an unknown path, which everybody may know.
        Place::of(path).map_or(Demand::Nothing, demand_of)
    }

    /// Brings a command to the node; a lawful no becomes a problem here.
    pub(crate) async fn submit(&self, key: Option<RequestKey>, command: Command) -> Result<Reply, Problem> {
        let call = self.call(key, command)?;
        let Some(span) = traces::present() else {
            return self.told(outcome(self.handle.submit(call).await));
        };
        let trail = Arc::<Trail>::default();
        let answer = self.handle.submit_noting(call, Some(Arc::clone(&trail))).await;
        self.traces.tell(span, &trail);
        self.told(outcome(answer))
    }

    /// An outcome as this caller is told it: with what is known of fences, and declared of names.
    pub(crate) fn told(&self, mut outcome: Result<Reply, Problem>) -> Result<Reply, Problem> {
        if let Ok(reply) = &mut outcome {
            self.fences.tell(&self.tenant, reply);
            if matches!(reply, Reply::Granted(_)) {
                self.limits.policies.with(|policies| policies.warn(reply));
            }
        }
        outcome
    }

    /// What proves a lease of this caller's tenant to a fence. `None` without keys, and for a token of an earlier
    /// generation: that one must not look like one of this.
    pub(crate) fn signed<'a>(&self, lease: impl Into<Provable<'a>>) -> Option<String> {
        let (signer, lease) = (self.signer.as_ref()?, lease.into());
        let generation = self.handle.status().generation_of(lease.token)?;
        Some(signer.sign(&self.tenant, generation, &lease))
    }

    /// Refuses a caller that may not speak for the fences of a prefix: what they report changes what grants promise.
    pub(crate) fn may_report(&self, prefix: &str) -> Result<(), Problem> {
        self.must_be_admitted()?;
        Demand::Prefix(Verb::Operate, prefix).check(&self.caller)
    }

    /// A command as it goes to the node, with who asks, if it may. Everything that anybody asks of the table passes here.
    pub(crate) fn call(&self, key: Option<RequestKey>, command: Command) -> Result<Call, Problem> {
        self.must_be_admitted()?;
        authorize(&self.caller, &command)?;
        self.room.count(&command)?;
        match &command {
            Command::Renew(renew) => self.metrics.renewal_reported(&self.tenant, &renew.report),
            Command::RenewSession(renew) => self.metrics.renewal_reported(&self.tenant, &renew.report),
            _ => {}
        }
        let identity = self.identity_for(&command);
        let key = match &self.caller {
            Caller::Known(principal) => key.map(|key| principal.own_key(&key)),
            Caller::Open | Caller::Nobody => key,
        };
        Ok(Call { tenant: self.tenant.clone(), identity, key, command })
    }

    /// Who asks, for the audit log and for what is bound to it. Whoever may look at everything of a tenant asks its
    /// questions as nobody in particular.
    fn identity_for(&self, command: &Command) -> Option<Box<str>> {
        let Caller::Known(principal) = &self.caller else { return None };
        let sees_all = matches!(command, Command::Query(_)) && principal.may(Verb::Inspect, "");
        (!sees_all).then(|| principal.name.as_str().into())
    }

    /// The caller's name, where it has one.
    pub(crate) fn identity(&self) -> Option<Box<str>> {
        match &self.caller {
            Caller::Known(principal) => Some(principal.name.as_str().into()),
            Caller::Open | Caller::Nobody => None,
        }
    }

    /// Whether callers show nothing, and may do everything.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.caller, Caller::Open)
    }

    /// What the caller may do at most.
    pub(crate) fn role(&self) -> Role {
        match &self.caller {
            Caller::Open => Role::Admin,
            Caller::Known(principal) => principal.role,
            Caller::Nobody => Role::Client,
        }
    }

    /// The share of the caller's tenant.
    pub(crate) fn room(&self) -> &TenantRoom {
        &self.room
    }

    /// Refuses a caller that may not look at everything of its tenant.
    pub(crate) fn may_inspect(&self) -> Result<(), Problem> {
        Demand::Everywhere(Verb::Inspect).check(&self.caller)
    }

    /// Whether the caller may see what is not its tenant's alone.
    pub(crate) fn sees_every_tenant(&self) -> bool {
        match &self.caller {
            Caller::Open => true,
            Caller::Known(principal) => principal.may(Verb::Administer, ""),
            Caller::Nobody => false,
        }
    }

    /// The tenants whose locks the caller may count: its own, or every one that somebody may come as.
    pub(crate) fn tenants_seen(&self) -> BTreeSet<TenantName> {
        let mut seen = BTreeSet::from([self.tenant.clone()]);
        if self.sees_every_tenant() {
            seen.extend(self.handle.credentials().iter().map(|credential| credential.tenant.clone()));
        }
        seen
    }

    /// The question for audit entries: those of every tenant for whoever sees them all, unless it asks for a resource, whose
    /// name is its own tenant's.
    pub(crate) fn audit_query(&self, resource: Option<ResourceName>, after: u64, page_size: usize) -> Query {
        match resource {
            None if self.sees_every_tenant() => Query::WholeAudit { after, page_size },
            resource => Query::Audit { resource, after, page_size },
        }
    }

    /// The node as this caller may see it: its sizes are those of the caller's tenant, unless it sees every tenant. A
    /// standby does not know those, and says nothing of them.
    pub(crate) async fn status(&self) -> Status {
        let mut status = self.handle.status();
        if !self.sees_every_tenant() {
            let Counts { last_token, generation, .. } = status.counts;
            status.counts = Counts { last_token, generation, ..Counts::default() };
            if let Ok(Reply::Usage { usage, waiters }) = self.query(Query::Usage).await {
                let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
                (status.counts.leases, status.counts.sessions) = (size(usage.leases), size(usage.sessions));
                status.counts.waiters = waiters;
            }
        }
        status
    }

    /// Refuses a caller whose credential has ended since it was admitted: streams live long.
    pub(crate) fn must_be_admitted(&self) -> Result<(), Problem> {
        auth::must_still_be_admitted(&self.caller, &self.handle, &*self.clock)
    }

    /// Follows what happens to the names that begin with `prefix`.
    pub(crate) fn watch(&self, prefix: &str, from: WatchFrom) -> Result<(Watch, WatchPlace), Problem> {
        self.must_be_admitted()?;
        Demand::Prefix(Verb::Read, prefix).check(&self.caller)?;
        let place = self.room.place_to_watch()?;
        Ok((self.handle.watch(self.tenant.clone(), from), place))
    }

    /// Makes sure that this node may still speak (R1), for a stream that is to show a sign of life; and that its reader
    /// may still listen.
    pub(crate) async fn confirm(&self) -> Result<(), Problem> {
        self.must_be_admitted()?;
        // A question whose answer says nothing.
        let nothing = Command::Query(Query::Audit { resource: None, after: u64::MAX, page_size: 1 });
        let call = Call { tenant: self.tenant.clone(), identity: None, key: None, command: nothing };
        outcome(self.handle.submit(call).await).map(drop)
    }

    /// The way that a request goes: to the active node, unless it is about this one or has made its hop already (N7).
    pub(super) fn forward_for(&self, path: &str, headers: &HeaderMap) -> Option<&Forward> {
        // The active node has none, and need not look at the path for it.
        let forward = self.forward.as_ref()?;
        let is_elsewhere = Place::of(path).is_some_and(Place::is_of_the_table);
        (is_elsewhere && !forwarding::is_forwarded(headers)).then_some(forward)
    }

    /// Says on the way to the active node which certificate the caller has shown here. A bearer secret is passed on as it
    /// is, and checked there.
    pub(crate) fn vouch(&self, head: &mut Parts, connection: &ConnectionCaller) {
        if self.access == Access::Protected
            && let Some(identity) = connection.vouched(&head.headers, &self.handle.credentials())
        {
            head.extensions.insert(ForwardedIdentity(identity));
        }
    }

    /// Refuses what only pretends to have been passed on by another node (N7).
    pub(crate) fn check_forwarded(&self, head: &mut Parts) -> Result<(), Problem> {
        let secret = self.handle.secret();
        forwarding::check(secret.as_ref(), self.handle.status().cluster, head)?;
        self.peers.hear(&head.headers);
        Ok(())
    }

    pub(crate) async fn query(&self, query: Query) -> Result<Reply, Problem> {
        self.submit(None, Command::Query(query)).await
    }
}

/// What the node answered: a lawful no is a problem.
pub(crate) fn outcome(answer: Result<Durable<Reply>, SubmitError>) -> Result<Reply, Problem> {
    match answer.map_err(convert::submit_problem)?.into_inner() {
        Reply::Refused(refusal) => Err(convert::refusal_problem(refusal)),
        reply => Ok(reply),
    }
}
