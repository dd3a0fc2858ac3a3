//! Redis.

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::server::{Plan, directory, free_port, text};
use crate::setup::Setup;

pub(crate) fn launch(setup: &Setup) -> Plan {
    let (dir, port) = (directory("redis"), free_port());
    let (dir_text, port_text) = (text(dir.path()), port.to_string());
    let sync = if setup.fsync() { "always" } else { "no" };
    let ours = [("port", port_text.as_str()), ("bind", "127.0.0.1"), ("dir", &dir_text), ("save", "")];
    let all = ours.into_iter().chain([("appendonly", "yes"), ("appendfsync", sync)]).chain(setup.settings());
    let args = all.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]).collect();
    let program = find::program("redis-server", "redis-server");
    let member =
        Launch { program, args, ready: "Ready to accept connections", stop: Signal::KILL, leftover: None };
    let url = format!("redis://127.0.0.1:{port}/");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
