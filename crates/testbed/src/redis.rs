//! Redis.

use rustix::process::Signal;

use crate::find;
use crate::member::Launch;
use crate::port::free_port;
use crate::server::{Plan, directory, text};
use crate::setup::Setup;

pub(crate) fn launch(setup: &Setup) -> Plan {
    let (dir, port) = (directory("redis"), free_port());
    let (dir_text, port_text) = (text(dir.path()), port.to_string());
    let sync = if setup.fsync() { "always" } else { "no" };
    let place = match setup.tls() {
        None => vec![("port", port_text.as_str())],
        Some(files) => vec![
            ("port", "0"),
            ("tls-port", &port_text),
            ("tls-cert-file", &files.certificate),
            ("tls-key-file", &files.key),
            ("tls-ca-cert-file", &files.certificate),
            ("tls-auth-clients", "no"),
        ],
    };
    let ours = [("bind", "127.0.0.1"), ("dir", dir_text.as_str()), ("save", "")];
    let kept = [("appendonly", "yes"), ("appendfsync", sync)];
    let all = place.into_iter().chain(ours).chain(kept).chain(setup.settings());
    let args = all.flat_map(|(name, value)| [format!("--{name}"), value.to_owned()]).collect();
    let program = find::program("redis-server", "redis-server");
    let member =
        Launch { program, args, ready: "Ready to accept connections", stop: Signal::KILL, leftover: None };
    let scheme = if setup.tls().is_some() { "rediss" } else { "redis" };
    let url = format!("{scheme}://127.0.0.1:{port}/");
    Plan { dir, members: vec![member], endpoints: vec![url.clone()], url }
}
