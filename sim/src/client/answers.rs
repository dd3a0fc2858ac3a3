//! What a client makes of an answer, and of none.

use leasehold::deadline::{Phase, Stamp};
use leasehold_core::Reply;
use leasehold_history::{Answer, Record};
use leasehold_node::SubmitError;
use leasehold_types::Mode;

use super::{Pending, Stage};
use crate::clock::{MS, Micros};
use crate::event::{ClientIx, Event, OpId};
use crate::mistake::Mistake;
use crate::world::World;

/// After so many attempts without an answer a client gives up, and gives back what may have come of it.
const MOST_TRIES: u32 = 8;

impl World {
    /// An answer has come.
    pub(crate) fn client_told(
        &mut self,
        ix: ClientIx,
        op: OpId,
        epoch: Option<u64>,
        answer: Box<Result<Reply, SubmitError>>,
    ) {
        let client = &mut self.clients[ix];
        if client.is_dead {
            return;
        }
        if client.is_paused {
            client.waiting.push(Event::ToClient { client: ix, op, epoch, answer });
            return;
        }
        let is_main = client.main.as_ref().is_some_and(|main| main.op == op);
        let is_renewal = client.renewal.as_ref().is_some_and(|renewal| renewal.op == op);
        let is_old = epoch.is_some_and(|epoch| epoch < client.epoch);
        if !(is_main || is_renewal) || (is_old && self.mistake != Some(Mistake::OldEpochsTrusted)) {
            return;
        }
        client.epoch = client.epoch.max(epoch.unwrap_or(0));
        self.record(Record::Answer { at: self.now, op, epoch, answer: shown(&answer) });
        if is_main {
            let main = self.clients[ix].main.take().expect("it was just seen");
            self.main_told(ix, main, &answer);
        } else {
            let renewal = self.clients[ix].renewal.take().expect("it was just seen");
            self.renewal_told(ix, renewal.sent, &answer);
        }
        self.arm_client(ix);
    }

    fn main_told(&mut self, ix: ClientIx, main: Pending, answer: &Result<Reply, SubmitError>) {
        let stage = self.clients[ix].stage;
        match (stage, answer) {
            (_, Err(_)) => self.unanswered(ix, main),
            (Stage::Asking, Ok(Reply::Granted(grant))) => {
                let counted = self.counted_from(ix, main.sent);
                let trusted = self.trusted(grant.ttl_ms);
                let Some(wanted) = &mut self.clients[ix].wanted else { return };
                wanted.token = grant.token.get();
                wanted.permit = grant.permit.map(|permit| permit.0);
                wanted.life.confirm(counted, trusted);
                if grant.session_renewed
                    && let Some(session) = &mut self.clients[ix].session
                {
                    session.life.extend(counted, trusted);
                }
                self.granted(ix, main.sent, grant.session_renewed);
            }
            (Stage::Confirming, Ok(Reply::Renewed(renewed))) => {
                self.confirmed(ix, main.sent, renewed.ttl_ms);
                self.held(ix);
            }
            (Stage::Confirming, Ok(Reply::SessionRenewed(renewed))) => {
                self.confirmed(ix, main.sent, renewed.ttl_ms);
                self.held(ix);
            }
            (Stage::Confirming, Ok(_)) => self.give_back(ix),
            (Stage::Opening, Ok(Reply::SessionOpened(opened))) => {
                self.confirmed(ix, main.sent, opened.ttl_ms);
                self.rest(ix);
            }
            (Stage::Opening, Ok(_)) => {
                self.clients[ix].session = None;
                self.rest(ix);
            }
            // Refused because the session is gone: the next one is opened later.
            (Stage::Asking, Ok(Reply::Refused(_))) => {
                if self.clients[ix].wanted.as_ref().is_some_and(|wanted| wanted.in_session) {
                    (self.clients[ix].session, self.clients[ix].renewal) = (None, None);
                }
                self.rest(ix);
            }
            _ => self.rest(ix),
        }
    }

    fn renewal_told(&mut self, ix: ClientIx, sent: Stamp, answer: &Result<Reply, SubmitError>) {
        match answer {
            Ok(Reply::Renewed(renewed)) => self.confirmed(ix, sent, renewed.ttl_ms),
            Ok(Reply::SessionRenewed(renewed)) => self.confirmed(ix, sent, renewed.ttl_ms),
            // It has ended: whatever was believed is over.
            Ok(_) => {
                if self.clients[ix].stage == Stage::Held {
                    self.end_belief(ix);
                    self.rest(ix);
                }
                self.clients[ix].session = None;
            }
            Err(_) => self.missed_renewal(ix),
        }
    }

    /// A renewal, or an opening, was confirmed.
    fn confirmed(&mut self, ix: ClientIx, sent: Stamp, ttl_ms: u64) {
        let (counted, trusted) = (self.counted_from(ix, sent), self.trusted(ttl_ms));
        let client = &mut self.clients[ix];
        if let Some(session) = &mut client.session {
            session.life.confirm(counted, trusted);
        } else if let Some(wanted) = &mut client.wanted {
            wanted.life.confirm(counted, trusted);
        }
    }

    /// The lock is given. After a wait, unless its session was renewed with it, or a late answer it is confirmed once more
    /// before it counts (R7).
    fn granted(&mut self, ix: ClientIx, sent: Stamp, session_renewed: bool) {
        let now = self.clients[ix].clock.stamp(self.now);
        let dead_on_arrival = self.mistake == Some(Mistake::DeadOnArrival);
        let Some(wanted) = &mut self.clients[ix].wanted else { return };
        let ttl = wanted.life.ttl();
        let is_renewed = session_renewed && wanted.in_session;
        let must_confirm = now.since(sent) > ttl / 3 || (wanted.wait_ms > 0 && !is_renewed);
        if dead_on_arrival && must_confirm {
            wanted.life.confirm(now, ttl);
            return self.held(ix);
        }
        if must_confirm { self.confirm(ix) } else { self.held(ix) }
    }

    fn held(&mut self, ix: ClientIx) {
        if self.clients[ix].phase(self.now) >= Phase::Uncertain {
            return self.give_back(ix);
        }
        let hold = match self.long_lives {
            true => self.chance.within(5, 120_000),
            false => self.chance.within(1, 6_000) / self.chance.within(1, 60),
        };
        let write = self.chance.within(1, 300) * MS;
        let client = &mut self.clients[ix];
        client.stage = Stage::Held;
        if let Some(wanted) = &mut client.wanted {
            wanted.believed_from = Some(self.now);
            wanted.hold_until = self.now + hold * MS;
            // What is shared is not fenced here: its holders would only be woken for nothing.
            let writes = wanted.sharing.mode() == Mode::Exclusive;
            wanted.next_write = if writes { self.now + write } else { Micros::MAX };
        }
    }

    /// No answer, or one that says try elsewhere: the same again (K3), until patience ends.
    pub(super) fn unanswered(&mut self, ix: ClientIx, main: Pending) {
        self.clients[ix].node += 1;
        if main.tries < MOST_TRIES {
            return self.ask_again_later(ix, main);
        }
        match self.clients[ix].stage {
            Stage::Asking | Stage::Confirming => self.give_back(ix),
            Stage::Opening => {
                self.clients[ix].session = None;
                self.rest(ix);
            }
            _ => self.rest(ix),
        }
    }

    fn rest(&mut self, ix: ClientIx) {
        let pause = if self.chance.per_mille(100) { self.chance.below(400) } else { self.chance.below(12) };
        let client = &mut self.clients[ix];
        client.stage = Stage::Idle;
        client.wanted = None;
        (client.main, client.again) = (None, None);
        if client.session.is_none() {
            client.renewal = None;
        }
        client.idle_until = self.now + 1 + pause * MS;
    }
}

/// The answer as a history has it.
fn shown(answer: &Result<Reply, SubmitError>) -> Answer {
    match answer {
        Ok(Reply::Granted(grant)) => Answer::Granted { token: grant.token.get(), ttl_ms: grant.ttl_ms },
        Ok(Reply::NotGranted(_)) => Answer::NotGranted,
        Ok(Reply::Renewed(renewed)) => Answer::Renewed { ttl_ms: renewed.ttl_ms },
        Ok(Reply::Released { token, .. }) => Answer::Released { token: token.get() },
        Ok(Reply::SessionOpened(opened)) => Answer::Renewed { ttl_ms: opened.ttl_ms },
        Ok(Reply::SessionRenewed(renewed)) => Answer::Renewed { ttl_ms: renewed.ttl_ms },
        Ok(Reply::SessionClosed { .. }) => Answer::Closed,
        Ok(Reply::ForceReleased { audit_seq, .. }) => Answer::Forced { audit_seq: *audit_seq },
        Ok(Reply::Explained(explained)) => {
            Answer::Holders { tokens: explained.holders.iter().map(|holder| holder.token.get()).collect() }
        }
        Ok(_) => Answer::Refused,
        Err(SubmitError::OutcomeUnknown(_)) => Answer::Unknown,
        Err(_) => Answer::Failed,
    }
}
