//! Several nodes on one journal, in one virtual time.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use leasehold_core::Reply;
use leasehold_journal::MemoryJournal;
use leasehold_node::{
    Call, Clock, Handle, ManualClock, NodeConfig, Observer, Reading, Role, Running, SharedJournal, Sleep,
    StartError, StopReason, start,
};
use leasehold_types::Epoch;
use tempfile::TempDir;
use tokio::sync::watch;

use super::world::{Answer, token};

/// The time of all nodes, as one of them sees it: its loop can be frozen, as by SIGSTOP.
pub(super) struct NodeClock {
    time: Arc<ManualClock>,
    seen: watch::Sender<Duration>,
    frozen: Mutex<bool>,
    thawed: Condvar,
}

impl NodeClock {
    fn set_frozen(&self, frozen: bool) {
        *self.frozen.lock().unwrap() = frozen;
        self.thawed.notify_all();
    }

    fn is_frozen(&self) -> bool {
        *self.frozen.lock().unwrap()
    }
}

fn is_loop() -> bool {
    std::thread::current().name() == Some("leasehold-loop")
}

impl Clock for NodeClock {
    fn read(&self) -> Reading {
        if is_loop() {
            let frozen = self.frozen.lock().unwrap();
            drop(self.thawed.wait_while(frozen, |frozen| *frozen).unwrap());
        }
        self.time.read()
    }

    /// A loop that goes to sleep has done everything there was to do at this time.
    fn sleep_until(&self, deadline: Duration) -> Sleep {
        if is_loop() {
            self.seen.send_replace(self.time.read().monotonic);
        }
        self.time.sleep_until(deadline)
    }
}

/// What a node's observer was told.
#[derive(Default)]
pub(super) struct Lives {
    pub(super) took_over: Mutex<Vec<u64>>,
    pub(super) stepped_down: Mutex<Vec<StopReason>>,
    pub(super) troubles: Mutex<Vec<String>>,
}

impl Observer for Lives {
    fn took_over(&self, epoch: Epoch) {
        self.took_over.lock().unwrap().push(epoch.0);
    }
    fn stepped_down(&self, why: &StopReason) {
        self.stepped_down.lock().unwrap().push(why.clone());
    }
    fn trouble(&self, what: &str, detail: &str) {
        self.troubles.lock().unwrap().push(format!("{what}: {detail}"));
    }
}

/// One node of a cluster.
pub(super) struct Member {
    running: Option<Running>,
    pub(super) handle: Handle,
    pub(super) lives: Arc<Lives>,
    clock: Arc<NodeClock>,
}

impl Member {
    pub(super) fn freeze(&self) {
        self.clock.set_frozen(true);
    }

    pub(super) fn thaw(&self) {
        self.clock.set_frozen(false);
    }

    pub(super) fn is_active(&self) -> bool {
        self.handle.status().role == Role::Active
    }

    pub(super) async fn submit(&self, call: Call) -> Answer {
        self.handle.submit(call).await
    }

    pub(super) async fn grant(&self, resource: &str, lease: u8) -> u64 {
        token(self.submit(super::world::acquire(resource, lease)).await.unwrap().get())
    }

    pub(super) async fn ask(&self, call: Call) -> Reply {
        self.submit(call).await.unwrap().into_inner()
    }
}

impl Member {
    pub(super) async fn shut_down(mut self) -> StopReason {
        self.running.take().expect("it runs until it is shut down").shutdown().await
    }

    pub(super) async fn stopped(&mut self) -> StopReason {
        self.running.as_mut().expect("it runs until it is shut down").stopped().await
    }
}

impl Drop for Member {
    /// A frozen thread would outlive the test.
    fn drop(&mut self) {
        self.thaw();
    }
}

/// A journal with its nodes.
pub(super) struct Cluster {
    pub(super) journal: MemoryJournal,
    pub(super) time: Arc<ManualClock>,
    pub(super) members: Vec<Member>,
    dir: TempDir,
    started: usize,
}

impl Cluster {
    /// A new journal with this many nodes; the first has founded it and is active.
    pub(super) async fn new(members: usize) -> Self {
        Self::on(MemoryJournal::new(), members).await
    }

    /// The same on a journal of the test's choice.
    pub(super) async fn on(journal: MemoryJournal, members: usize) -> Self {
        let (dir, time) = (TempDir::new().unwrap(), Arc::new(ManualClock::new()));
        let mut cluster = Self { journal, time, members: Vec::new(), dir, started: 0 };
        for _ in 0..members {
            cluster.join().await;
        }
        cluster
    }

    /// Another node, with a data directory of its own.
    pub(super) async fn join(&mut self) {
        let member = self.try_join().await.unwrap();
        self.members.push(member);
    }

    pub(super) async fn try_join(&mut self) -> Result<Member, StartError> {
        self.started += 1;
        self.start(self.config(self.started)).await
    }

    /// The settings of the node with this number, whether it was started before or not.
    pub(super) fn config(&self, number: usize) -> NodeConfig {
        let name = format!("node-{number}");
        let mut config = NodeConfig::new(name.as_str(), self.dir.path().join(&name));
        config.shared = Some(SharedJournal::new(format!("http://{name}")));
        config
    }

    pub(super) async fn start(&self, config: NodeConfig) -> Result<Member, StartError> {
        let clock = Arc::new(NodeClock {
            time: Arc::clone(&self.time),
            seen: watch::Sender::new(Duration::ZERO),
            frozen: Mutex::new(false),
            thawed: Condvar::new(),
        });
        let lives = Arc::new(Lives::default());
        let journal = Arc::new(self.journal.clone());
        let running = start(config, journal, Arc::clone(&clock) as _, Arc::clone(&lives) as _).await?;
        let handle = running.handle();
        Ok(Member { running: Some(running), handle, lives, clock })
    }

    /// Lets time pass, in steps each of which every loop that is not frozen has dealt with.
    pub(super) async fn pass(&self, ms: u64) {
        for _ in 0..ms.div_ceil(50) {
            self.step().await;
        }
    }

    /// Lets time pass until something is so; how many milliseconds that took.
    pub(super) async fn pass_until(&self, most_ms: u64, mut so: impl FnMut(&Self) -> bool) -> u64 {
        let begun = self.time.read().monotonic;
        while !so(self) {
            let passed = (self.time.read().monotonic - begun).as_millis() as u64;
            assert!(passed < most_ms, "it did not come within {most_ms} ms");
            self.step().await;
        }
        (self.time.read().monotonic - begun).as_millis() as u64
    }

    async fn step(&self) {
        tokio::task::yield_now().await;
        self.time.advance(Duration::from_millis(50));
        // Every loop looks at least every 100 ms, and is at most that far behind.
        let now = self.time.read().monotonic - Duration::from_millis(100);
        for member in self.members.iter().filter(|member| !member.clock.is_frozen()) {
            let mut seen = member.clock.seen.subscribe();
            let seen = tokio::time::timeout(Duration::from_secs(20), seen.wait_for(|seen| *seen >= now));
            seen.await.expect("the loop looks at the clock").unwrap();
        }
    }

    /// Lets time pass until a node that is no member has stopped; why it did.
    pub(super) async fn pass_until_stopped(&self, mut stopping: Member) -> StopReason {
        loop {
            tokio::select! {
                biased;
                reason = stopping.stopped() => return reason,
                () = tokio::time::sleep(Duration::from_millis(1)) => self.step().await,
            }
        }
    }

    /// Who is active, by place; panics when there are two.
    pub(super) fn active(&self) -> Option<usize> {
        let live = |member: &&Member| !member.clock.is_frozen() && member.is_active();
        assert!(self.members.iter().filter(live).count() <= 1, "two nodes call themselves active");
        self.members.iter().position(|member| live(&member))
    }

    /// Takes a node out of the cluster without a word, as kill -9 does. Its thread stays frozen until the test ends.
    pub(super) fn kill(&mut self, index: usize) -> Member {
        let member = self.members.remove(index);
        member.freeze();
        member
    }
}
