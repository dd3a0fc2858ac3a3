//! A TCP proxy that does to connections what networks do: by a script, or by chance from a seed.
//!
//! It sits between a node and its engine, a program and its fence, a client and its server. It knows no protocol: a
//! *request* is whatever one `read` of the asker's side gives, which for the protocols at hand is one message or one
//! pipelined bunch of them.
//!
//! ```
//! use std::time::Duration;
//! use leasehold_testbed::{Fault, Proxy, redis};
//!
//! let engine = redis();
//! let proxy = Proxy::before(engine.addresses()[0]);
//! let url = proxy.in_url(engine.url());          // give this one to the program under test
//! proxy.inject(Fault::LoseAnswer);               // its next request is carried out, and never answered
//! proxy.inject(Fault::HoldRequest(Duration::from_secs(3)));
//! # assert!(url.contains(&proxy.address().to_string()));
//! ```
//!
//! The same seed gives the same row of faults; which request each of them meets depends on the threads of the program
//! under test, as it does in a real network.

mod fault;
mod link;
mod shared;

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub use fault::Fault;
pub use shared::Passage;

use crate::Seed;
use fault::Chance;
use link::{Link, spawn};
use shared::Shared;

/// See the module. Dropped, it cuts its connections and listens no more.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Proxy {
    /// A proxy on a free port of 127.0.0.1, in front of this address.
    pub fn before(target: SocketAddr) -> Self {
        Self::on(TcpListener::bind(("127.0.0.1", 0)).expect("the loopback interface has a free port"), target)
    }

    /// A proxy on a listener of the caller's, such as one in a network namespace.
    pub fn on(listener: TcpListener, target: SocketAddr) -> Self {
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Arc::new(Shared::new(target));
        let accepting = Arc::clone(&shared);
        spawn(move || accept(&listener, &accepting));
        Self { address, shared }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A URL of what is behind it, leading through it.
    pub fn in_url(&self, url: &str) -> String {
        url.replace(&self.shared.target.to_string(), &self.address.to_string())
    }

    /// The next request suffers this; or, after others that were injected, the next after those.
    pub fn inject(&self, fault: Fault) {
        self.shared.inject(fault);
    }

    /// From now on one request in `one_in` suffers one of these, by chance from the seed.
    pub fn by_chance(&self, seed: Seed, one_in: u64, faults: Vec<Fault>) {
        assert!(one_in > 0, "one in none is no chance");
        self.shared.set_chance(Some(Chance { seed, one_in, faults }));
    }

    /// No further faults, injected ones included; what has begun goes on.
    pub fn calm(&self) {
        self.shared.set_chance(None);
    }

    /// Lets bytes pass, wait, or cuts all connections and refuses new ones.
    pub fn set(&self, passage: Passage) {
        self.shared.set_passage(passage);
    }

    /// How many faults were done, by kind.
    pub fn done(&self) -> BTreeMap<&'static str, u64> {
        self.shared.done()
    }

    /// Waits until so many faults were done in all; false if it takes longer than `most`.
    pub fn await_done(&self, count: u64, most: Duration) -> bool {
        self.shared.await_done(count, most)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.end();
    }
}

/// How often the listener looks whether the proxy still is: a dropped proxy gives its port back soon.
const LOOK: Duration = Duration::from_millis(5);

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    listener.set_nonblocking(true).expect("a listener can be told not to block");
    while !shared.is_ended() {
        match listener.accept() {
            Ok((near, _)) => connect(near, shared),
            Err(_) => shared.wait(LOOK),
        }
    }
}

fn connect(near: TcpStream, shared: &Arc<Shared>) {
    let shared = Arc::clone(shared);
    // Connecting may take long, and others want to be accepted meanwhile.
    spawn(move || {
        let blocking = near.set_nonblocking(false);
        if let (Ok(()), Ok(far)) = (blocking, TcpStream::connect(shared.target)) {
            Link::start(near, far, &shared);
        }
    });
}

#[cfg(test)]
mod tests;
