//! The keeper: leads the command's process group, is its parent, and ends it in time.

use std::io::Write as _;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixStream as StdStream};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitCode;

use rustix::process::{Pid, Signal};
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;
use tokio::sync::watch;

use super::Signals;
use super::link::{Limits, until};
use super::terminal::Terminal;
use crate::failure::Failure;

/// What `run` says on the keeper's command line.
pub(crate) struct KeepPlan {
    /// Where to find `run`.
    pub(crate) name: String,
    /// Whose terminal it was.
    pub(crate) group: i32,
    pub(crate) command: Vec<String>,
}

/// Keeps the command; the exit code is the command's own, or 128 and the number of the signal that killed it.
pub(crate) fn keep(plan: KeepPlan) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Io { what: "cannot start the runtime".into(), error })?;
    runtime.block_on(kept(plan)).map(ExitCode::from)
}

async fn kept(plan: KeepPlan) -> Result<u8, Failure> {
    let gone = |error| Failure::Io { what: "keep-child is started by run alone".into(), error };
    let address = SocketAddr::from_abstract_name(&plan.name).map_err(gone)?;
    let link = StdStream::connect_addr(&address).map_err(gone)?;
    link.set_nonblocking(true).map_err(gone)?;
    let (mut from_run, mut to_run) = UnixStream::from_std(link).map_err(gone)?.into_split();
    // Signals to the group are for the command; the keeper only has to outlive them.
    let mut signals = Signals::new()?;
    let Ok(first) = Limits::read(&mut from_run).await else { return Ok(1) };
    let mut command = tokio::process::Command::new(&plan.command[0]);
    let mut child = match command.args(&plan.command[1..]).spawn() {
        Ok(child) => child,
        Err(error) => {
            let told = format!("{}: {error}", plan.command[0]);
            drop(to_run.write_all(told.as_bytes()).await);
            Terminal::give_back(plan.group);
            return Ok(1);
        }
    };
    let (newest, limits) = watch::channel(first);
    let listening = tokio::spawn(listen(from_run, newest));
    let ended = loop {
        tokio::select! {
            ended = child.wait() => break ended,
            _ = signals.next() => {}
            () = enforce(limits.clone(), plan.group) => {}
        }
    };
    listening.abort();
    Terminal::give_back(plan.group);
    let status = ended.map_err(|error| Failure::Io { what: "cannot wait for the command".into(), error })?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    // Exiting goes past buffers that nobody filled.
    drop(std::io::stdout().flush());
    Ok(u8::try_from(code).unwrap_or(1))
}

/// Takes what `run` says; its end is the end of everything here.
async fn listen(mut from_run: OwnedReadHalf, newest: watch::Sender<Limits>) {
    while let Ok(limits) = Limits::read(&mut from_run).await {
        newest.send_replace(limits);
    }
    kill_all();
}

/// Asks the command to end when its time has come, and kills it a margin later. Never returns.
async fn enforce(mut limits: watch::Receiver<Limits>, terminal: i32) {
    let mut asked = false;
    loop {
        let Limits { term_ms, kill_ms } = *limits.borrow_and_update();
        tokio::select! {
            Ok(()) = limits.changed() => {}
            () = until(kill_ms) => {
                Terminal::give_back(terminal);
                kill_all();
            }
            () = until(term_ms), if !asked => {
                asked = true;
                let _ = rustix::process::kill_current_process_group(Signal::TERM);
            }
        }
    }
}

/// Kills the command, whatever it started in its group, and this process.
fn kill_all() {
    let _ = rustix::process::kill_current_process_group(Signal::KILL);
}

impl Terminal {
    /// Gives the terminal back to where it came from, if it is ours.
    fn give_back(group: i32) {
        if let Some(group) = Pid::from_raw(group) {
            Self::give_to(group);
        }
    }
}
