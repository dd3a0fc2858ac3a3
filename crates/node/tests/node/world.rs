//! A node with its journal, its clock and its data directory.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold_core::{
    Acquire, Command, Event, LockFilter, OpenSession, Query, Renew, RenewalReport, Reply, Sharing,
};
use leasehold_journal::{Journal, MemoryJournal};
use leasehold_node::{
    Call, Clock, Durable, EventId, Handle, Happened, ManualClock, NodeConfig, Observer, Reading, Running,
    Sleep, StartError, StopReason, SubmitError, start,
};
use leasehold_types::{
    Class, LeaseId, OwnerId, ResourceName, SessionId, TenantName, Ttl, TtlBounds, ids::random,
};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(super) type Answer = Result<Durable<Reply>, SubmitError>;

/// Waits until a count has come this far.
pub(super) async fn until(count: &watch::Sender<usize>, at_least: usize) {
    let mut count = count.subscribe();
    let reached = tokio::time::timeout(Duration::from_secs(20), count.wait_for(|n| *n >= at_least));
    reached.await.expect("it comes within seconds").unwrap();
}

/// Virtual time that knows up to when the loop has done its work.
pub(super) struct TestClock {
    pub(super) manual: ManualClock,
    seen: watch::Sender<Duration>,
    /// How often the loop has set its alarm.
    pub(super) alarms: AtomicUsize,
    /// After each look of the loop so many milliseconds pass.
    pub(super) stride: AtomicU64,
}

impl TestClock {
    fn new() -> Self {
        let seen = watch::Sender::new(Duration::ZERO);
        Self { manual: ManualClock::new(), seen, alarms: AtomicUsize::new(0), stride: AtomicU64::new(0) }
    }

    /// Lets time pass in steps that are no pauses, each of which the loop sees.
    pub(super) async fn pass(&self, ms: u64) {
        for _ in 0..ms.div_ceil(100) {
            tokio::task::yield_now().await;
            self.manual.advance(Duration::from_millis(100));
            let now = self.manual.read().monotonic;
            let mut seen = self.seen.subscribe();
            let seen = tokio::time::timeout(Duration::from_secs(20), seen.wait_for(|seen| *seen >= now));
            seen.await.expect("the loop looks at the clock").unwrap();
        }
    }
}

impl Clock for TestClock {
    fn read(&self) -> Reading {
        let reading = self.manual.read();
        let stride = self.stride.load(Ordering::Relaxed);
        if stride > 0 && std::thread::current().name() == Some("leasehold-loop") {
            self.manual.advance(Duration::from_millis(stride));
        }
        reading
    }

    /// A loop that goes to sleep has done everything there was to do at this time.
    fn sleep_until(&self, deadline: Duration) -> Sleep {
        if std::thread::current().name() == Some("leasehold-loop") {
            self.alarms.fetch_add(1, Ordering::Relaxed);
            self.seen.send_replace(self.manual.read().monotonic);
        }
        self.manual.sleep_until(deadline)
    }
}

/// What the observer was told.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) events: Mutex<Vec<(Option<EventId>, Event)>>,
    pub(super) batches: Mutex<Vec<usize>>,
    pub(super) snapshots: watch::Sender<usize>,
    pub(super) troubles: Mutex<Vec<String>>,
    pub(super) given_back: watch::Sender<usize>,
    pub(super) unknown: watch::Sender<usize>,
}

impl Observer for Seen {
    fn events(&self, events: &Arc<[Happened]>) {
        let told = events.iter().map(|happened| (happened.id, happened.event.clone()));
        self.events.lock().unwrap().extend(told);
    }
    fn committed(&self, facts: usize, _: usize, _: Duration) {
        self.batches.lock().unwrap().push(facts);
    }
    fn snapshot(&self, _: u64, _: u64, _: Duration) {
        self.snapshots.send_modify(|n| *n += 1);
    }
    fn trouble(&self, what: &str, detail: &str) {
        self.troubles.lock().unwrap().push(format!("{what}: {detail}"));
    }
    fn given_back(&self) {
        self.given_back.send_modify(|n| *n += 1);
    }
    fn unknown_outcome(&self) {
        self.unknown.send_modify(|n| *n += 1);
    }
}

pub(super) struct World {
    pub(super) clock: Arc<TestClock>,
    pub(super) journal: MemoryJournal,
    pub(super) seen: Arc<Seen>,
    pub(super) config: NodeConfig,
    pub(super) running: Running,
    pub(super) handle: Handle,
    /// Removed when the world ends.
    _dir: TempDir,
}

impl World {
    pub(super) async fn new() -> Self {
        Self::with(MemoryJournal::new(), |_| {}).await
    }

    pub(super) async fn with(journal: MemoryJournal, adjust: impl FnOnce(&mut NodeConfig)) -> Self {
        Self::over(journal.clone(), Arc::new(journal), adjust).await
    }

    /// With a journal that wraps the one in memory.
    pub(super) async fn over(
        journal: MemoryJournal,
        wrapped: Arc<dyn Journal>,
        adjust: impl FnOnce(&mut NodeConfig),
    ) -> Self {
        let dir = TempDir::new().unwrap();
        let mut config = NodeConfig::new("node-1", dir.path());
        adjust(&mut config);
        let (clock, seen) = (Arc::new(TestClock::new()), Arc::new(Seen::default()));
        let running = start(config.clone(), wrapped, clock.clone(), seen.clone()).await.unwrap();
        let handle = running.handle();
        Self { clock, journal, seen, config, running, handle, _dir: dir }
    }

    /// Another node on the same journal and data directory.
    pub(super) async fn start_another(&self) -> Result<Running, StartError> {
        let journal = Arc::new(self.journal.clone());
        start(self.config.clone(), journal, self.clock.clone(), self.seen.clone()).await
    }

    /// Shuts the node down in order and starts it again.
    pub(super) async fn restart(self) -> Self {
        let Self { clock, journal, seen, config, running, _dir, .. } = self;
        assert_eq!(running.shutdown().await, StopReason::Shutdown);
        let running =
            start(config.clone(), Arc::new(journal.clone()), clock.clone(), seen.clone()).await.unwrap();
        let handle = running.handle();
        Self { clock, journal, seen, config, running, handle, _dir }
    }

    /// Submits in the background.
    pub(super) fn spawn(&self, call: Call) -> JoinHandle<Answer> {
        let handle = self.handle.clone();
        tokio::spawn(async move { handle.submit(call).await })
    }

    /// Until the loop has taken what was submitted and gone once around.
    pub(super) async fn settle(&self) {
        self.clock.pass(200).await;
    }

    /// The reply, which must come without time passing.
    pub(super) async fn ask(&self, call: Call) -> Reply {
        self.handle.submit(call).await.unwrap().into_inner()
    }

    /// The token of a grant.
    pub(super) async fn grant(&self, resource: &str, lease: u8) -> u64 {
        token(&self.ask(acquire(resource, lease)).await)
    }

    /// Every live lease, for comparison.
    pub(super) async fn leases(&self) -> Vec<(String, u64)> {
        let filter = LockFilter { page_size: 1_000, ..LockFilter::default() };
        match self.ask(call(Command::Query(Query::Locks(filter)))).await {
            Reply::Locks(page) => {
                page.locks.iter().map(|lease| (lease.resource.to_string(), lease.token.get())).collect()
            }
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn token(reply: &Reply) -> u64 {
    match reply {
        Reply::Granted(grant) => grant.token.get(),
        other => panic!("a grant was expected, not {other:?}"),
    }
}

pub(super) fn tenant() -> TenantName {
    TenantName::default_tenant()
}

pub(super) fn call(command: Command) -> Call {
    Call { tenant: tenant(), identity: None, key: None, command }
}

pub(super) fn lease_id(n: u8) -> LeaseId {
    let mut bytes = [n; 16];
    (bytes[6], bytes[8]) = (0x40, 0x80);
    LeaseId::from_bytes(bytes)
}

/// An acquire that nobody can ask for again: the caller chose neither id nor key.
pub(super) fn acquire(resource: &str, lease: u8) -> Call {
    acquire_with(resource, |acquire| acquire.lease_id = lease_id(lease))
}

pub(super) fn waiting(resource: &str, lease: u8, wait_ms: u64) -> Call {
    acquire_with(resource, |acquire| {
        acquire.lease_id = lease_id(lease);
        acquire.wait_ms = wait_ms;
    })
}

pub(super) fn acquire_with(resource: &str, adjust: impl FnOnce(&mut Acquire)) -> Call {
    let mut acquire = Acquire {
        resource: ResourceName::new(resource).unwrap(),
        owner: Some(OwnerId::new("someone").unwrap()),
        ttl: Some(Ttl::new(10_000, TtlBounds::default()).unwrap()),
        wait_ms: 0,
        sharing: Sharing::Exclusive,
        class: Class::Efficiency,
        session: None,
        renews_session: false,
        lease_id: LeaseId::from_bytes(random()),
        lease_id_chosen: false,
        lock_delay_ms: 0,
        max_hold_ms: None,
        labels: Default::default(),
        value: None,
    };
    adjust(&mut acquire);
    call(Command::Acquire(acquire))
}

pub(super) fn release(lease: u8) -> Call {
    call(Command::Release { lease_id: lease_id(lease) })
}

pub(super) fn renew(lease: u8) -> Call {
    let (lease_id, report) = (lease_id(lease), RenewalReport::default());
    call(Command::Renew(Renew { lease_id, ttl: None, report, lists_locks: true }))
}

pub(super) fn show(lease: u8) -> Call {
    call(Command::Query(Query::Lease(lease_id(lease))))
}

pub(super) fn open_session() -> Call {
    call(Command::OpenSession(OpenSession {
        session_id: SessionId::from_bytes(random()),
        owner: OwnerId::new("someone").unwrap(),
        ttl: Ttl::new(10_000, TtlBounds::default()).unwrap(),
        labels: Default::default(),
    }))
}
