//! The command's process group, as `run` sees it.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener as StdListener};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::time::Duration;

use leasehold_types::{LeaseId, ids};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tokio::io::AsyncReadExt as _;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

use super::link::Limits;
use super::terminal::Terminal;
use crate::failure::Failure;

/// A keeper is this program started again on the same machine: it says hello at once or never.
const HELLO: Duration = Duration::from_secs(10);
/// A keeper that was told to kill gets this long to hand the terminal back first.
const LAST_WORDS: Duration = Duration::from_millis(30);

/// A keeper with the command below it.
pub(super) struct Group {
    keeper: Child,
    /// The keeper leads the group, so this is both.
    pid: Pid,
    link: UnixStream,
    told: Option<Limits>,
    /// Resolves when the keeper has ended; it stays unreaped, so that its number cannot name another group.
    end: watch::Receiver<bool>,
}

impl Group {
    /// Starts the keeper. The command begins with the first [`Group::limit`].
    pub(super) async fn start(command: &[String], variables: &[(&str, String)]) -> Result<Self, Failure> {
        let io = |what: &str| {
            let what = format!("cannot start the command: {what}");
            move |error| Failure::Io { what: what.clone(), error }
        };
        let name = LeaseId::from_bytes(ids::random()).to_string();
        let address = SocketAddr::from_abstract_name(&name).map_err(io("address"))?;
        let listener = StdListener::bind_addr(&address).map_err(io("socket"))?;
        listener.set_nonblocking(true).map_err(io("socket"))?;
        let listener = UnixListener::from_std(listener).map_err(io("socket"))?;
        let own = std::env::current_exe().map_err(io("program"))?;
        let mut keeper = Command::new(own);
        keeper.arg("keep-child").arg(name).arg(Terminal::own_group().to_string()).arg("--").args(command);
        keeper.envs(variables.iter().map(|(name, value)| (name, value))).process_group(0);
        let keeper = keeper.spawn().map_err(io("keeper"))?;
        let pid =
            Pid::from_raw(i32::try_from(keeper.id()).expect("process ids are small")).expect("not zero");
        let (report, end) = watch::channel(false);
        std::thread::spawn(move || {
            wait_unreaped(pid);
            report.send_replace(true);
        });
        let link = tokio::time::timeout(HELLO, accept(&listener, pid)).await;
        let link = link.map_err(|_| Failure::Failed("the keeper of the command did not start".into()))?;
        Terminal::give_to(pid);
        Ok(Self { keeper, pid, link: link.map_err(io("keeper"))?, told: None, end })
    }

    /// Tells until when the command may live; the first time lets it begin.
    pub(super) async fn limit(&mut self, limits: Limits) {
        if self.told != Some(limits) {
            self.told = Some(limits);
            // A keeper that is gone is noticed by its end.
            drop(limits.write(&mut self.link).await);
        }
    }

    /// Passes a signal on to the whole group; the keeper lets it pass.
    pub(super) fn signal(&self, number: u8) {
        if let Some(signal) = Signal::from_named_raw(i32::from(number)) {
            self.send(signal);
        }
    }

    /// Kills the whole group and waits until the keeper is dead.
    pub(super) async fn kill(&mut self) {
        drop(Limits { term_ms: 0, kill_ms: 0 }.write(&mut self.link).await);
        drop(tokio::time::timeout(LAST_WORDS, self.keeper_ended()).await);
        self.send(Signal::KILL);
        self.keeper_ended().await;
    }

    /// Waits for the command's end; what it left behind in its group is killed. Cancel-safe.
    pub(super) async fn ended(&mut self) -> Result<u8, Failure> {
        self.keeper_ended().await;
        self.send(Signal::KILL);
        let status = self
            .keeper
            .wait()
            .map_err(|error| Failure::Io { what: "cannot wait for the command".into(), error })?;
        let mut words = String::new();
        // What it said is there already, or it said nothing.
        drop(tokio::time::timeout(LAST_WORDS, self.link.read_to_string(&mut words)).await);
        match status.code() {
            _ if !words.is_empty() => Err(Failure::Failed(words)),
            Some(code) => Ok(u8::try_from(code).unwrap_or(1)),
            None => Ok(128
                + u8::try_from(std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(9))
                    .unwrap_or(9)),
        }
    }

    async fn keeper_ended(&mut self) {
        // The thread that waits reports before it ends.
        drop(self.end.wait_for(|ended| *ended).await);
    }

    fn send(&self, signal: Signal) {
        // A group without members is what we want.
        let _ = rustix::process::kill_process_group(self.pid, signal);
    }
}

impl Drop for Group {
    /// Whatever ends `run` early ends the command as well.
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}

/// The connection of this process and no other: anybody on this machine could try the name.
async fn accept(listener: &UnixListener, pid: Pid) -> std::io::Result<UnixStream> {
    loop {
        let (stream, _) = listener.accept().await?;
        if stream.peer_cred()?.pid() == Some(pid.as_raw_nonzero().get()) {
            return Ok(stream);
        }
    }
}

fn wait_unreaped(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = rustix::process::waitid(WaitId::Pid(pid), options) {}
}
