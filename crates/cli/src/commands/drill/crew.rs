//! A worker as the drill sees it: a process that is told what to do, stopped and woken.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use super::protected::Written;
use super::worker::{Order, PLAN, Told, WorkerPlan};
use crate::failure::Failure;

/// A worker that says nothing for this long has met something that the drill does not know. Ttls come on top.
const ANSWER: Duration = Duration::from_secs(60);

/// Variables that tell a worker how to prove who it is: the paths of files.
pub(super) type Environment = Vec<(&'static str, std::path::PathBuf)>;

/// A running worker; it is killed when this is dropped.
pub(super) struct Worker {
    name: &'static str,
    process: Child,
    orders: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
    patience: Duration,
}

impl Worker {
    /// Starts it. `ttl` is how long it may have to wait for the lock.
    pub(super) fn start(
        name: &'static str,
        plan: &WorkerPlan,
        access: &Environment,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let io = |error| Failure::Io { what: format!("cannot start {name}"), error };
        let mut process = Command::new(std::env::current_exe().map_err(io)?)
            .arg("drill-worker")
            .envs(access.iter().map(|(name, value)| (name, value)))
            .env(PLAN, serde_json::to_string(plan).expect("words and numbers"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(io)?;
        let piped = "it was started with pipes";
        let orders = process.stdin.take().expect(piped);
        let told = BufReader::new(process.stdout.take().expect(piped)).lines();
        Ok(Self { name, process, orders, told, patience: ANSWER + 2 * ttl })
    }

    /// Its process id.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.process.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// SIGSTOP, SIGCONT.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        let pid = self.pid().ok_or_else(|| self.ended())?;
        kill_process(pid, signal).map_err(|error| Failure::Io {
            what: format!("cannot signal {}", self.name),
            error: error.into(),
        })
    }

    /// Tells it to do something; a stopped one will find it when it wakes.
    pub(super) async fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let mut line = serde_json::to_vec(order).expect("words and numbers");
        line.push(b'\n');
        self.orders.write_all(&line).await.map_err(|_| self.ended())
    }

    /// The token of its grant, once it has one.
    pub(super) async fn acquired(&mut self) -> Result<u64, Failure> {
        match self.hear().await? {
            Told::Acquired { token } => Ok(token),
            other => Err(self.confused(&other)),
        }
    }

    /// Whether it holds the lock, as far as its guard knows.
    pub(super) async fn check(&mut self) -> Result<bool, Failure> {
        self.order(&Order::Check).await?;
        match self.hear().await? {
            Told::Checked { held } => Ok(held),
            other => Err(self.confused(&other)),
        }
    }

    /// What came of the write that it was told to make.
    pub(super) async fn wrote(&mut self) -> Result<Written, Failure> {
        match self.hear().await? {
            Told::Wrote(written) => Ok(written),
            other => Err(self.confused(&other)),
        }
    }

    /// Makes sure that the write it was told to make is still under way.
    pub(super) async fn has_no_answer(&mut self) -> Result<(), Failure> {
        match timeout(Duration::ZERO, self.told.next_line()).await {
            Err(_) => Ok(()),
            Ok(_) => {
                Err(Failure::Fence(format!("the late write of {} was answered before its time", self.name)))
            }
        }
    }

    /// Where a relay serves.
    pub(super) async fn serves(&mut self) -> Result<std::net::SocketAddr, Failure> {
        match self.hear().await? {
            Told::Serves { address } => Ok(address),
            other => Err(self.confused(&other)),
        }
    }

    /// Gives the lock back and ends.
    pub(super) async fn release(mut self) -> Result<(), Failure> {
        self.order(&Order::Release).await?;
        match self.hear().await? {
            Told::Released => Ok(()),
            other => Err(self.confused(&other)),
        }
    }

    async fn hear(&mut self) -> Result<Told, Failure> {
        let line = timeout(self.patience, self.told.next_line()).await;
        let line = line.map_err(|_| Failure::Fence(format!("{} has not answered", self.name)))?;
        let line = line.ok().flatten().ok_or_else(|| self.ended())?;
        match serde_json::from_str(&line) {
            Ok(Told::Failed { why }) => Err(Failure::Fence(format!("{}: {why}", self.name))),
            Ok(told) => Ok(told),
            Err(_) => Err(Failure::Fence(format!("{} said {line:?}", self.name))),
        }
    }

    fn confused(&self, told: &Told) -> Failure {
        Failure::Fence(format!("{} said {told:?} out of turn", self.name))
    }

    fn ended(&self) -> Failure {
        Failure::Fence(format!("{} has ended before its time", self.name))
    }
}
