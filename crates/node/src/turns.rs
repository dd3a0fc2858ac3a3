//! Whose turn it is when several tenants ask: each gets an equal share of every batch, in the order in which it asked.
//!
//! With one tenant in sight nothing is kept here and the loop takes what comes as it comes. As soon as a second one is
//! seen, everything that waits is sorted by tenant, and one call of each is taken in turn; until nothing waits any more.

use std::collections::VecDeque;

use leasehold_types::TenantName;

use crate::shared::Message;

/// Calls of one tenant in one batch, while others wait: enough that a commit is worth its while, few enough that deciding
/// them takes no longer than the commit.
const SHARE: usize = 256;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: VecDeque<Line>,
    /// The tenant of the last call that was taken.
    last: Option<TenantName>,
}

/// What waits of one tenant.
#[derive(Debug)]
struct Line {
    tenant: TenantName,
    messages: VecDeque<Message>,
    /// Calls that it may still have in the batch that is being filled.
    left: usize,
}

impl Turns {
    /// Whether calls are shared out at present.
    pub(crate) fn is_sharing(&self) -> bool {
        !self.lines.is_empty()
    }

    /// Whether this message is of another tenant than the one before: it is then put in line, as everything after it.
    pub(crate) fn is_change(&mut self, message: &Message) -> bool {
        let Some(tenant) = message.tenant() else { return false };
        match &self.last {
            Some(last) if last == tenant => false,
            Some(_) => {
                self.last = Some(tenant.clone());
                true
            }
            None => {
                self.last = Some(tenant.clone());
                false
            }
        }
    }

    /// Puts a call in the line of its tenant; gives back what is no call, and is not shared out.
    pub(crate) fn put(&mut self, message: Message) -> Option<Message> {
        let Some(tenant) = message.tenant() else { return Some(message) };
        match self.lines.iter_mut().find(|line| line.tenant == *tenant) {
            Some(line) => line.messages.push_back(message),
            None => {
                let tenant = tenant.clone();
                self.lines.push_back(Line { tenant, messages: VecDeque::from([message]), left: SHARE });
            }
        }
        None
    }

    /// The next call, of the next tenant that has one and has not had its share of this batch.
    pub(crate) fn next(&mut self) -> Option<Message> {
        for _ in 0..self.lines.len() {
            let mut line = self.lines.pop_front()?;
            let message = if line.left > 0 { line.messages.pop_front() } else { None };
            if let Some(message) = &message {
                line.left = line.left.saturating_sub(message.calls());
            }
            // One that has nothing more to ask leaves the round.
            if !line.messages.is_empty() {
                self.lines.push_back(line);
            }
            if message.is_some() {
                return message;
            }
        }
        None
    }

    /// Whether somebody waits who has not had its share of this batch.
    pub(crate) fn can_go_on(&self) -> bool {
        self.lines.iter().any(|line| line.left > 0)
    }

    /// The tenant that waits with the most, or the one that alone was seen of late.
    pub(crate) fn longest(&self) -> Option<&TenantName> {
        let longest = self.lines.iter().max_by_key(|line| line.messages.len());
        longest.map(|line| &line.tenant).or(self.last.as_ref())
    }

    /// A new batch begins: everybody has a full share again.
    pub(crate) fn begin_batch(&mut self) {
        self.lines.iter_mut().for_each(|line| line.left = SHARE);
    }

    /// Everything that waits.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Message> {
        std::mem::take(&mut self.lines).into_iter().flat_map(|line| line.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Call;
    use crate::cell::{Asker, Cell};
    use crate::testing::release;

    fn message(tenant: &str) -> Message {
        let call = Call { tenant: TenantName::new(tenant).unwrap(), ..release(1) };
        Message::Call(call, Asker::new(Cell::new()), None)
    }

    fn tenant(message: &Message) -> String {
        message.tenant().unwrap().to_string()
    }

    #[test]
    fn a_flood_waits_behind_itself() {
        let mut turns = Turns::default();
        assert!(!turns.is_change(&message("flood")) && !turns.is_change(&message("flood")));
        assert!(turns.is_change(&message("quiet")));
        for _ in 0..1_000 {
            assert!(turns.put(message("flood")).is_none());
        }
        assert!(turns.put(message("quiet")).is_none());
        let first: Vec<_> = (0..3).map(|_| tenant(&turns.next().unwrap())).collect();
        assert_eq!(first, ["flood", "quiet", "flood"]);
        let rest = std::iter::from_fn(|| turns.next()).count();
        assert_eq!(rest + 2, SHARE, "no more than its share in one batch");
        turns.begin_batch();
        assert_eq!(std::iter::from_fn(|| turns.next()).count(), SHARE);
        assert_eq!(turns.drain().count(), 1_000 - 2 * SHARE);
        assert!(!turns.is_sharing());
    }

    #[test]
    fn what_is_no_call_is_not_held_up() {
        let mut turns = Turns::default();
        assert!(!turns.is_change(&Message::Shutdown));
        assert!(matches!(turns.put(Message::Shutdown), Some(Message::Shutdown)));
    }
}
