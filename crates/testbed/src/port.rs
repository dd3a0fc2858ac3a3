//! Ports for servers.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::atomic::{AtomicU16, Ordering};

/// A port of 127.0.0.1 that nobody uses, below those that the system gives to outgoing connections: a server that starts
/// slowly, or again, must find it free.
pub fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    const FIRST: u16 = 20_000;
    const COUNT: u16 = 12_000;
    // Test programs that run at the same time begin at different places.
    let start = u16::try_from(std::process::id() % 400).expect("it is below 400") * 30;
    loop {
        let port = FIRST + (start + NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) % COUNT;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
}
