//! Whose turn it is when several tenants ask: each gets an equal share of every batch, in the order in which it asked.
//!
//! As long as one tenant asks for not too much, nothing is kept here and the loop takes what comes as it comes.
//! Beyond that, or as soon as a second tenant is seen, everything that waits is sorted by tenant, so that nobody is hidden
//! behind a flood, and one message of each is taken in turn.

use std::collections::VecDeque;

use leasehold_types::TenantName;

use crate::shared::Message;

/// Calls of one tenant in one batch on the embedded journal, while others ask: few enough that what another meets when it
/// comes is decided, written and answered in little more than the time of a durable write. With 64 a quiet tenant's usual
/// call took five times as long beside a flood as alone, with 16 twice; the flood does half as much meanwhile.
const SHARE: usize = 16;

/// The same on an engine, whose commit takes several times as long as deciding these: smaller batches would be no faster.
const SHARE_OF_ENGINE: usize = 64;

/// Calls of one tenant that are taken as they come before others are looked for. No message brings more: a lane cuts what
/// it sends.
pub(crate) const LONGEST: usize = 256;

/// So many batches after a second tenant was last seen everybody still keeps to its share, since it will ask again: then
/// it meets small batches, decided and committed in a moment. One that stays alone has the loop for itself soon enough.
const KEPT: usize = 128;

/// See the module.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Calls of one tenant in one batch, while others ask.
    share: usize,
    lines: VecDeque<Line>,
    /// The tenant whose calls were last taken as they came.
    last: Option<TenantName>,
    /// How many of those are in the batch that is being filled.
    passed: usize,
    /// Batches for which shares are still kept.
    kept: usize,
}

/// What waits of one tenant.
#[derive(Debug)]
struct Line {
    tenant: TenantName,
    messages: VecDeque<Message>,
    /// Calls in those messages.
    calls: usize,
    /// Calls that it may still have in the batch that is being filled.
    left: usize,
}

impl Line {
    /// Takes the next message, or as much of it as it may still have.
    fn take(&mut self, most: usize) -> Option<Message> {
        let mut message = self.messages.pop_front()?;
        if let Message::Batch(batch) = &mut message
            && let Some(rest) = batch.cut_after(most)
        {
            self.messages.push_front(Message::Batch(rest));
        }
        self.left = self.left.saturating_sub(message.calls());
        self.calls -= message.calls();
        Some(message)
    }
}

impl Turns {
    /// With shares for an engine, or for the embedded journal.
    pub(crate) fn new(is_engine: bool) -> Self {
        let share = if is_engine { SHARE_OF_ENGINE } else { SHARE };
        Self { share, lines: VecDeque::new(), last: None, passed: 0, kept: 0 }
    }

    /// Whether the next message may be taken as it comes, unless it is a change. While shares are kept nothing is: a
    /// message may hold several of them.
    pub(crate) fn is_in_order(&self) -> bool {
        self.kept == 0 && self.lines.is_empty() && self.passed < LONGEST
    }

    /// Whether this message is of another tenant than those before it in the batch: it is then put in line, as everything
    /// after it. Counts it otherwise, since it is taken.
    pub(crate) fn is_change(&mut self, message: &Message) -> bool {
        let Some(tenant) = message.tenant() else { return false };
        if self.last.as_ref() != Some(tenant) {
            if self.passed > 0 {
                return true;
            }
            self.last = Some(tenant.clone());
        }
        self.passed += message.calls();
        false
    }

    /// Puts a call in the line of its tenant; gives back what is no call, and is not shared out.
    pub(crate) fn put(&mut self, message: Message) -> Option<Message> {
        let Some(tenant) = message.tenant() else { return Some(message) };
        let line = match self.lines.iter().position(|line| line.tenant == *tenant) {
            Some(place) => &mut self.lines[place],
            None => self.open_line(tenant.clone()),
        };
        line.calls += message.calls();
        line.messages.push_back(message);
        None
    }

    fn open_line(&mut self, tenant: TenantName) -> &mut Line {
        let is_last = self.last.as_ref() == Some(&tenant);
        let had = if is_last { self.passed } else { 0 };
        if !self.lines.is_empty() || self.passed > had {
            self.kept = KEPT;
        }
        let left = self.share.saturating_sub(had);
        self.lines.push_back(Line { tenant, messages: VecDeque::new(), calls: 0, left });
        self.lines.back_mut().expect("it was just put there")
    }

    /// The next message, of the next tenant that has one and has not had its share of this batch.
    pub(crate) fn next(&mut self) -> Option<Message> {
        for _ in 0..self.lines.len() {
            let mut line = self.lines.pop_front()?;
            let most = if self.kept > 0 { line.left } else { usize::MAX };
            let message = if self.may_go_on(&line) { line.take(most) } else { None };
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
        self.lines.iter().any(|line| self.may_go_on(line))
    }

    /// The tenant that waits with the most, or the one that alone was seen of late.
    pub(crate) fn longest(&self) -> Option<&TenantName> {
        let longest = self.lines.iter().max_by_key(|line| line.calls);
        longest.map(|line| &line.tenant).or(self.last.as_ref())
    }

    /// A new batch begins: everybody has a full share again.
    pub(crate) fn begin_batch(&mut self) {
        self.passed = 0;
        self.kept = if self.lines.len() > 1 { KEPT } else { self.kept.saturating_sub(1) };
        self.lines.iter_mut().for_each(|line| line.left = self.share);
    }

    /// Everything that waits.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Message> {
        std::mem::take(&mut self.lines).into_iter().flat_map(|line| line.messages)
    }

    /// One that is alone need not share.
    fn may_go_on(&self, line: &Line) -> bool {
        line.left > 0 || self.kept == 0
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Call;
    use crate::cell::{Asker, Cell};
    use crate::mailbox::CallBatch;
    use crate::testing::release;

    fn message(tenant: &str) -> Message {
        let call = Call { tenant: TenantName::new(tenant).unwrap(), ..release(1) };
        Message::Call(call, Asker::new(Cell::new()), None)
    }

    fn frame(tenant: &str, calls: u32) -> Message {
        let call = |number| (number, Call { tenant: TenantName::new(tenant).unwrap(), ..release(1) }, None);
        Message::Batch(CallBatch::new((0..calls).map(call).collect(), Arc::default(), Arc::default()))
    }

    fn tenant(message: &Message) -> String {
        message.tenant().unwrap().to_string()
    }

    /// What the loop takes of a batch, when it may take everything.
    fn take_batch(turns: &mut Turns) -> Vec<String> {
        turns.begin_batch();
        std::iter::from_fn(|| turns.next()).map(|message| tenant(&message)).collect()
    }

    #[test]
    fn a_flood_waits_behind_itself() {
        let mut turns = Turns::new(false);
        assert!(!turns.is_change(&message("flood")) && !turns.is_change(&message("flood")));
        assert!(turns.is_change(&message("quiet")));
        for _ in 0..1_000 {
            assert!(turns.put(message("flood")).is_none());
        }
        assert!(turns.put(message("quiet")).is_none());
        assert_eq!(turns.longest(), message("flood").tenant());
        let first: Vec<_> = (0..3).map(|_| tenant(&turns.next().unwrap())).collect();
        assert_eq!(first, ["flood", "quiet", "flood"]);
        let rest = std::iter::from_fn(|| turns.next()).count();
        assert_eq!(2 + 2 + rest, SHARE, "no more than its share in one batch, with what passed before");
        assert_eq!(take_batch(&mut turns).len(), SHARE);
        assert_eq!(turns.drain().count(), 1_000 - (SHARE - 2) - SHARE);
        assert!(turns.next().is_none());
    }

    #[test]
    fn one_who_asks_for_little_is_taken_as_it_comes() {
        let mut turns = Turns::new(false);
        for batch in 0..3 {
            for tenant in ["first", "second"] {
                turns.begin_batch();
                assert!(turns.is_in_order() && !turns.is_change(&message(tenant)), "in batch {batch}");
            }
        }
    }

    #[test]
    fn beyond_a_share_others_are_looked_for() {
        let mut turns = Turns::new(false);
        for _ in 0..LONGEST {
            assert!(turns.is_in_order() && !turns.is_change(&message("flood")));
        }
        assert!(!turns.is_in_order());
        for _ in 0..1_000 {
            turns.put(message("flood"));
        }
        for _ in 0..500 {
            assert_eq!(tenant(&turns.next().unwrap()), "flood", "alone it need not share");
        }
        turns.put(message("quiet"));
        assert_eq!(tenant(&turns.next().unwrap()), "quiet");
        assert!(turns.next().is_none() && !turns.can_go_on(), "the flood has had its share");
    }

    #[test]
    fn shares_are_kept_while_another_may_ask_again() {
        let mut turns = Turns::new(false);
        for tenant in ["flood", "quiet"] {
            turns.put(message(tenant));
        }
        for _ in 0..(KEPT + 1) * SHARE {
            turns.put(message("flood"));
        }
        assert!(take_batch(&mut turns).contains(&"quiet".to_owned()));
        for _ in 1..KEPT {
            assert_eq!(take_batch(&mut turns).len(), SHARE);
        }
        assert!(take_batch(&mut turns).len() > SHARE, "nobody has asked for long");
    }

    #[test]
    fn a_long_message_is_cut_while_shares_are_kept() {
        let mut turns = Turns::new(false);
        for tenant in ["flood", "quiet"] {
            turns.put(message(tenant));
        }
        assert_eq!(take_batch(&mut turns), ["flood", "quiet"]);
        turns.begin_batch();
        assert!(!turns.is_in_order(), "although nobody is in line");
        turns.put(frame("flood", LONGEST as u32));
        assert_eq!(turns.next().map(|message| message.calls()), Some(SHARE));
        assert!(turns.next().is_none() && !turns.can_go_on());
        turns.begin_batch();
        assert_eq!(turns.next().map(|message| message.calls()), Some(SHARE), "the rest waits its turn");
    }

    #[test]
    fn what_is_no_call_is_not_held_up() {
        let mut turns = Turns::new(false);
        assert!(!turns.is_change(&Message::Shutdown));
        assert!(matches!(turns.put(Message::Shutdown), Some(Message::Shutdown)));
    }
}
