//! What a node is told when it starts. A setting that nobody needs to turn is a constant, with its reason.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use leasehold_core::Quotas;

/// Settings of one node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    /// The node's name, for people.
    pub name: Arc<str>,
    /// Where the witness lives, with every journal.
    pub data_dir: PathBuf,
    /// A snapshot is made once this many bytes of facts were committed after the last one, or twice its size if that is
    /// more. Default 64 MiB: a restart replays them in a fraction of a second.
    pub snapshot_bytes: u64,
    /// Bytes of facts that stay behind every snapshot, so that a restarted node still has the newest events for
    /// watchers that resume. Default 2 MiB: more than ten thousand events.
    pub resume_bytes: u64,
    /// Commands that may wait to be taken by the loop. Default 16,384: at the slowest commit rate worth serving they
    /// are answered well within a caller's patience.
    pub queue: usize,
    /// Of those, places that acquires, queries and session openings may not use (N8). Default a quarter.
    pub queue_reserve: usize,
    /// Acquires that may wait for a resource at the same time. Default 100,000, about 100 MB.
    pub waiters: usize,
    /// How many events are kept for watchers that resume. Default 16,384, about 5 MB: seconds at full load,
    /// hours at rest.
    pub ring_events: usize,
    /// How many bytes of events are kept. Default 8 MiB.
    pub ring_bytes: usize,
    /// Grant correctness locks although the journal can lose them. Default no.
    pub correctness_despite_loss: bool,
    /// The newest format of facts that this node reads and writes (N10). Default what this version knows. A test lowers it
    /// to stand for an older version; no setting of the server does.
    pub known_format: u8,
    /// How much each tenant may have. Default: no bound but those of the node.
    pub quotas: Quotas,
    /// Set where other nodes may share the journal: the node then begins as a standby, takes over when the active node
    /// resigns or falls silent, and becomes a standby again when it is replaced. Default `None`: it claims the journal
    /// at once, and stops when it is fenced.
    pub shared: Option<SharedJournal>,
}

/// What a node needs that shares its journal with others.
#[derive(Clone, Debug)]
pub struct SharedJournal {
    /// Where the other nodes and clients reach this one; announced in the journal when it takes over.
    pub url: Arc<str>,
    /// A standby takes over after it has seen no sign of life for this long, and up to half as long again by chance
    /// (N6). Default 1.2 s: four beats, and together with the time to open well below 3 s.
    pub patience: Duration,
}

impl SharedJournal {
    /// The defaults for a node that is reached at this URL.
    pub fn new(url: impl Into<Arc<str>>) -> Self {
        Self { url: url.into(), patience: Duration::from_millis(1_200) }
    }
}

impl NodeConfig {
    /// The defaults for a node of this name with this data directory.
    pub fn new(name: impl Into<Arc<str>>, data_dir: impl Into<PathBuf>) -> Self {
        Self {
            name: name.into(),
            data_dir: data_dir.into(),
            snapshot_bytes: 64 << 20,
            resume_bytes: 2 << 20,
            queue: 16_384,
            queue_reserve: 4_096,
            waiters: 100_000,
            ring_events: 16_384,
            ring_bytes: 8 << 20,
            correctness_despite_loss: false,
            known_format: leasehold_core::codec::FORMAT,
            quotas: Quotas::default(),
            shared: None,
        }
    }
}

/// Without progress of commits for this long a node refuses renewals (N5), gives an unknown outcome up (J3) and calls
/// itself stalled: longer than a disk's hiccup, much shorter than any sensible ttl.
pub const STALL: Duration = Duration::from_secs(2);

/// A loop that looked at the clock later than this after its last look was paused (N3): a quarter of the shortest ttl.
pub(crate) const PAUSE: Duration = Duration::from_millis(250);

/// After a pause serving time stands still for this much longer, so that what waited in sockets meanwhile is handed in
/// before anything expires.
pub(crate) const PAUSE_GRACE: Duration = Duration::from_millis(100);

/// If the two clocks part by more than this since the last look, the machine was suspended (R3).
pub(crate) const CLOCKS_PART: Duration = Duration::from_millis(100);

/// An idle loop looks at the clocks this often: well below what counts as a pause, so that a pause is noticed as one.
pub const HEARTBEAT: Duration = Duration::from_millis(100);

/// How often the witness is written (J9).
pub const WITNESS_EVERY: Duration = Duration::from_secs(1);

/// A command that does not wait is answered within this, and a waiting one this long after its wait (L5).
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// An unknown outcome is resolved again after this pause (J3): short against [`STALL`], long enough not to flood an
/// engine that is on its knees.
pub const RESOLVE_EVERY: Duration = Duration::from_millis(50);

/// Commands taken before the next commit begins: bounds how long the first of them waits for the last to be decided.
pub(crate) const TAKE_MOST: u64 = 4_096;

/// Deciding so many takes long enough for others to come meanwhile; with fewer a look would cost more than it finds.
pub(crate) const MANY: u64 = 8;

/// So many commands are too many for one commit of an engine, so that half of them is left for the next. With fewer, a second
/// commit takes longer than deciding all of them.
pub(crate) const HALVED: usize = 128;

/// Commits of an engine that take this long are not halved: about what telling, asking again and deciding take for 256 callers.
pub(crate) const LONG_COMMIT: Duration = Duration::from_millis(1);

/// Facts of passing time in one batch: a mass expiry is spread over many commits, between which renewals get through
/// (N4).
pub const TICK_MOST: usize = 1_024;

/// Under load watchers are woken this often at most: waking a thousand of them costs the loop as much as a commit.
pub(crate) const ANNOUNCE_EVERY: Duration = Duration::from_millis(1);

/// An active node that has appended nothing for this long writes a beat (J15).
pub const BEAT: Duration = Duration::from_millis(300);

/// A standby looks at the journal this often: a resignation is seen well within 200 ms.
pub const LOOK: Duration = Duration::from_millis(100);
