//! What only a real PostgreSQL shows: crashes, pauses, cut connections, locks, settings, roles, TLS.

mod kit;
mod proxy;

mod damage;
mod fencing;
mod outages;
mod settings;
mod tls;
