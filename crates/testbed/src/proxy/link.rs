//! One connection through the proxy: two threads, one a way.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use super::fault::Fault;
use super::shared::Shared;

/// The two sockets, and what the next answer is to suffer.
#[derive(Debug)]
pub(super) struct Link {
    near: TcpStream,
    far: TcpStream,
    lose_answer: AtomicBool,
    swallow_answers: AtomicBool,
    hold_answer_ms: AtomicU64,
}

impl Link {
    /// Carries bytes both ways on two threads until both ways have ended.
    pub(super) fn start(near: TcpStream, far: TcpStream, shared: &Arc<Shared>) {
        // Both are local sockets; without this small messages would wait for each other.
        let _ = (near.set_nodelay(true), far.set_nodelay(true));
        let link = Arc::new(Self {
            near,
            far,
            lose_answer: AtomicBool::new(false),
            swallow_answers: AtomicBool::new(false),
            hold_answer_ms: AtomicU64::new(0),
        });
        let Some(number) = shared.enter(&link) else { return link.cut() };
        let (asking, answering) = (Arc::clone(&link), link);
        let (one, other) = (Arc::clone(shared), Arc::clone(shared));
        spawn(move || asking.carry_requests(&one));
        spawn(move || {
            answering.carry_answers(&other);
            other.leave(number);
        });
    }

    /// Ends both connections at once.
    pub(super) fn cut(&self) {
        let _ = (self.near.shutdown(Shutdown::Both), self.far.shutdown(Shutdown::Both));
    }

    fn carry_requests(&self, shared: &Shared) {
        let mut room = vec![0; 64 << 10];
        while let Some(bytes) = read(&self.near, &mut room) {
            if !shared.may_pass() {
                break;
            }
            let sent = match shared.next_fault() {
                None => self.forward(bytes),
                Some(fault) => self.suffer(fault, bytes, shared),
            };
            if !sent {
                break;
            }
        }
        // What was asked may still be answered to somebody who only stopped asking.
        let _ = self.far.shutdown(Shutdown::Write);
    }

    /// False if nothing more is to be carried this way.
    fn suffer(&self, fault: Fault, bytes: &[u8], shared: &Shared) -> bool {
        match fault {
            Fault::CutBefore => return self.cut_here(),
            Fault::CutAfter => {
                // The answer may be here before the cut is made.
                self.lose_answer.store(true, Ordering::SeqCst);
                return self.forward(bytes) && self.cut_here();
            }
            Fault::LoseAnswer => self.lose_answer.store(true, Ordering::SeqCst),
            Fault::HoldRequest(time) => shared.wait(time),
            Fault::HoldAnswer(time) => self.hold_answer_ms.store(millis(time), Ordering::SeqCst),
            Fault::HalfClose => drop(self.near.shutdown(Shutdown::Write)),
            Fault::Duplicate => return self.forward(bytes) && self.forward(bytes),
            Fault::SwallowRequests => return self.swallow(),
            Fault::SwallowAnswers => self.swallow_answers.store(true, Ordering::SeqCst),
        }
        self.forward(bytes)
    }

    fn cut_here(&self) -> bool {
        self.cut();
        false
    }

    fn forward(&self, bytes: &[u8]) -> bool {
        (&self.far).write_all(bytes).is_ok()
    }

    /// Reads what is asked and forgets it.
    fn swallow(&self) -> bool {
        let mut room = vec![0; 64 << 10];
        while read(&self.near, &mut room).is_some() {}
        false
    }

    fn carry_answers(&self, shared: &Shared) {
        let mut room = vec![0; 64 << 10];
        let mut heard = true;
        while let Some(bytes) = read(&self.far, &mut room) {
            if !shared.may_pass() || self.lose_answer.load(Ordering::SeqCst) {
                return self.cut();
            }
            let hold = self.hold_answer_ms.swap(0, Ordering::SeqCst);
            if hold > 0 {
                shared.wait(Duration::from_millis(hold));
            }
            // Nobody may listen any more; what was asked is still carried out, so the far side is read to its end.
            heard &= !self.swallow_answers.load(Ordering::SeqCst);
            heard = heard && (&self.near).write_all(bytes).is_ok();
        }
        let _ = self.near.shutdown(Shutdown::Write);
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The next bytes, or `None` at the end.
fn read<'a>(mut from: &TcpStream, room: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        match from.read(room) {
            Ok(0) => return None,
            Ok(length) => return Some(&room[..length]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

pub(super) fn spawn(work: impl FnOnce() + Send + 'static) {
    thread::Builder::new().name("testbed-proxy".into()).spawn(work).expect("one more thread can be started");
}
