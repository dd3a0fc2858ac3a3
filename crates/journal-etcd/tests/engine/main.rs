//! What only a real etcd shows: crashes, pauses, lost members, cut connections, damage, TLS, users.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod kit;

mod damage;
mod fencing;
mod outages;
mod tls;
mod users;
