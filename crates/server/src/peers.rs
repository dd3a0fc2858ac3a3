//! Which other nodes a node has heard of: standbys knock at the active node every few seconds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::HeaderMap;
use leasehold_node::Clock;

use crate::http::forward::FORWARDED;

/// How often a standby knocks.
pub(crate) const KNOCK: Duration = Duration::from_secs(2);
/// A node that has not knocked for this long is not counted any more.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// More nodes than anybody runs; the names come from requests, which anybody may write.
const MOST: usize = 64;

/// See the module.
pub(crate) struct Peers {
    clock: Arc<dyn Clock>,
    /// When each was heard of last, by name and address.
    heard: Mutex<BTreeMap<(String, String), Duration>>,
}

impl Peers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, heard: Mutex::default() }
    }

    /// Takes note of a node that passes a request on, or knocks.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        let Some(from) = headers.get(&FORWARDED).and_then(|value| value.to_str().ok()) else { return };
        let Some((name, address)) = from.rsplit_once(' ') else { return };
        let now = self.clock.read().monotonic;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.retain(|_, at| now.saturating_sub(*at) < FORGOTTEN);
        if heard.len() < MOST {
            heard.insert((name.to_owned(), address.to_owned()), now);
        }
    }

    /// Names and addresses.
    pub(crate) fn list(&self) -> Vec<(String, String)> {
        let now = self.clock.read().monotonic;
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = heard.iter().filter(|(_, at)| now.saturating_sub(**at) < FORGOTTEN);
        fresh.map(|(peer, _)| peer.clone()).collect()
    }
}
