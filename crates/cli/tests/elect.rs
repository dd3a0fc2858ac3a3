//! `leasehold elect` as processes: a rolling restart, kills, a leader whose network is cut.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::process::Stdio;
use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold_tests::hold_to;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, timeout};

/// For what takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(2);

/// A candidate whose command says that it leads, in which term, and stays until it is told to go.
struct Candidate {
    elect: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Candidate {
    fn start(server: &TestServer, owner: &str) -> Self {
        let work = "trap 'exit 0' TERM; echo $LEASEHOLD_FENCING_TOKEN; while :; do sleep 0.02; done";
        Self::run(server, &["elect", "--ttl", "2s", "--owner", owner, "jobs", "--", "sh", "-c", work])
    }

    fn run(server: &TestServer, args: &[&str]) -> Self {
        let mut elect = Command::new(env!("CARGO_BIN_EXE_leasehold"));
        elect.args(args).env("LEASEHOLD_SERVER", server.url()).kill_on_drop(true);
        let mut elect =
            elect.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(elect.stdout.take().unwrap()).lines();
        Self { elect, lines }
    }

    /// The next line that it writes.
    async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("it speaks in time").unwrap();
        line.expect("it says something")
    }

    /// Waits until it leads; its term.
    async fn leads(&mut self) -> u64 {
        self.line().await.parse().unwrap()
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.elect.id().expect("it runs")).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    async fn code(&mut self) -> Option<i32> {
        timeout(PATIENCE, self.elect.wait()).await.expect("it ends in time").unwrap().code()
    }
}

async fn three(server: &TestServer) -> [Candidate; 3] {
    let mut candidates = Vec::new();
    for n in 0..3 {
        let mut candidate = Candidate::start(server, &format!("c{n}"));
        match n {
            0 => drop(candidate.leads().await),
            _ => server.until_waiters("election/jobs", n).await,
        }
        candidates.push(candidate);
    }
    candidates.try_into().unwrap_or_else(|_| panic!("three of them"))
}

/// Tells the leader to go; notes how long there is none; gives the next one's term.
async fn handed_over(
    leader: &mut Candidate,
    next: &mut Candidate,
    term: u64,
    gaps: &mut Vec<Duration>,
) -> u64 {
    // From the signal, so that draining, release and grant are all in it: the gap itself is shorter.
    let told = Instant::now();
    leader.signal(Signal::TERM);
    let next_term = next.leads().await;
    gaps.push(told.elapsed());
    assert_eq!(leader.code().await, Some(0), "it drained");
    assert!(next_term > term);
    next_term
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rolling_restart_in_order_hardly_leaves_a_gap() {
    let server = TestServer::start().await;
    let mut candidates = three(&server).await.into_iter().collect::<std::collections::VecDeque<_>>();
    let (mut gaps, mut term) = (Vec::new(), 1);
    let restarts = std::env::var("LEASEHOLD_RESTARTS").map_or(5, |text| text.parse().unwrap());
    for n in 3..3 + restarts {
        let mut leader = candidates.pop_front().unwrap();
        term = handed_over(&mut leader, &mut candidates[0], term, &mut gaps).await;
        candidates.push_back(Candidate::start(&server, &format!("c{n}")));
        server.until_waiters("election/jobs", 2).await;
    }
    // The next one's command has to be started in this time, too.
    println!("from TERM to the next leader: {gaps:?}");
    hold_to(Duration::from_millis(200), &gaps);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_leader_is_replaced_after_its_ttl() {
    let server = TestServer::start().await;
    let [first, mut second, mut third] = three(&server).await;
    first.signal(Signal::KILL);
    let killed = Instant::now();
    let term = second.leads().await;
    let mut gaps = vec![killed.elapsed()];
    second.signal(Signal::KILL);
    let killed = Instant::now();
    assert!(third.leads().await > term);
    gaps.push(killed.elapsed());
    hold_to(TTL + Duration::from_secs(1), &gaps);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_command_stops_when_it_cannot_be_sure() {
    let server = TestServer::start().await;
    let mut leader = Candidate::run(&server, &["elect", "--ttl", "3s", "--output", "json", "jobs"]);
    let line = leader.line().await;
    assert!(line.starts_with(r#"{"elected":true"#) && line.contains(r#""name":"jobs""#), "{line}");
    let successor = tokio::spawn(server.direct_client().acquire("election/jobs").into_future());
    server.until_waiters("election/jobs", 1).await;
    server.cut();
    timeout(PATIENCE, successor).await.expect("a successor").unwrap().unwrap();
    let ended = leader.elect.try_wait().unwrap().expect("the leader is gone before the next one is elected");
    assert_eq!(ended.code(), Some(76));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_without_a_command_resigns_when_interrupted() {
    let server = TestServer::start().await;
    let mut leader = Candidate::run(&server, &["elect", "--output", "json", "jobs"]);
    leader.line().await;
    leader.signal(Signal::INT);
    assert_eq!(leader.code().await, Some(0));
    server.client().acquire("election/jobs").no_wait().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn observers_learn_the_leader_its_value_and_that_there_is_none() {
    let server = TestServer::start().await;
    let mut leader = Candidate::run(
        &server,
        &["elect", "--owner", "ada", "--value", "host:1", "--output", "json", "jobs"],
    );
    leader.line().await;
    let mut observer = Candidate::run(&server, &["observe", "--count", "2", "jobs"]);
    assert_eq!(observer.line().await, "leader  ada  token 1  host:1");
    leader.signal(Signal::TERM);
    assert_eq!(observer.line().await, "vacant");
    assert_eq!(observer.code().await, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_hands_over_to_whom_it_chooses() {
    let server = TestServer::start().await;
    let mut leader = Candidate::run(&server, &["elect", "--owner", "ada", "--output", "json", "jobs"]);
    let lease = leader.line().await.split("leaseId\":\"").nth(1).unwrap()[..36].to_owned();
    let mut others = Vec::new();
    for (n, owner) in ["ben", "cleo"].into_iter().enumerate() {
        others.push(Candidate::run(&server, &["elect", "--owner", owner, "--output", "json", "jobs"]));
        server.until_waiters("election/jobs", n + 1).await;
    }
    let mut resign = Candidate::run(&server, &["resign", "jobs", "--lease-id", &lease, "--to", "cleo"]);
    assert_eq!(resign.line().await, "resigned from jobs in favour of cleo");
    assert!(others[1].line().await.contains(r#""ownerId":"cleo""#));
    assert_eq!(leader.code().await, Some(76), "whoever led before is told at once");
    others[1].signal(Signal::TERM);
    assert!(others[0].line().await.contains(r#""ownerId":"ben""#), "the others keep their places");
}
