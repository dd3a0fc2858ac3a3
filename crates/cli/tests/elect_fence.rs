//! Leaders of one election write through a real fence all the time: through a rolling restart, through kills, and with a
//! leader that was stopped and comes back, the accepted terms never go down and no two leaders' writes are mixed.
//!
//! The leader's command is this test program itself: [`leader_work`].
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold_fence::sql::{Dialect, ddl};
use leasehold_fence::{Fence, FenceError, Grant, sqlite};
use leasehold_tests::hold_to;
use leasehold_types::{FencingToken, ResourceName};
use rusqlite::{Connection, TransactionBehavior, params};
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

/// For what takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);
const ELECTION: &str = "jobs";
const LEDGER: &str = "LEASEHOLD_TEST_LEDGER";
/// What a hand-over in order may take, from the signal to the first write of the next leader.
const GAP: Duration = Duration::from_millis(200);

/// What the leaders wrote, and what the fence refused.
struct Ledger(Connection);

impl Ledger {
    fn create(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        let tables = "CREATE TABLE writes (seq INTEGER PRIMARY KEY AUTOINCREMENT, term INTEGER NOT NULL); \
                      CREATE TABLE refused (term INTEGER NOT NULL);";
        let fence = ddl::base(Dialect::Sqlite, None).unwrap().up_script();
        connection.execute_batch(&format!("PRAGMA journal_mode=WAL; {fence}; {tables}")).unwrap();
        Self(connection)
    }

    fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection.busy_timeout(PATIENCE).unwrap();
        connection.execute_batch("PRAGMA synchronous=OFF").unwrap();
        Self(connection)
    }

    /// One write under this term, in the same step as the check. Whether the fence admitted it.
    fn write(&mut self, fence: &Fence, grant: &Grant) -> bool {
        let term = i64::try_from(grant.token().get()).unwrap();
        let transaction = self.0.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let admitted = match sqlite::admit(&transaction, fence, &grant.write()) {
            Ok(admitted) => {
                admitted
                    .transaction()
                    .execute("INSERT INTO writes (term) VALUES (?1)", params![term])
                    .unwrap();
                true
            }
            Err(FenceError::Rejected(_)) => {
                transaction.execute("INSERT INTO refused (term) VALUES (?1)", params![term]).unwrap();
                false
            }
            Err(error) => panic!("{error}"),
        };
        transaction.commit().unwrap();
        admitted
    }

    /// The terms of all writes, in the order in which they were accepted.
    fn terms(&self) -> Vec<i64> {
        let mut all = self.0.prepare("SELECT term FROM writes ORDER BY seq").unwrap();
        all.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    fn newest(&self) -> i64 {
        self.0.query_row("SELECT coalesce(max(term), 0) FROM writes", [], |row| row.get(0)).unwrap()
    }

    fn refused(&self, term: i64) -> i64 {
        let sql = "SELECT count(*) FROM refused WHERE term = ?1";
        self.0.query_row(sql, params![term], |row| row.get(0)).unwrap()
    }

    /// Waits until somebody has written under a term above this one.
    async fn led_above(&self, term: i64) -> i64 {
        let led = timeout(PATIENCE, async {
            while self.newest() <= term {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        });
        led.await.expect("somebody leads");
        self.newest()
    }

    /// The promise: terms never go down, so that writes of two leaders are never mixed; and every leader wrote.
    fn check(&self, leaders: usize) {
        let terms = self.terms();
        assert!(terms.is_sorted(), "a write of an older leader was accepted after a newer one's");
        let mut different = terms.clone();
        different.dedup();
        assert!(different.len() >= leaders, "{} of {leaders} leaders wrote", different.len());
    }
}

/// Not a test: what a leader does, in a process of its own, until it is told to end or its write is refused.
#[test]
#[ignore = "the command of a leader; the other tests start it"]
fn leader_work() {
    let Some(path) = std::env::var_os(LEDGER) else { return };
    let mut ledger = Ledger::open(Path::new(&path));
    let resource = ResourceName::new(&std::env::var("LEASEHOLD_RESOURCE").unwrap()).unwrap();
    let term: u64 = std::env::var("LEASEHOLD_FENCING_TOKEN").unwrap().parse().unwrap();
    let grant = Grant::exclusive(resource.clone(), FencingToken::new(term).unwrap());
    let fence = Fence::of(&resource);
    while ledger.write(&fence, &grant) {}
}

/// A candidate under `elect`.
struct Candidate(Child);

impl Candidate {
    fn start(server: &TestServer, ledger: &Path) -> Self {
        let work = std::env::current_exe().unwrap();
        let mut elect = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        elect.args(["elect", "--ttl", "2s", ELECTION, "--"]).arg(work);
        elect.args(["--ignored", "--exact", "leader_work"]);
        elect.env("LEASEHOLD_SERVER", server.url()).env(LEDGER, ledger);
        elect.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        Self(elect.spawn().unwrap())
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.0.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn ended(mut self) {
        timeout(PATIENCE, self.0.wait()).await.expect("it ends").unwrap();
    }
}

/// Three candidates; the first leads, the others wait in order.
async fn three(server: &TestServer, path: &Path, ledger: &Ledger) -> Vec<Candidate> {
    let mut candidates = vec![Candidate::start(server, path)];
    ledger.led_above(0).await;
    for place in 1..3 {
        candidates.push(Candidate::start(server, path));
        server.until_waiters("election/jobs", place).await;
    }
    candidates
}

fn ledger(folder: &tempfile::TempDir) -> (PathBuf, Ledger) {
    let path = folder.path().join("ledger");
    let ledger = Ledger::create(&path);
    (path, ledger)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_never_mixes_the_writes_of_two_leaders() {
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let (path, ledger) = ledger(&folder);
    let mut candidates = three(&server, &path, &ledger).await;
    let mut gaps = Vec::new();
    for _ in 0..6 {
        let (term, leader) = (ledger.newest(), candidates.remove(0));
        let told = Instant::now();
        leader.signal(Signal::TERM);
        ledger.led_above(term).await;
        gaps.push(told.elapsed());
        leader.ended().await;
        candidates.push(Candidate::start(&server, &path));
        server.until_waiters("election/jobs", 2).await;
    }
    ledger.check(7);
    println!("from TERM to the first write of the next leader: {gaps:?}");
    hold_to(GAP, &gaps);
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_stopped_leaders_never_write_beside_the_next_one() {
    let (server, folder) = (TestServer::start().await, tempfile::tempdir().unwrap());
    let (path, ledger) = ledger(&folder);
    let candidates = three(&server, &path, &ledger).await;
    let (mut term, mut waiting) = (ledger.newest(), Vec::new());
    for (leader, signal) in candidates.into_iter().zip([Signal::KILL, Signal::STOP, Signal::KILL]) {
        waiting.push(Candidate::start(&server, &path));
        leader.signal(signal);
        let hurt = Instant::now();
        term = ledger.led_above(term).await;
        println!("after {signal:?} somebody else led within {:?}", hurt.elapsed());
        if signal == Signal::STOP {
            // It comes back, and finds its command ended.
            leader.signal(Signal::CONT);
            leader.ended().await;
        }
    }
    ledger.check(4);
}

#[test]
fn a_write_under_an_old_term_is_refused_so_that_the_check_can_fail() {
    let folder = tempfile::tempdir().unwrap();
    let (_, mut ledger) = ledger(&folder);
    let resource = ResourceName::new("election/jobs").unwrap();
    let fence = Fence::of(&resource);
    let of = |term| Grant::exclusive(resource.clone(), FencingToken::new(term).unwrap());
    assert!(ledger.write(&fence, &of(1)) && ledger.write(&fence, &of(2)));
    assert!(!ledger.write(&fence, &of(1)));
    assert_eq!((ledger.refused(1), ledger.refused(2)), (1, 0));
    ledger.check(2);
}
