//! What only a real PostgreSQL shows: crashes, pauses, cut connections, locks, settings, roles, TLS.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod kit;

mod damage;
mod fencing;
mod outages;
mod passwords;
mod role;
mod settings;
mod tls;
