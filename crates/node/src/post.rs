//! Answers on their way to lanes: gathered for one delivery, so that each lane is woken once.

use std::sync::Arc;

use leasehold_core::Reply;
use leasehold_types::{LeaseId, TenantName};

use crate::Durable;
use crate::mailbox::{Letter, Mailbox, Place};

/// See the module.
#[derive(Default)]
pub(crate) struct Post {
    /// Letters to `to`, not put there yet.
    letters: Vec<Letter>,
    to: Option<Arc<Mailbox>>,
    /// Mailboxes with letters whose lanes were not woken yet.
    put: Vec<Arc<Mailbox>>,
    /// Lanes that were woken last.
    woken: usize,
    /// Whose leases are given back if the letters of this run meet nobody.
    unheard: Vec<(TenantName, LeaseId)>,
    given_back: Vec<(TenantName, LeaseId)>,
}

impl Post {
    /// Adds an answer; `given_back_to` is told of when a grant meets nobody.
    pub(crate) fn add(&mut self, place: Place, durable: Durable<Reply>, given_back_to: Option<TenantName>) {
        let Some((mailbox, number)) = place.into_parts() else { return };
        if !self.to.as_ref().is_some_and(|to| Arc::ptr_eq(to, &mailbox)) {
            self.end_run();
            self.to = Some(mailbox);
        }
        if let (Some(tenant), Some(lease_id)) = (given_back_to, durable.granted_lease()) {
            self.unheard.push((tenant, lease_id));
        }
        self.letters.push((number, Ok(durable)));
    }

    /// Wakes every lane that has letters. Returns what is to be given back.
    pub(crate) fn send(&mut self) -> Vec<(TenantName, LeaseId)> {
        self.end_run();
        self.woken = self.put.len();
        for mailbox in self.put.drain(..) {
            mailbox.wake();
        }
        std::mem::take(&mut self.given_back)
    }

    /// How many lanes were woken by the last answers that were sent.
    pub(crate) fn woken(&self) -> usize {
        self.woken
    }

    fn end_run(&mut self) {
        let Some(mailbox) = self.to.take() else { return };
        mailbox.put(&mut self.letters);
        if self.letters.is_empty() {
            self.unheard.clear();
            self.put.push(mailbox);
        } else {
            self.letters.clear();
            self.given_back.append(&mut self.unheard);
        }
    }
}
