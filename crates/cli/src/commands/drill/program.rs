//! The user's own program in a drill: started for it, stopped, woken, and judged by how it ends.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::failure::Failure;

/// A program that neither prints nor ends for this long is stopped where it is.
const FIRST_LINE: Duration = Duration::from_secs(5);
/// A program that does not end after this, once it was left alone, never will.
const END: Duration = Duration::from_secs(120);

/// A program under a lock, in a process group of its own, which is killed when this is dropped.
pub(super) struct Program {
    process: Child,
    group: Pid,
}

impl Program {
    /// Starts it by the shell, with the grant in its environment as `leasehold run` puts it there.
    pub(super) fn start(line: &str, worker: &str, resource: &str, token: u64) -> Result<Self, Failure> {
        let io = |error| Failure::Io { what: format!("cannot start `{line}`"), error };
        let mut command = shell(line);
        command
            .env("LEASEHOLD_RESOURCE", resource)
            .env("LEASEHOLD_FENCING_TOKEN", token.to_string())
            .env("LEASEHOLD_OWNER_ID", format!("drill {worker}"))
            .env("LEASEHOLD_DRILL", worker)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let process = command.spawn().map_err(io)?;
        let pid = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        Ok(Self { process, group: pid.expect("a process that was just started has an id") })
    }

    /// Completes when it has printed a line, or neither that nor ended for a while; `false` if its output has ended.
    pub(super) async fn first_line(&mut self) -> bool {
        let lines = self.process.stdout.take();
        let Some(mut lines) = lines.map(|stdout| BufReader::new(stdout).lines()) else { return false };
        let line = timeout(FIRST_LINE, lines.next_line()).await;
        // The pipes must not fill up.
        drain(Some(lines.into_inner()));
        !matches!(line, Ok(Ok(None)))
    }

    /// Whether there is still somebody to stop.
    pub(super) fn has_ended(&mut self) -> bool {
        self.process.try_wait().is_ok_and(|status| status.is_some())
    }

    /// To the whole group.
    pub(super) fn signal(&self, signal: Signal) -> Result<(), Failure> {
        kill_process_group(self.group, signal).map_err(|error| Failure::Io {
            what: "cannot signal the program: has it ended already".into(),
            error: error.into(),
        })
    }

    /// Its process id.
    pub(super) fn pid(&self) -> i32 {
        self.group.as_raw_nonzero().get()
    }

    /// How it ended: what it said last, unless it ended well.
    pub(super) async fn ended(mut self) -> Result<Result<(), String>, Failure> {
        drain(self.process.stdout.take());
        let said = tokio::spawn(last_line(self.process.stderr.take()));
        let status = timeout(END, self.process.wait()).await;
        let status = status.map_err(|_| Failure::Fence("the program does not end".into()))?;
        let status =
            status.map_err(|error| Failure::Io { what: "cannot wait for the program".into(), error })?;
        if status.success() {
            return Ok(Ok(()));
        }
        let said = said.await.ok().flatten().map_or_else(String::new, |line| format!(": {line}"));
        Ok(Err(format!("it ended with {status}{said}")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // An empty group is what we want.
        let _ = kill_process_group(self.group, Signal::KILL);
    }
}

/// A process that was there before the drill: it is woken again whatever happens.
pub(super) struct Running(Pid);

impl Running {
    /// Stops it.
    pub(super) fn stop(pid: i32) -> Result<Self, Failure> {
        let wrong = |why: &str| Failure::Usage(format!("--pid: {pid} {why}"));
        let process = Pid::from_raw(pid).filter(|_| pid > 1).ok_or_else(|| wrong("is no process id"))?;
        kill_process(process, Signal::STOP).map_err(|error| match error {
            rustix::io::Errno::PERM => wrong("belongs to somebody else"),
            _ => wrong("is not running"),
        })?;
        Ok(Self(process))
    }

    /// Wakes it.
    pub(super) fn wake(self) {}
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// Whether the user finds the data as it should be.
pub(super) async fn check(line: &str) -> Result<bool, Failure> {
    let io = |error| Failure::Io { what: format!("cannot start `{line}`"), error };
    let checked = timeout(END, shell(line).stdout(Stdio::null()).status()).await;
    let status = checked.map_err(|_| Failure::Fence("the check does not end".into()))?;
    Ok(status.map_err(io)?.success())
}

fn shell(line: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::null()).kill_on_drop(true);
    command
}

fn drain(from: Option<impl AsyncRead + Send + Unpin + 'static>) {
    if let Some(mut from) = from {
        tokio::spawn(async move { tokio::io::copy(&mut from, &mut tokio::io::sink()).await });
    }
}

async fn last_line(from: Option<impl AsyncRead + Unpin>) -> Option<String> {
    let mut lines = BufReader::new(from?).lines();
    let mut last = None;
    while let Ok(Some(line)) = lines.next_line().await {
        last = Some(line);
    }
    last
}
