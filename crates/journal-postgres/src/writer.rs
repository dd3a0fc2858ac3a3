//! The one writer of an epoch.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use leasehold_journal::remote::{OwnTail, confirmed_by, lost, too_large};
use leasehold_journal::{Chained, Confirmation, Limits, Outcome, Room, Tail, Writer, chain};
use leasehold_types::{Epoch, Nonce};
use tokio::time::error::Elapsed;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};

use crate::claim::Claimed;
use crate::connection::{Connection, Connector, Trouble};
use crate::row::{self, number};
use crate::sql;

/// Its name in messages.
const ENGINE: &str = "PostgreSQL";

/// Who may append: the epoch and nonce of one claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Holder {
    pub(crate) epoch: Epoch,
    pub(crate) nonce: Nonce,
}

/// A connection with everything prepared, so that an append is one round trip.
pub(crate) struct WriteLink {
    connection: Connection,
    append: Statement,
    look: Statement,
    beat: Statement,
    /// The number of the last question.
    questions: AtomicI64,
}

impl WriteLink {
    /// The same on a new connection, if the engine still writes on the timeline that the claim is bound to. Else it has
    /// failed over, and only a new claim finds out what a commit survives there (J6) and notes it for the next one (J9):
    /// until then every outcome is unknown, which ends the epoch.
    async fn again(connection: Connection, bound_to: Option<i32>) -> Result<Self, Trouble> {
        if let Some(bound_to) = bound_to {
            let rows = connection.query(sql::TIMELINE, &[]).await?;
            if rows.first().is_none_or(|row| row.get::<_, i32>(0) != bound_to) {
                let text = "PostgreSQL has failed over: the journal has to be taken over anew";
                return Err(Trouble::Unknown(text.to_owned()));
            }
        }
        Self::over(connection).await
    }

    pub(crate) async fn over(connection: Connection) -> Result<Self, Trouble> {
        let append = connection.prepare(sql::APPEND).await?;
        let look = connection.prepare(sql::LOOK).await?;
        let beat = connection.prepare(sql::BEAT).await?;
        Ok(Self { connection, append, look, beat, questions: AtomicI64::new(0) })
    }

    /// Asks with a number of its own, as the last parameter, that the answer repeats in its first column. The protocol
    /// has no such numbers: were one message ever delivered twice on the way, every later question would be given the
    /// answer of the one before it, and a beat's yes would be taken for an append's.
    async fn ask(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Option<Row>, Trouble> {
        let number = self.questions.fetch_add(1, Ordering::Relaxed);
        let numbered: Vec<&(dyn ToSql + Sync)> = parameters.iter().copied().chain([&number as _]).collect();
        let mut rows = self.connection.run(statement, &numbered).await?;
        if rows.iter().any(|row| row.try_get::<_, i64>(0).ok() != Some(number)) {
            return Err(another_question());
        }
        Ok(rows.pop())
    }

    /// One attempt to commit a batch: whether the engine has done it. One of another epoch it does not.
    pub(crate) async fn append(&self, name: &str, nonce: Nonce, batch: &Chained) -> Result<bool, Trouble> {
        let (epoch, slot) = (number(batch.epoch().0), number(batch.slot.0));
        let (nonce, id): (&[u8], [u8; 16]) = (nonce.as_bytes(), batch.id.0.to_be_bytes());
        let (id, prev, hash, body): (&[u8], &[u8], &[u8], &[u8]) =
            (&id, &batch.prev_hash.0, &batch.hash().0, &batch.body);
        let done = self.ask(&self.append, &[&name, &epoch, &nonce, &slot, &id, &prev, &hash, &body]).await?;
        is_yes(done)
    }

    /// Tells why the engine has not appended: fenced, ours already, lost, or something else is in the way.
    async fn explain(
        &self,
        name: &str,
        holder: Holder,
        tail: &OwnTail,
        batch: &Chained,
    ) -> Result<Outcome, Trouble> {
        let found = self.ask(&self.look, &[&name, &number(batch.slot.0)]).await?;
        let Some(row) = found.filter(|row| is_held_by(row, holder)) else {
            return Ok(Outcome::Fenced);
        };
        if !tail.is_known(row::tail(&row, 6)) {
            return Ok(lost(ENGINE));
        }
        let Some(id) = row::batch_id(&row, 3) else {
            return Ok(Outcome::Conflict(None));
        };
        // The hash is over slot, epoch, id, body and all before: the same hash is the same batch in the same place,
        // be it from an earlier epoch.
        if row::hash(&row, 4) == Some(chain(batch, Epoch(row::counter(&row, 5)))) {
            // Seen is not durable: a primary that is cut off from its standbys shows what it has not replicated. A
            // committed write behind it in the same log is proof.
            return self.beat(name, holder, tail).await;
        }
        Ok(Outcome::Conflict(Some(id)))
    }

    /// A committed write. Beside a shorter record than ours it is no confirmation of anything.
    async fn beat(&self, name: &str, holder: Holder, tail: &OwnTail) -> Result<Outcome, Trouble> {
        let nonce: &[u8] = holder.nonce.as_bytes();
        let done = self.ask(&self.beat, &[&name, &number(holder.epoch.0), &nonce]).await?;
        let row = done.ok_or_else(another_question)?;
        match row.try_get::<_, Option<i64>>(1).map_err(|_| another_question())? {
            None => Ok(Outcome::Fenced),
            Some(_) if tail.is_known(row::tail(&row, 1)) => Ok(Outcome::Committed),
            Some(_) => Ok(lost(ENGINE)),
        }
    }
}

/// The second column of an answer that always has one row.
fn is_yes(answer: Option<Row>) -> Result<bool, Trouble> {
    let yes = answer.and_then(|row| row.try_get(1).ok());
    yes.ok_or_else(another_question)
}

fn another_question() -> Trouble {
    Trouble::Unknown("the engine answered another question".to_owned())
}

fn is_held_by(row: &Row, holder: Holder) -> bool {
    row::counter(row, 1) == holder.epoch.0 && row::fixed(row, 2) == Some(*holder.nonce.as_bytes())
}

pub(crate) struct PostgresWriter {
    connector: Connector,
    holder: Holder,
    /// See [`Claimed::bound_to`].
    bound_to: Option<i32>,
    /// A PostgreSQL that shows another tail has lost writes, such as by the promotion of an asynchronous standby.
    tail: OwnTail,
    /// None after an unknown outcome: the next attempt is made on a new connection, since the old one may be stuck.
    link: Option<WriteLink>,
}

impl PostgresWriter {
    pub(crate) fn new(connector: Connector, claimed: &Claimed, tail: Tail, link: WriteLink) -> Self {
        let Claimed { holder, bound_to, .. } = *claimed;
        Self { connector, holder, bound_to, tail: OwnTail::new(tail), link: Some(link) }
    }

    /// Takes the link out, or makes a new one. It is put back only after a known outcome.
    async fn link(&mut self) -> Result<WriteLink, Trouble> {
        match self.link.take() {
            Some(link) => Ok(link),
            None => WriteLink::again(self.connector.connect().await?, self.bound_to).await,
        }
    }

    /// Bounds a whole attempt, a new connection and its handshakes included: the caller has other things to do, and an
    /// unknown outcome is an answer too.
    fn attempt_within(&self) -> Duration {
        2 * self.connector.config.statement_within
    }

    async fn try_append(&mut self, batch: &Chained) -> Result<Outcome, Trouble> {
        let link = self.link().await?;
        self.tail.attempt(batch.tail());
        let name = self.connector.name();
        let outcome = match link.append(name, self.holder.nonce, batch).await {
            Ok(true) => Outcome::Committed,
            Ok(false) | Err(Trouble::Forbidden(_)) => {
                link.explain(name, self.holder, &self.tail, batch).await?
            }
            Err(trouble) => return Err(trouble),
        };
        self.link = Some(link);
        if outcome == Outcome::Committed {
            self.tail.committed(batch.tail());
        }
        Ok(outcome)
    }

    async fn try_beat(&mut self) -> Result<Outcome, Trouble> {
        let link = self.link().await?;
        let outcome = link.beat(self.connector.name(), self.holder, &self.tail).await?;
        self.link = Some(link);
        Ok(outcome)
    }
}

/// What came of an attempt: without an answer, nobody knows.
fn known(attempt: Result<Result<Outcome, Trouble>, Elapsed>) -> Outcome {
    match attempt {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(trouble)) => Outcome::Unknown(trouble.to_string()),
        Err(_) => Outcome::Unknown("the engine could not be reached in time".to_owned()),
    }
}

#[async_trait]
impl Writer for PostgresWriter {
    async fn append(&mut self, batch: &Chained) -> Outcome {
        if batch.body.len() > Limits::REMOTE.body_bytes {
            return too_large(&self.confirm().await);
        }
        known(tokio::time::timeout(self.attempt_within(), self.try_append(batch)).await)
    }

    /// A committed write: a deposed primary still answers SELECT.
    async fn confirm(&mut self) -> Confirmation {
        confirmed_by(self.beat().await)
    }

    async fn beat(&mut self) -> Outcome {
        known(tokio::time::timeout(self.attempt_within(), self.try_beat()).await)
    }

    fn limits(&self) -> Limits {
        Limits::REMOTE
    }

    fn room(&self) -> Room {
        Room::Plenty
    }
}
