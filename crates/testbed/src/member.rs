//! One process of an engine.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};

use crate::{family, find, keeper, memory};

/// An engine that is not ready by then is broken; a loaded machine takes some seconds.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Lines of output kept for the message of a failure.
const TAIL_LINES: usize = 40;

/// How to start one process, also again.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub program: PathBuf,
    pub args: Vec<String>,
    /// The engine prints this when it serves.
    pub ready: &'static str,
    /// Ends the engine at once and lets it remove what outlives a process (PostgreSQL's shared memory).
    pub stop: Signal,
    /// Where a killed engine has noted what it could not remove.
    pub leftover: Option<PathBuf>,
}

/// A running, or killed, process.
#[derive(Debug)]
pub(crate) struct Member {
    launch: Launch,
    child: Child,
    tail: Tail,
    /// Those that it had started when it was paused.
    paused: Vec<Pid>,
}

impl Member {
    /// Starts the process; [`Started::wait`] waits until it serves.
    pub(crate) fn start(launch: Launch) -> Started {
        let mut command = unprivileged(&launch.program, Some(launch.stop));
        command.args(&launch.args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = keeper::spawn(command)
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", launch.program.display()));
        let (said, ready) = channel();
        let tail = Tail::default();
        tail.follow(child.stdout.take(), launch.ready, said.clone());
        tail.follow(child.stderr.take(), launch.ready, said);
        Started { member: Self { launch, child, tail, paused: Vec::new() }, ready }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn tail(&self) -> String {
        self.tail.text()
    }

    /// How to start it again. What it left behind is its successor's from now on: PostgreSQL takes its own old shared
    /// memory away when it starts.
    pub(crate) fn hand_over(&mut self) -> Launch {
        let launch = self.launch.clone();
        self.launch.leftover = None;
        launch
    }

    /// Stops the process and those that it has started.
    pub(crate) fn pause(&mut self) {
        self.signal(Signal::STOP);
        if let Ok(None) = self.child.try_wait() {
            self.paused = family::stop(Pid::from_child(&self.child));
        }
    }

    /// Lets all of them go on.
    pub(crate) fn resume(&mut self) {
        family::wake(&mut self.paused);
        self.signal(Signal::CONT);
    }

    /// Sends a signal, unless the process has been reaped: then its id may be another's.
    fn signal(&mut self, signal: Signal) {
        if let Ok(None) = self.child.try_wait() {
            let pid = Pid::from_child(&self.child);
            kill_process(pid, signal).unwrap_or_else(|error| panic!("cannot signal {pid:?}: {error}"));
        }
    }

    /// Ends the process and those that it has started without warning them, and waits for their end.
    pub(crate) fn kill(&mut self) {
        self.pause();
        let _ = self.child.kill();
        let _ = self.child.wait();
        family::kill(&mut self.paused);
    }

    /// Ends the process the way that leaves nothing behind.
    fn stop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let pid = Pid::from_child(&self.child);
        family::wake(&mut self.paused);
        let _ = kill_process(pid, self.launch.stop);
        // A paused process takes no signal but KILL before it goes on.
        let _ = kill_process(pid, Signal::CONT);
        let _ = self.child.wait();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.stop();
        if let Some(note) = &self.launch.leftover {
            memory::remove(note);
        }
    }
}

/// A process that may not serve yet.
pub(crate) struct Started {
    member: Member,
    ready: Receiver<()>,
}

impl Started {
    /// Waits until the process serves; its last output if it does not.
    pub(crate) fn wait(self) -> Result<Member, String> {
        let verdict = match self.ready.recv_timeout(READY_WITHIN) {
            Ok(()) => return Ok(self.member),
            Err(RecvTimeoutError::Disconnected) => "it ended before it was ready",
            Err(RecvTimeoutError::Timeout) => "it was not ready in time",
        };
        Err(format!("{verdict}; its last words:\n{}", self.member.tail()))
    }
}

/// The last lines a process has printed.
#[derive(Debug, Clone, Default)]
struct Tail(Arc<Mutex<VecDeque<String>>>);

impl Tail {
    /// Reads a pipe to its end on a thread, so that the process never blocks on its output.
    fn follow(&self, pipe: Option<impl Read + Send + 'static>, ready: &'static str, said: Sender<()>) {
        let (tail, pipe) = (self.clone(), pipe.expect("the pipe was asked for"));
        let read = move || {
            let mut said = Some(said);
            for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                let line = String::from_utf8_lossy(&line).into_owned();
                if line.contains(ready) {
                    said.take().map(|said| said.send(()));
                }
                tail.push(line);
            }
        };
        thread::Builder::new().name("testbed-output".into()).spawn(read).expect("one thread can be started");
    }

    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == TAIL_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn text(&self) -> String {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// A command that dies with this process, if a signal is given, and that is not root: database servers refuse to be.
pub(crate) fn unprivileged(program: &Path, dies_by: Option<Signal>) -> Command {
    let mut command = Command::new(find::program("setpriv", "util-linux"));
    // Nobody may not be able to reach our own folder of tools, and what is there does not mind.
    if geteuid().is_root() && !program.starts_with(find::tools()) {
        let nobody = NOBODY.to_string();
        command.args(["--reuid", &nobody, "--regid", &nobody, "--clear-groups"]);
    }
    if let Some(signal) = dies_by {
        let name = if signal == Signal::QUIT { "QUIT" } else { "KILL" };
        command.args(["--pdeathsig", name]);
    }
    command.arg("--").arg(program);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ETCD_")) {
        command.env_remove(name);
    }
    command
}

/// The user that owns nothing, for engines of a test that runs as root.
pub(crate) const NOBODY: u32 = 65_534;
