//! The guard of a running engine.

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::member::{Launch, Member, NOBODY};

/// Another process may take a free port before the engine does; then the engine is started again, on another.
const ATTEMPTS: usize = 4;

/// A running engine of one or more members. Dropping it ends them and removes their directory.
#[derive(Debug)]
pub struct Server {
    // Declared before `dir`: the processes end before their directory is removed.
    members: Vec<Mutex<Member>>,
    endpoints: Vec<String>,
    url: String,
    dir: TempDir,
}

/// What an engine's module knows before the processes run.
pub(crate) struct Plan {
    pub dir: TempDir,
    pub members: Vec<Launch>,
    pub endpoints: Vec<String>,
    pub url: String,
}

impl Server {
    /// The address of the engine, as a client of it would write it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// One address for each member.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }

    /// Where each member listens, without the rest of a URL.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        let address = |endpoint: &String| {
            let behind = endpoint.rsplit(['@', '/']).find(|part| part.contains(':'));
            behind.and_then(|text| text.parse().ok()).expect("an endpoint names an address and a port")
        };
        self.endpoints.iter().map(address).collect()
    }

    /// The directory with the engine's data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process id of a member, counted from 0.
    pub fn pid(&self, member: usize) -> u32 {
        self.member(member).pid()
    }

    /// The last lines that a member has printed.
    pub fn last_words(&self, member: usize) -> String {
        self.member(member).tail()
    }

    /// Ends a member with SIGKILL, and the processes behind its connections, as a crash of the machine would.
    pub fn kill(&self, member: usize) {
        self.member(member).kill();
    }

    /// Stops a member with SIGSTOP, and the processes behind its connections: it keeps them and answers nothing.
    pub fn pause(&self, member: usize) {
        self.member(member).pause();
    }

    /// Lets a paused member go on.
    pub fn resume(&self, member: usize) {
        self.member(member).resume();
    }

    /// Starts a member again on its old data and ports, and waits until it serves. Kills it first if it lives.
    pub fn restart(&self, member: usize) {
        let mut slot = self.member(member);
        slot.kill();
        *slot = Member::start(slot.hand_over()).wait().unwrap_or_else(|why| panic!("cannot restart: {why}"));
    }

    fn member(&self, member: usize) -> MutexGuard<'_, Member> {
        self.members[member].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts all members of a plan, and another plan when one of them does not come up.
pub(crate) fn start(engine: &str, plan: impl Fn() -> Plan) -> Server {
    let mut last = String::new();
    for _ in 0..ATTEMPTS {
        match run(plan()) {
            Ok(server) => return server,
            Err(why) => last = why,
        }
    }
    panic!("{engine} did not start, {ATTEMPTS} times: {last}")
}

fn run(plan: Plan) -> Result<Server, String> {
    let Plan { dir, members, endpoints, url } = plan;
    // All are started before one is waited for: members of a cluster are ready only together.
    let started: Vec<_> = members.into_iter().map(Member::start).collect();
    let mut running = Vec::new();
    for member in started {
        running.push(Mutex::new(member.wait()?));
    }
    Ok(Server { members: running, endpoints, url, dir })
}

/// A fresh directory which the engine's user may write.
pub(crate) fn directory(engine: &str) -> TempDir {
    let dir = tempfile::Builder::new().prefix(&format!("leasehold-{engine}-")).tempdir();
    let dir = dir.expect("the temporary directory can be written");
    fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).expect("the directory is ours");
    if geteuid().is_root() {
        chown(dir.path(), Some(NOBODY), Some(NOBODY)).expect("root may give a directory away");
    }
    dir
}

/// Runs a preparing command to its end.
pub(crate) fn prepare(mut command: Command) {
    let output = command.output().unwrap_or_else(|error| panic!("cannot run {command:?}: {error}"));
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("{command:?} failed, {}:\n{said}", output.status);
    }
}

/// A path as text, for command lines.
pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("temporary directories have UTF-8 names").to_owned()
}
