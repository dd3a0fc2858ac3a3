//! A process that ends with this one, however this one ends.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use crate::failure::Failure;

/// A node or an engine that was asked to end does so within a fraction of this.
const ENDING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(20);

/// Killed when dropped. With util-linux on the machine, the system kills it as well when this program is killed.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a program that writes its output to a file.
    pub(super) fn start(
        program: &Path,
        args: &[impl AsRef<OsStr>],
        variables: &[(&str, &str)],
        log: PathBuf,
    ) -> Result<Self, Failure> {
        let failed = |error| Failure::Io { what: format!("cannot start {}", program.display()), error };
        let output = File::create(&log).map_err(failed)?;
        let mut command = with_death_signal(program);
        let command = command.args(args).envs(variables.iter().copied());
        let command = command.stdin(Stdio::null()).stdout(output.try_clone().map_err(failed)?).stderr(output);
        // A Ctrl-C is for this process, which ends the others in order.
        let child = command.process_group(0).spawn().map_err(failed)?;
        Ok(Self { child, log, status: None })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn log(&self) -> &Path {
        &self.log
    }

    /// What it has written until now.
    pub(super) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// How it ended, once it has.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            // A child that cannot be asked is gone.
            self.status = self.child.try_wait().unwrap_or_default();
        }
        self.status
    }

    /// Waits until its log has this line: the line.
    pub(super) async fn until_said(&mut self, mark: &str, give_up: Instant) -> Result<String, Failure> {
        loop {
            let said = self.said();
            if let Some(line) = said.lines().find(|line| line.contains(mark)) {
                return Ok(line.to_owned());
            }
            let last = said.lines().last().unwrap_or("it said nothing").to_owned();
            if let Some(status) = self.ended() {
                return Err(Failure::Failed(format!("a process ended at once ({status}): {last}")));
            }
            if Instant::now() > give_up {
                return Err(Failure::Failed(format!("a process was not ready in time: {last}")));
            }
            sleep(LOOK).await;
        }
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid.filter(|_| self.status.is_none()) {
            // Already gone is as good.
            let _ = kill_process(pid, signal);
        }
    }

    /// Waits for its end, which was asked for.
    pub(super) async fn until_ended(&mut self) {
        let give_up = Instant::now() + ENDING;
        while self.ended().is_none() && Instant::now() < give_up {
            sleep(LOOK).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.signal(Signal::KILL);
            let _: io::Result<ExitStatus> = self.child.wait();
        }
    }
}

/// The program under `setpriv`, which has the system end it with its parent; alone where there is no such tool.
fn with_death_signal(program: &Path) -> Command {
    let Some(setpriv) = find("setpriv") else { return Command::new(program) };
    let mut command = Command::new(setpriv);
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// A program on the PATH, or where Debian keeps servers.
pub(super) fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()))
}
