//! One place of a network.

use std::fs::File;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::{find, keeper};

/// A process that sleeps in a network namespace of its own and so keeps it.
#[derive(Debug)]
pub(super) struct Holder(Child);

impl Holder {
    pub(super) fn start() -> Result<Self, String> {
        let mut command = Command::new(find::program("setpriv", "util-linux"));
        command.args(["--pdeathsig", "KILL", "--"]).arg(find::program("unshare", "util-linux"));
        command.args(["--net", "--", "sh", "-c", "echo ready; exec sleep infinity"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = keeper::spawn(command).map_err(|error| error.to_string())?;
        let mut said = String::new();
        let output = child.stdout.take().expect("the pipe was asked for");
        let read = std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut said);
        if read.is_ok() && said.trim() == "ready" {
            return Ok(Self(child));
        }
        let output = child.wait_with_output().map_err(|error| error.to_string())?;
        Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    pub(super) fn pid(&self) -> u32 {
        self.0.id()
    }

    pub(super) fn enter(&self, program: &str) -> Command {
        super::enter(self.pid(), program)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place with an address; programs and sockets can be made there.
#[derive(Debug)]
pub struct Place {
    holder: Holder,
    address: Ipv4Addr,
}

impl Place {
    pub(super) fn new(holder: Holder, address: Ipv4Addr) -> Self {
        Self { holder, address }
    }

    /// Its address, the same seen from everywhere.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A command that runs a program there; arguments are added by the caller.
    pub fn command(&self, program: &str) -> Command {
        self.holder.enter(program)
    }

    /// Moves the calling thread there: sockets that it makes from now on are of this place. It cannot come back.
    ///
    /// # Panics
    /// When the thread may not.
    pub fn move_in(&self) {
        let namespace = File::open(format!("/proc/{}/ns/net", self.holder.pid())).expect("the holder lives");
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
            .expect("whoever made the namespace may enter it");
    }

    /// Runs something there, on a thread of its own.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| {
            let there = scope.spawn(|| {
                self.move_in();
                work()
            });
            there.join().expect("what is run at a place does not panic")
        })
    }
}
