//! The processes that an engine has started: PostgreSQL has one behind every connection.

use std::fs;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// After a minute of looking a process does not do what it was told to.
const ATTEMPTS: usize = 12_000;

/// Stops these children of a process that is being stopped itself; gives those that were there.
pub(crate) fn stop(parent: Pid) -> Vec<Pid> {
    // Whoever stands still starts nobody, so these are all.
    until_stopped(parent);
    let children = children(parent);
    for child in &children {
        // One that has ended meanwhile answers nobody either.
        let _ = kill_process(*child, Signal::STOP);
    }
    children.iter().for_each(|child| until_stopped(*child));
    children
}

/// Lets them go on. Who is stopped keeps its id.
pub(crate) fn wake(children: &mut Vec<Pid>) {
    for child in children.drain(..) {
        let _ = kill_process(child, Signal::CONT);
    }
}

/// Ends them, who have lost their parent, and waits until they are gone: they might go on answering for a moment.
pub(crate) fn kill(children: &mut Vec<Pid>) {
    for child in children.iter() {
        let _ = kill_process(*child, Signal::KILL);
    }
    for child in children.drain(..) {
        until(child, "was killed", |state| matches!(state, 'Z' | 'X'));
    }
}

fn children(parent: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    ids.filter(|id| status(*id).is_some_and(|(_, of)| of == parent.as_raw_nonzero().get())).collect()
}

fn until_stopped(id: Pid) {
    until(id, "was told to stop", |state| matches!(state, 'T' | 'Z' | 'X'));
}

/// Waits until a process is in a state, or is gone.
fn until(id: Pid, told: &str, is_there: impl Fn(char) -> bool) {
    for _ in 0..ATTEMPTS {
        match status(id) {
            Some((state, _)) if !is_there(state) => thread::park_timeout(Duration::from_millis(5)),
            _ => return,
        }
    }
    panic!("process {} {told} and runs", id.as_raw_nonzero());
}

/// The state of a process and the id of its parent.
fn status(id: Pid) -> Option<(char, i32)> {
    let stat = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).ok()?;
    parse(&stat)
}

/// The name before them is in brackets and may have any characters.
fn parse(stat: &str) -> Option<(char, i32)> {
    let mut words = stat.rsplit_once(')')?.1.split_whitespace();
    Some((words.next()?.chars().next()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_is_no_state() {
        assert_eq!(parse("12 (a) R (b)) T 7 12 12 0"), Some(('T', 7)));
        assert_eq!(parse("12 (a"), None);
    }
}
