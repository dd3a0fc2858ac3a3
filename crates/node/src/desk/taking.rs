//! What comes in: whose turn it is, and what becomes of each message.

use std::sync::Arc;

use leasehold_core::{Command, Ticket};
use leasehold_types::{LeaseId, TenantName};

use super::{Back, Desk, Waiting};
use crate::cell::Asker;
use crate::mailbox::{CallBatch, Mailbox, Place};
use crate::shared::Message;
use crate::{Call, StopReason, Trail};

impl Desk {
    pub(super) fn take_some(&mut self, first: Option<Message>, most: u64) {
        self.last_of_round = self.last_ticket + most;
        if let Some(rest) = self.rest.take() {
            self.take_batch(rest);
        }
        if let Some(message) = first {
            self.hear(message);
        }
        while self.last_ticket < self.last_of_round && !self.is_full() {
            match self.next_message() {
                Some(message) => self.take(message),
                None => break,
            }
        }
    }

    /// Takes a message at once, or puts it in line when it is not its turn.
    fn hear(&mut self, message: Message) {
        let waits = !self.turns.is_in_order() || self.turns.is_change(&message);
        let message = if waits { self.turns.put(message) } else { Some(message) };
        if let Some(message) = message {
            self.take(message);
        }
    }

    /// What is taken next: in the order of arrival with one tenant, in turn with several. Whoever has had a share is passed
    /// by everybody who waits behind it.
    fn next_message(&mut self) -> Option<Message> {
        if self.turns.is_in_order() {
            let message = self.inbox.try_recv().ok()?;
            if !self.turns.is_change(&message) {
                return Some(message);
            }
            let call = self.turns.put(message);
            debug_assert!(call.is_none(), "only a call changes the tenant");
        }
        while let Ok(message) = self.inbox.try_recv() {
            self.hear(message);
        }
        self.turns.next()
    }

    fn is_full(&self) -> bool {
        self.is_closing || self.state.backlog() >= self.most_backlog
    }

    pub(super) fn turn_away(&mut self, reason: &StopReason) {
        self.inbox.close();
        let mut waiting: Vec<_> = self.rest.take().map(Message::Batch).into_iter().collect();
        waiting.extend(self.turns.drain());
        waiting.extend(std::iter::from_fn(|| self.inbox.try_recv().ok()));
        for message in waiting {
            match message {
                Message::Call(_, asker, _) => drop(asker.answer(Err(reason.nothing_happened()))),
                Message::Batch(batch) => batch.turn_away(reason),
                Message::Withdraw(..) | Message::Forsake(..) | Message::GiveBack(..) | Message::Shutdown => {}
            }
        }
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Call(call, asker, trail) => self.take_call(call, asker, trail),
            Message::Batch(batch) => self.take_batch(batch),
            Message::Forsake(mailbox, place) => self.forsake(&mailbox, place),
            Message::Withdraw(tenant, waiter) => self.withdraw(tenant, waiter),
            Message::GiveBack(tenant, lease_id) => self.give_back(tenant, lease_id),
            Message::Shutdown => self.close(),
        }
    }

    fn take_call(&mut self, call: Call, asker: Asker, trail: Option<Arc<Trail>>) {
        self.look_again();
        self.shared.taken(1);
        let ticket = self.next_ticket();
        if !asker.take(ticket) {
            return;
        }
        self.decide(ticket, call, Back::Cell(asker), trail);
    }

    /// Takes a batch, or in half a round as much of it as is still to be taken.
    fn take_batch(&mut self, mut batch: CallBatch) {
        self.look_again();
        if self.was_half {
            let most =
                usize::try_from(self.last_of_round.saturating_sub(self.last_ticket)).unwrap_or(usize::MAX);
            self.rest = batch.cut_after(most.max(1));
        }
        self.shared.taken(batch.len());
        let (calls, mailbox) = batch.take();
        self.state.table().look_ahead(calls.iter().map(|(_, call, _)| &call.command));
        for (number, call, trail) in calls {
            let ticket = self.next_ticket();
            self.decide(ticket, call, Back::Lane(Place::new(Arc::clone(&mailbox), number)), trail);
        }
    }

    fn decide(&mut self, ticket: Ticket, call: Call, back: Back, trail: Option<Arc<Trail>>) {
        let given_back_to = call.is_given_back_unheard().then(|| call.tenant.clone());
        // The clock is read for those alone who want to know.
        let noted = trail.as_ref().map(|trail| (Arc::clone(trail), self.monotonic()));
        self.calls.insert(ticket, Waiting { back, given_back_to, trail });
        self.state.take(ticket, call, self.time.now());
        if let Some((trail, from)) = noted {
            trail.decided(from, self.monotonic());
        }
    }

    /// Withdraws the waiting acquires of a lane, in the order in which they came.
    fn forsake(&mut self, mailbox: &Arc<Mailbox>, number: Option<u32>) {
        let is_its =
            |waiting: &Waiting| matches!(&waiting.back, Back::Lane(place) if place.is_in(mailbox, number));
        let mut tickets: Vec<_> =
            self.calls.iter().filter(|(_, waiting)| is_its(waiting)).map(|(ticket, _)| *ticket).collect();
        tickets.sort_unstable();
        for ticket in tickets {
            // The ticket alone says who is meant.
            self.withdraw(TenantName::default_tenant(), ticket);
        }
    }

    /// The caller of a waiting acquire is gone. A grant that was decided for it meanwhile is given back when it is
    /// delivered to nobody.
    fn withdraw(&mut self, tenant: TenantName, waiter: Ticket) {
        let waiting = self.state.counts().waiters;
        self.take_own(tenant, Command::Withdraw { waiter });
        let was_waiting = self.state.counts().waiters < waiting;
        if was_waiting {
            self.calls.remove(&waiter);
        }
    }

    /// The grant met nobody, who could never ask for it again: it is given back at once (A6).
    pub(super) fn give_back(&mut self, tenant: TenantName, lease_id: LeaseId) {
        if !self.is_closing {
            self.shared.observer.given_back();
            self.take_own(tenant, Command::Release { lease_id });
        }
    }

    /// A command of the loop itself; its reply meets nobody.
    fn take_own(&mut self, tenant: TenantName, command: Command) {
        let ticket = self.next_ticket();
        self.state.take(ticket, Call { tenant, identity: None, key: None, command }, self.time.now());
    }

    fn next_ticket(&mut self) -> Ticket {
        self.last_ticket += 1;
        Ticket(self.last_ticket)
    }
}
