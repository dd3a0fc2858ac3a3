//! One connection to the engine: how it is made, driven and given up.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
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
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connector {
    pub(crate) fn new(config: PostgresConfig) -> Result<Self, InvalidConfig> {
        let tls = Tls::new(config.tls.as_ref())?;
        Ok(Self { config: Arc::new(config), tls })
    }

    pub(crate) fn name(&self) -> &str {
        &self.config.name
    }

    /// Connects and sets the session up.
    pub(crate) async fn connect(&self) -> Result<Connection, Trouble> {
        let within = self.config.statement_within;
        let connecting = self.config.driver.connect(self.tls.clone());
        // Several hosts are tried one after the other, each within the driver's own limit.
        let hosts = u32::try_from(self.config.driver.get_hosts().len().max(1)).unwrap_or(1);
        let limit = self.config.driver.get_connect_timeout().copied().unwrap_or(within) * hosts + within;
        let (client, mut connection) = timed(limit, connecting).await?;
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
        let connection = Connection { client, warnings, driver, within };
        connection.batch(sql::SESSION).await?;
        Ok(connection)
    }
}

impl Connection {
    pub(crate) async fn prepare(&self, statement: &str) -> Result<Statement, Trouble> {
        timed(self.within, self.client.prepare(statement)).await
    }

    /// Runs one autocommit statement. The rows come back only after the server has said that it is done with the
    /// whole of it, commit included; a warning on the way makes the outcome unknown.
    pub(crate) async fn run(
        &self,
        statement: &Statement,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Trouble> {
        let before = self.warnings.load(Ordering::Acquire);
        let rows = timed(self.within, self.client.query(statement, parameters)).await?;
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
        let count = timed(self.within, self.client.execute(text, parameters)).await?;
        if self.warnings.load(Ordering::Acquire) != before {
            return Err(Trouble::Unknown("the engine warned at the commit; see the log".to_owned()));
        }
        Ok(count)
    }

    /// Runs several statements as one implicit transaction.
    pub(crate) async fn batch(&self, statements: &str) -> Result<(), Trouble> {
        timed(self.within, self.client.batch_execute(statements)).await
    }
}

/// Waits so long and no longer. What was given up may still be done by the server: unknown, and never cancelled there.
async fn timed<T>(
    within: Duration,
    call: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(within, call).await {
        Ok(outcome) => outcome.map_err(|error| judge(&error)),
        Err(_) => Err(Trouble::Unknown(format!("no answer within {} ms", within.as_millis()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
