use std::io::{Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server that tells what arrives, and answers each request with itself.
struct Echo {
    address: SocketAddr,
    arrived: Receiver<String>,
}

fn echo() -> Echo {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, arrived) = channel();
    thread::spawn(move || {
        for mut socket in listener.incoming().map_while(Result::ok) {
            let tell = tell.clone();
            thread::spawn(move || {
                let mut room = [0; 1024];
                while let Ok(length @ 1..) = socket.read(&mut room) {
                    let _ = tell.send(String::from_utf8_lossy(&room[..length]).into_owned());
                    let _ = socket.write_all(&room[..length]);
                }
            });
        }
    });
    Echo { address, arrived }
}

struct Asker(TcpStream);

impl Asker {
    fn new(proxy: &Proxy) -> Self {
        let socket = TcpStream::connect(proxy.address()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn send(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap();
    }

    /// An empty answer is the end of the connection.
    fn answer(&mut self) -> String {
        let mut room = [0; 1024];
        let length = self.0.read(&mut room).unwrap_or(0);
        String::from_utf8_lossy(&room[..length]).into_owned()
    }
}

fn with(fault: Fault) -> (Proxy, Echo, Asker) {
    let echo = echo();
    let proxy = Proxy::before(echo.address);
    let mut asker = Asker::new(&proxy);
    asker.send("before");
    assert_eq!(asker.answer(), "before");
    assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "before");
    proxy.inject(fault);
    asker.send("x");
    (proxy, echo, asker)
}

#[test]
fn a_request_that_is_cut_before_never_arrives() {
    let (proxy, echo, mut asker) = with(Fault::CutBefore);
    assert_eq!(asker.answer(), "");
    let mut next = Asker::new(&proxy);
    next.send("next");
    assert_eq!(next.answer(), "next");
    assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "next", "x was not carried out");
    assert_eq!(proxy.done(), BTreeMap::from([("cut-before", 1)]));
}

#[test]
fn a_request_whose_answer_is_lost_was_carried_out() {
    for fault in [Fault::CutAfter, Fault::LoseAnswer, Fault::HalfClose] {
        let (_proxy, echo, mut asker) = with(fault);
        assert_eq!(asker.answer(), "", "{fault}");
        assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "x", "{fault}");
    }
}

#[test]
fn a_held_request_arrives_although_the_asker_has_gone() {
    let (proxy, echo, asker) = with(Fault::HoldRequest(Duration::from_secs(1)));
    assert!(proxy.await_done(1, PATIENCE));
    drop(asker);
    assert!(echo.arrived.try_recv().is_err(), "not yet");
    assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "x");
}

#[test]
fn a_held_answer_comes_late_and_a_duplicate_comes_twice() {
    let (_proxy, echo, mut asker) = with(Fault::HoldAnswer(Duration::from_millis(100)));
    assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "x");
    assert_eq!(asker.answer(), "x");
    let (_proxy, echo, _asker) = with(Fault::Duplicate);
    let mut both = String::new();
    while both.len() < 2 {
        both += &echo.arrived.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(both, "xx");
}

#[test]
fn what_is_swallowed_one_way_passes_the_other_way() {
    let (_proxy, echo, mut asker) = with(Fault::SwallowAnswers);
    asker.send("y");
    let mut arrived = String::new();
    while arrived != "xy" {
        arrived += &echo.arrived.recv_timeout(PATIENCE).unwrap();
    }
    let (proxy, echo, mut asker) = with(Fault::SwallowRequests);
    asker.send("y");
    assert!(proxy.await_done(1, PATIENCE));
    let mut next = Asker::new(&proxy);
    next.send("next");
    assert_eq!(echo.arrived.recv_timeout(PATIENCE).unwrap(), "next");
}

#[test]
fn a_frozen_proxy_keeps_what_was_sent_and_a_closed_one_refuses() {
    let echo = echo();
    let proxy = Proxy::before(echo.address);
    let mut asker = Asker::new(&proxy);
    asker.send("before");
    assert_eq!(asker.answer(), "before");
    proxy.set(Passage::Frozen);
    asker.send("frozen");
    proxy.set(Passage::Open);
    assert_eq!(asker.answer(), "frozen");
    proxy.set(Passage::Closed);
    assert_eq!(asker.answer(), "");
    assert_eq!(Asker::new(&proxy).answer(), "");
}

#[test]
fn the_same_seed_draws_the_same_faults() {
    let draw = |seed| {
        let faults = Fault::all(Duration::from_secs(3)).to_vec();
        let mut chance = Chance { seed: Seed::new(seed), one_in: 3, faults };
        (0..200).filter_map(|_| chance.draw()).collect::<Vec<_>>()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    assert!(
        Fault::all(Duration::ZERO).iter().all(|kind| draw(7).iter().any(|one| one.name() == kind.name()))
    );
}
