//! Short names for ids: `L1`, `S2`. Those of `Z…` are spread as far as can be after a restart (N4), others not at all.

use leasehold_types::{LeaseId, SessionId};

/// The id with this short name.
pub(crate) fn lease(name: &str) -> LeaseId {
    LeaseId::from_bytes(bytes(name))
}

/// The id with this short name.
pub(crate) fn session(name: &str) -> SessionId {
    SessionId::from_bytes(bytes(name))
}

/// The short name of a lease.
pub(crate) fn lease_name(id: LeaseId) -> String {
    name(id.as_bytes())
}

/// The short name of a session.
pub(crate) fn session_name(id: SessionId) -> String {
    name(id.as_bytes())
}

fn bytes(name: &str) -> [u8; 16] {
    let mut bytes = [0; 16];
    if name.starts_with('Z') {
        (bytes[0], bytes[1]) = (0xcf, 0x07);
    }
    let text = name.as_bytes();
    assert!(text.len() <= 12, "short names are short: {name}");
    bytes[4..4 + text.len()].copy_from_slice(text);
    bytes
}

fn name(bytes: &[u8; 16]) -> String {
    String::from_utf8_lossy(&bytes[4..]).trim_end_matches('\0').to_owned()
}
