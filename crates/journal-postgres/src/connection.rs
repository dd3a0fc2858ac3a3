//! One connection to the engine: how it is made, driven and given up.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use leasehold_journal::remote::{in_words, is_of_certificates};
use tokio::task::AbortHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{AsyncMessage, Client, Row, Statement};

use crate::config::{InvalidConfig, PostgresConfig};
use crate::sql;
use crate::tls::Tls;

/// Makes connections.
#[derive(Clone)]
pub(crate) struct Connector {
    pub(crate) config: Arc<PostgresConfig>,
    tls: Tls,
    turns: Turns,
}

/// Which host is tried first: shared by all connections of a journal.
///
/// A deposed primary that still runs takes connections and never ends a commit, since its standby is gone; a dead machine
/// does not even refuse them. A host that gives no answer in time is therefore tried last the next time. That is about speed
/// alone: what may be committed and believed is decided by the engine and the claim, whichever host it was.
#[derive(Clone, Default)]
struct Turns(Arc<AtomicUsize>);

/// The turn in which a connection was made.
#[derive(Clone)]
struct Turn {
    turns: Turns,
    number: usize,
}

impl Turns {
    fn present(&self) -> Turn {
        Turn { turns: self.clone(), number: self.0.load(Ordering::Acquire) }
    }
}

impl Turn {
    fn is_over(&self) -> bool {
        self.turns.0.load(Ordering::Acquire) != self.number
    }

    /// Ends this turn, if that has not been done.
    fn end(&self) {
        let next = self.number.wrapping_add(1);
        // Whoever was faster ended the same one.
        let _ = self.turns.0.compare_exchange(self.number, next, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Waits so long and no longer. What was given up may still be done by the server: unknown, and never cancelled there.
    /// The turn ends without an answer, also when the caller waits no longer.
    async fn timed<T>(
        &self,
        within: Duration,
        call: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Trouble> {
        let mut awaited = Awaited(Some(self));
        match tokio::time::timeout(within, call).await {
            Ok(outcome) => {
                awaited.0 = None;
                outcome.map_err(|error| judge(&error))
            }
            Err(_) => Err(Trouble::Unknown(format!("no answer within {} ms", within.as_millis()))),
        }
    }
}

/// Ends a turn when it is dropped, unless there was an answer.
struct Awaited<'a>(Option<&'a Turn>);

impl Drop for Awaited<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.0 {
            turn.end();
        }
    }
}

/// Why a statement did not give its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The server has certainly not done it: the row lock was not to be had in time.
    Locked,
    /// The server has certainly not done it: a constraint forbids it.
    Forbidden(String),
    /// The server has certainly not done it: this role may not, is not let in, or has no such database; or one end does not
    /// trust the other's certificate.
    NotAllowed(String),
    /// The server has certainly not done it: there is no such table.
    NoTable,
    /// Nobody knows whether it was done.
    Unknown(String),
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Locked => f.write_str("the head of the journal is locked by another connection"),
            Self::NoTable => f.write_str("nobody has founded this journal yet"),
            Self::Forbidden(text) | Self::NotAllowed(text) | Self::Unknown(text) => f.write_str(text),
        }
    }
}

/// The only place where the driver's errors are judged. What is not certainly refused is unknown.
pub(crate) fn judge(error: &tokio_postgres::Error) -> Trouble {
    let Some(refusal) = error.as_db_error() else {
        let words = in_words(error);
        return if is_ours_to_mend(&words) { Trouble::NotAllowed(words) } else { Trouble::Unknown(words) };
    };
    let text = format!("{} ({})", refusal.message(), refusal.code().code());
    match refusal.code() {
        code if *code == SqlState::LOCK_NOT_AVAILABLE => Trouble::Locked,
        code if *code == SqlState::UNDEFINED_TABLE || *code == SqlState::INVALID_SCHEMA_NAME => {
            Trouble::NoTable
        }
        code if is_refusal(code) => Trouble::NotAllowed(text),
        code if code.code().starts_with("23") => Trouble::Forbidden(text),
        _ => Trouble::Unknown(text),
    }
}

/// Whether the driver gave up by itself over a certificate, or a password that is missing or of the wrong kind. It tells that in
/// words alone.
fn is_ours_to_mend(words: &str) -> bool {
    is_of_certificates(words)
        || words.starts_with("invalid configuration")
        || words.starts_with("authentication error")
}

/// Whether the server does not let this role do it, or in at all. One that starts, stops or has no connection to spare (57P03,
/// 57P01, 53300) refuses too, but will not for long: those are unknown.
fn is_refusal(code: &SqlState) -> bool {
    let refusals = [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_CATALOG_NAME];
    // Class 28: a wrong password, an unknown role, no line in pg_hba.conf.
    refusals.contains(code) || code.code().starts_with("28")
}

/// A connection and the task that drives it; both end together.
pub(crate) struct Connection {
    client: Client,
    /// Counts warnings. One that arrives with a commit means that the commit was not what was asked for.
    warnings: Arc<AtomicU64>,
    driver: AbortHandle,
    within: Duration,
    turn: Turn,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connector {
    pub(crate) fn new(config: PostgresConfig) -> Result<Self, InvalidConfig> {
        let tls = Tls::new(config.tls.as_ref())?;
        Ok(Self { config: Arc::new(config), tls, turns: Turns::default() })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// Connects and sets the session up.
    pub(crate) async fn connect(&self) -> Result<Connection, Trouble> {
        let (within, turn) = (self.config.statement_within, self.turns.present());
        let drivers = &self.config.drivers;
        let config = &drivers[turn.number % drivers.len()];
        let connecting = config.connect(self.tls.clone());
        // Several hosts are tried one after the other, each within the driver's own limit.
        let hosts = u32::try_from(config.get_hosts().len().max(1)).unwrap_or(1);
        let limit = config.get_connect_timeout().copied().unwrap_or(within) * hosts + within;
        let (client, mut connection) = turn.timed(limit, connecting).await?;
        let warnings = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&warnings);
        let drive = async move {
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notice(notice) = message {
                    tracing::warn!(notice = notice.message(), "the engine warns");
                    counter.fetch_add(1, Ordering::AcqRel);
                }
            }
        };
        let driver = tokio::spawn(drive).abort_handle();
        let connection = Connection { client, warnings, driver, within, turn };
        connection.batch(sql::SESSION).await?;
        Ok(connection)
    }
}

impl Connection {
    /// Whether the host that was tried first for this connection is still tried first.
    pub(crate) fn is_of_present_turn(&self) -> bool {
        !self.turn.is_over()
    }

    pub(crate) async fn prepare(&self, statement: &str) -> Result<Statement, Trouble> {
        self.turn.timed(self.within, self.client.prepare(statement)).await
    }

    /// Runs one autocommit statement. The rows come back only after the server has said that it is done with the
    /// whole of it, commit included; a warning on the way makes the outcome unknown.
    pub(crate) async fn run(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let before = self.warnings.load(Ordering::Acquire);
        let rows = self.turn.timed(self.within, self.client.query(statement, parameters)).await?;
        if self.warnings.load(Ordering::Acquire) != before {
            return Err(Trouble::Unknown("the engine warned at the commit; see the log".to_owned()));
        }
        Ok(rows)
    }

    /// As [`Connection::run`], for statements that are not sent often.
    pub(crate) async fn query(
        &self,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let statement = self.prepare(text).await?;
        self.run(&statement, parameters).await
    }

    /// How many rows one statement has changed.
    pub(crate) async fn execute(
        &self,
        text: &str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, Trouble> {
        let before = self.warnings.load(Ordering::Acquire);
        let count = self.turn.timed(self.within, self.client.execute(text, parameters)).await?;
        if self.warnings.load(Ordering::Acquire) != before {
            return Err(Trouble::Unknown("the engine warned at the commit; see the log".to_owned()));
        }
        Ok(count)
    }

    /// Runs several statements as one implicit transaction.
    pub(crate) async fn batch(&self, statements: &str) -> Result<(), Trouble> {
        self.turn.timed(self.within, self.client.batch_execute(statements)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_that_gives_no_answer_is_tried_last_the_next_time() {
        let (turns, moment) = (Turns::default(), Duration::from_millis(1));
        let first = turns.present();
        assert_eq!(first.timed(moment, async { Ok(7) }).await, Ok(7));
        assert!(!first.is_over(), "an answer");
        let never = || std::future::pending::<Result<(), tokio_postgres::Error>>();
        assert!(matches!(first.timed(moment, never()).await, Err(Trouble::Unknown(_))));
        assert!(first.is_over() && !turns.present().is_over());
        first.end();
        assert_eq!(turns.present().number, 1, "several connections of one turn end it once");
        let second = turns.present();
        let caller = tokio::time::timeout(moment, second.timed(Duration::MAX, never())).await;
        assert!(caller.is_err() && second.is_over(), "the caller gave up first");
    }

    #[test]
    fn what_passes_by_itself_is_no_refusal() {
        for code in ["28P01", "28000", "3D000", "42501"] {
            assert!(is_refusal(&SqlState::from_code(code)), "{code}");
        }
        for code in ["57P03", "57P01", "57P02", "53300", "25006", "08006"] {
            assert!(!is_refusal(&SqlState::from_code(code)), "{code}");
        }
    }
}
