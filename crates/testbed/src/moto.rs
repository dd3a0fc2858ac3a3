//! moto, which answers as S3 and DynamoDB do. A stand-in: it shows that requests are understood, not that conditional
//! writes are atomic under a race.

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::port::free_port;
use crate::server::{Plan, directory};

pub(crate) fn launch() -> Plan {
    let (dir, port) = (directory("moto"), free_port());
    let args = ["-H", "127.0.0.1", "-p", &port.to_string()].map(str::to_owned).into();
    let program = find::tool("python/bin/moto_server");
    let member = Launch { program, args, ready: "Running on", stop: Signal::KILL, leftover: None };
    let url = format!("http://127.0.0.1:{port}");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
