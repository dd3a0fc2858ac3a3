//! The server as a process.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

use leasehold_testbed::free_port;
use rustix::process::{Pid, Signal, kill_process};

use crate::{Http, Stopwatch, binary, until};

/// A start takes tens of milliseconds; on a busy machine with a large journal, seconds.
const READY: Duration = Duration::from_secs(30);

/// A running server.
pub struct Server {
    address: SocketAddr,
    data: PathBuf,
    log: PathBuf,
    process: Child,
}

impl Server {
    /// Starts a server on a data directory and waits until it is ready.
    ///
    /// # Panics
    /// With its log, if it does not become ready.
    pub fn start(data: &Path) -> Self {
        Self::start_on(free_port(), data)
    }

    /// The same on a port of the test's choice: after a crash, the one that clients know.
    pub fn start_on(port: u16, data: &Path) -> Self {
        let mut server = Self::spawn(port, data);
        server.wait_ready();
        server
    }

    /// Starts a server without waiting.
    pub fn spawn(port: u16, data: &Path) -> Self {
        Self::spawn_with(port, data, &[])
    }

    /// The same with further arguments of `serve`.
    pub fn spawn_with(port: u16, data: &Path, more: &[&str]) -> Self {
        let mut command = Command::new(binary::path());
        command.arg("serve");
        Self::spawn_by(command, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), data, more)
    }

    /// The same by another command that takes the arguments of `serve`, on another address.
    pub fn spawn_by(mut command: Command, address: SocketAddr, data: &Path, more: &[&str]) -> Self {
        let log = data.with_extension("log");
        let errors = File::options().create(true).append(true).open(&log).unwrap();
        let process = serving(&mut command, address, data)
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(errors)
            .spawn()
            .unwrap();
        Self { address, data: data.to_owned(), log, process }
    }

    /// Runs a server that is expected to refuse to start, and gives what it said.
    pub fn refused(data: &Path) -> Output {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()));
        let child = serving(Command::new(binary::path()).arg("serve"), address, data)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let mut child = child.unwrap();
        let pid = pid(&child);
        let watch = Stopwatch::start();
        until("a server that refuses to start", READY, || {
            if watch.elapsed() > READY / 2 {
                // It serves, which is the failure that the caller will see in the exit status.
                let _ = kill_process(pid, Signal::KILL);
            }
            child.try_wait().unwrap()
        });
        child.wait_with_output().unwrap()
    }

    /// Waits until it says that it is ready.
    pub fn wait_ready(&mut self) {
        let (mut http, watch) = (self.http(), Stopwatch::start());
        until("a server to be ready", 2 * READY, || {
            if let Some(status) = self.ended() {
                panic!("the server ended with {status}:\n{}", self.log());
            }
            assert!(watch.elapsed() < READY, "not ready after {READY:?}:\n{}", self.log());
            http.get("/readyz").ok().filter(|answer| answer.status == 200)
        });
    }

    /// A client of it.
    pub fn http(&self) -> Http {
        Http::at(self.address)
    }

    /// Its process, or that of the command that has started it.
    pub fn pid(&self) -> Pid {
        pid(&self.process)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }

    /// Its address as the command line wants it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Its data directory.
    pub fn data(&self) -> &Path {
        &self.data
    }

    /// What it has logged, over all its lives on this directory.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Runs the command line against it.
    pub fn cli(&self, args: &[&str]) -> Output {
        Command::new(binary::path()).args(args).env("LEASEHOLD_SERVER", self.url()).output().unwrap()
    }

    /// kill -9, at once.
    pub fn kill9(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill_process(pid(&self.process), signal).unwrap();
    }

    /// Stops it with SIGSTOP, and waits until none of its threads runs.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        until("a process to be stopped", READY, || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
            let is_stopped = |task: std::io::Result<std::fs::DirEntry>| {
                let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
                // The state comes after the name, which stands in brackets.
                stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
            };
            tasks.into_iter().all(is_stopped).then_some(())
        });
    }

    /// Lets a stopped process go on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Stops it in order and gives its exit status.
    pub fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.process.wait().unwrap()
    }

    /// Time on any processor, its own and the kernel's for it.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).unwrap();
        // The name, in brackets, may hold spaces; after it the fields are plain.
        let fields: Vec<&str> =
            stat.rsplit(')').next().expect("a process has a name").split_whitespace().collect();
        let ticks: u64 = fields[11..13].iter().map(|ticks| ticks.parse::<u64>().unwrap()).sum();
        Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has a VmRSS line");
        let kib: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
        kib * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already, and a panic here would hide the one that brought us here.
        let _ = self.process.kill();
        let _ = self.process.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("end of the server's log:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
    }
}

fn serving<'a>(command: &'a mut Command, address: SocketAddr, data: &Path) -> &'a mut Command {
    command.args(["--listen", &address.to_string(), "--data"]).arg(data)
}

fn pid(process: &Child) -> Pid {
    Pid::from_child(process)
}
