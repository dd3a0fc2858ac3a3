//! Which other nodes a node knows of. Standbys knock at the active node every few seconds and tell it of themselves; it
//! answers with everybody it has heard of. Nothing of this is kept: a node that falls silent is forgotten.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use leasehold_api::{NodeSeen, Role};
use leasehold_core::codec::FIRST_FORMAT;
use leasehold_node::{Clock, Status};
use serde::{Deserialize, Serialize};

use crate::forwarding::{ABOUT, FORWARDED};

/// How often a standby knocks.
pub(crate) const KNOCK: Duration = Duration::from_secs(2);
/// After so long every standby that reaches the active node has knocked at it: three times.
pub(crate) const EVERYBODY_KNOCKED: Duration = Duration::from_secs(6);
/// A node that has not knocked for this long is not counted any more.
const FORGOTTEN: Duration = Duration::from_secs(10);
/// More nodes than anybody runs.
const MOST: usize = 64;

/// What a node tells of itself when it knocks or passes something on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct About {
    version: String,
    /// The newest format of facts that it knows.
    format: u8,
    slot: u64,
    lag: u64,
}

impl About {
    pub(crate) fn of(status: &Status) -> Self {
        let (format, slot, lag) = (status.known_format, status.tail.0, status.lag);
        Self { version: crate::VERSION.to_owned(), format, slot, lag }
    }

    /// As a header.
    pub(crate) fn header(&self) -> HeaderValue {
        let text = serde_json::to_string(self).expect("words and numbers can be written");
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("{}"))
    }

    fn from_headers(headers: &HeaderMap) -> Option<Self> {
        serde_json::from_slice(headers.get(&ABOUT)?.as_bytes()).ok()
    }
}

/// See the module.
pub(crate) struct Peers {
    clock: Arc<dyn Clock>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Those that knocked here: when last, by name and address, and what they told of themselves.
    heard: BTreeMap<(String, String), (Duration, Option<About>)>,
    /// Those that the active node told of, and when.
    told: Option<(Duration, Vec<NodeSeen>)>,
}

impl Peers {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, known: Mutex::default() }
    }

    /// Takes note of a node that passes a request on, or knocks. Its proof was checked, where there can be one.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        let Some(from) = headers.get(&FORWARDED).and_then(|value| value.to_str().ok()) else { return };
        let Some((name, address)) = from.rsplit_once(' ') else { return };
        let (now, peer) = (self.now(), (name.to_owned(), address.to_owned()));
        let mut known = self.known();
        known.heard.retain(|_, (at, _)| now.saturating_sub(*at) < FORGOTTEN);
        if known.heard.len() >= MOST && !known.heard.contains_key(&peer) {
            return;
        }
        known.heard.insert(peer, (now, About::from_headers(headers)));
    }

    /// Takes note of what the active node told.
    pub(crate) fn was_told(&self, nodes: Vec<NodeSeen>) {
        let now = self.now();
        self.known().told = Some((now, nodes));
    }

    /// Standbys that were heard of here, in the order of their names.
    pub(crate) fn heard(&self) -> Vec<NodeSeen> {
        let now = self.now();
        let known = self.known();
        let ages = known.heard.iter().map(|(peer, (at, about))| (peer, now.saturating_sub(*at), about));
        let fresh = ages.filter(|(_, age, _)| *age < FORGOTTEN);
        fresh.map(|((name, address), age, about)| seen(name, address, age, about.as_ref())).collect()
    }

    /// What the active node told last of everybody, unless that is too long ago.
    pub(crate) fn told(&self) -> Vec<NodeSeen> {
        let now = self.now();
        let known = self.known();
        let Some((at, nodes)) = &known.told else { return Vec::new() };
        let age = now.saturating_sub(*at);
        let aged = |node: &NodeSeen| NodeSeen { last_seen_ms: node.last_seen_ms + ms(age), ..node.clone() };
        nodes.iter().map(aged).filter(|node| node.last_seen_ms < ms(FORGOTTEN)).collect()
    }

    /// The time that the others are heard by.
    pub(crate) fn now(&self) -> Duration {
        self.clock.read().monotonic
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A standby as the active node knows it. One that tells nothing of itself is of a version that knew the first format
/// alone.
fn seen(name: &str, address: &str, age: Duration, about: Option<&About>) -> NodeSeen {
    NodeSeen {
        node: name.to_owned(),
        role: Role::Standby,
        address: Some(address.to_owned()),
        version: about.map(|about| about.version.clone()),
        known_format: about.map_or(FIRST_FORMAT, |about| about.format),
        lag: about.map_or(0, |about| about.lag),
        last_seen_ms: ms(age),
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use leasehold_node::ManualClock;

    use super::*;

    fn knock(name: &str, about: Option<&About>) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let address = format!("http://{}", name.replace(' ', "-"));
        headers.insert(&FORWARDED, format!("{name} {address}").parse().unwrap());
        if let Some(about) = about {
            headers.insert(&ABOUT, about.header());
        }
        headers
    }

    #[test]
    fn who_knocks_is_known_and_who_falls_silent_is_forgotten() {
        let clock = Arc::new(ManualClock::new());
        let peers = Peers::new(Arc::clone(&clock) as Arc<dyn Clock>);
        let about = About { version: "9.1".into(), format: 9, slot: 7, lag: 3 };
        peers.hear(&knock("new", Some(&about)));
        clock.advance(Duration::from_secs(6));
        peers.hear(&knock("old one", None));
        let heard = peers.heard();
        let short: Vec<_> = heard.iter().map(|n| (n.node.as_str(), n.known_format, n.last_seen_ms)).collect();
        assert_eq!(short, [("new", 9, 6_000), ("old one", 1, 0)]);
        assert_eq!((heard[0].version.as_deref(), heard[0].lag), (Some("9.1"), 3));

        peers.was_told(heard);
        clock.advance(Duration::from_secs(5));
        let names = |nodes: Vec<NodeSeen>| nodes.into_iter().map(|node| node.node).collect::<Vec<_>>();
        assert_eq!(names(peers.heard()), ["old one"]);
        assert_eq!(names(peers.told()), ["old one"], "what was told grows old too");
    }
}
