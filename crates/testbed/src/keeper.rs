//! The thread from which all engines are started.
//!
//! The kernel's parent-death signal is sent when the *thread* that started a child ends, not the process. A test
//! thread ends with its test; this thread ends with the process.

use std::io;
use std::process::{Child, Command};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

type Order = (Command, Sender<io::Result<Child>>);

static KEEPER: OnceLock<Sender<Order>> = OnceLock::new();

/// Starts the command on the keeper's thread.
pub(crate) fn spawn(command: Command) -> io::Result<Child> {
    let (answer, started) = channel();
    KEEPER.get_or_init(run).send((command, answer)).expect("the keeper lives as long as the process");
    started.recv().expect("the keeper answers every order")
}

fn run() -> Sender<Order> {
    let (orders, inbox) = channel::<Order>();
    let serve = move || {
        for (mut command, answer) in inbox {
            // The one who asked may have given up; then the child is dropped, and dies with the process.
            let _ = answer.send(command.spawn());
        }
    };
    thread::Builder::new().name("testbed-keeper".into()).spawn(serve).expect("one thread can be started");
    orders
}
