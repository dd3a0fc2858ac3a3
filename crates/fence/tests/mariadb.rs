//! The MariaDB fence, on a private server.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_fence::conformance::{Protected, race, run};
use leasehold_fence::sql::{Dialect, TableName, ddl};
use leasehold_fence::{Ask, Fence, Grant, mariadb};
use leasehold_testbed::{Server, Shared};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, IsolationLevel, Opts, Pool, TxOpts, Value};
use support::{Suite, failure, grant, name, seed, unknown, word};

static SERVER: Shared = Shared::new(leasehold_testbed::mariadb);
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A database of its own for each test, with the fence table.
struct Database {
    pool: Pool,
    _server: Arc<Server>,
}

impl Database {
    async fn new() -> Self {
        let server = SERVER.server();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut admin = Conn::new(Opts::from_url(server.url()).unwrap()).await.unwrap();
        admin.query_drop(format!("CREATE DATABASE test{n}")).await.unwrap();
        admin.disconnect().await.unwrap();
        let url = format!("{}/test{n}?pool_max=16", server.url().strip_suffix("/test").unwrap());
        let database = Self { pool: Pool::new(Opts::from_url(&url).unwrap()), _server: server };
        database.with(ddl::base(Dialect::Mariadb, None).unwrap().up()).await
    }

    async fn connect(&self) -> Conn {
        self.pool.get_conn().await.unwrap()
    }

    async fn with(self, statements: &[String]) -> Self {
        let mut conn = self.connect().await;
        for sql in statements {
            conn.query_drop(sql).await.unwrap_or_else(|error| panic!("{error}: {sql}"));
        }
        self
    }

    async fn with_table(self, sql: &str) -> Self {
        self.with(&[sql.to_owned()]).await
    }
}

struct FenceTable(Database);

impl Protected for FenceTable {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let mut conn = self.0.connect().await;
        let mut tx = conn.start_transaction(TxOpts::default()).await.map_err(unknown)?;
        match append(&mut tx, fence, ask, line).await {
            Ok(()) => tx.commit().await.map_err(unknown),
            Err(error) => {
                tx.rollback().await.map_err(unknown)?;
                Err(error)
            }
        }
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        mariadb::claim(&mut self.0.connect().await, fence, grant).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let sql = "SELECT line FROM `lines` WHERE fence = ? ORDER BY id";
        self.0.connect().await.exec(sql, (fence.name().as_str(),)).await.unwrap()
    }
}

async fn append(
    tx: &mut mysql_async::Transaction<'_>,
    fence: &Fence,
    ask: Option<&Ask>,
    line: &str,
) -> Suite {
    let mut admitted = mariadb::admit(tx, fence, ask).await.map_err(failure)?;
    let sql = "INSERT INTO `lines` (fence, line) VALUES (?, ?)";
    admitted.exec_drop(sql, (fence.name().as_str(), line)).await.map_err(unknown)
}

const LINES: &str =
    "CREATE TABLE `lines` (id BIGINT AUTO_INCREMENT PRIMARY KEY, fence VARCHAR(512), line TEXT)";

#[tokio::test]
async fn the_fence_table_keeps_the_contract() {
    run(&FenceTable(Database::new().await.with_table(LINES).await), seed()).await;
}

#[tokio::test]
async fn sixty_four_writers_race() {
    race(&FenceTable(Database::new().await.with_table(LINES).await), seed(), support::race_length()).await;
}

struct TokenColumns(Database);

const THING: &str = "INSERT IGNORE INTO things (name, `lines`) VALUES (?, '')";

fn key(thing: &str) -> (&'static str, Vec<(String, Value)>) {
    ("name = :name", vec![("name".to_owned(), thing.into())])
}

impl Protected for TokenColumns {
    fn keeps_permits(&self) -> bool {
        false
    }

    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let (mut conn, thing) = (self.0.connect().await, fence.name().as_str());
        conn.exec_drop(THING, (thing,)).await.map_err(unknown)?;
        let mut tx = conn.start_transaction(TxOpts::default()).await.map_err(unknown)?;
        let set = ("`lines` = CONCAT(`lines`, :line)", vec![("line".to_owned(), format!("{line}\n").into())]);
        match mariadb::update_row(&mut tx, fence, ask, &things(), key(thing), set).await {
            Ok(()) => tx.commit().await.map_err(unknown),
            Err(error) => {
                tx.rollback().await.map_err(unknown)?;
                Err(failure(error))
            }
        }
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        let (mut conn, thing) = (self.0.connect().await, fence.name().as_str());
        conn.exec_drop(THING, (thing,)).await.map_err(unknown)?;
        mariadb::claim_row(&mut conn, fence, grant, &things(), key(thing)).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let sql = "SELECT `lines` FROM things WHERE name = ?";
        let found = self.0.connect().await.exec_first(sql, (fence.name().as_str(),)).await.unwrap();
        let lines: String = found.unwrap_or_default();
        lines.lines().map(str::to_owned).collect()
    }
}

fn things() -> TableName {
    TableName::parse("things").unwrap()
}

async fn with_things(database: Database) -> Database {
    let sql = "CREATE TABLE things (name VARBINARY(512) PRIMARY KEY, `lines` TEXT NOT NULL) ENGINE = InnoDB";
    database.with_table(sql).await.with(ddl::token_columns(Dialect::Mariadb, &things()).up()).await
}

#[tokio::test]
async fn token_columns_keep_the_contract() {
    run(&TokenColumns(with_things(Database::new().await).await), seed()).await;
}

#[tokio::test]
async fn no_rows_updated_is_never_ambiguous() {
    let database = with_things(Database::new().await).await;
    let database = database.with_table("INSERT INTO things (name, `lines`) VALUES ('t', '')").await;
    let (fence, mut conn) = (Fence::of(&name("t")), database.connect().await);
    let step = grant("t", 5).step(std::num::NonZeroU64::MIN).unwrap();
    let (stale, other) = (grant("t", 4).write(), grant("other", 9).write());
    let cases = [
        ("t", Some(&step), "admitted"),
        ("t", Some(&step), "already_applied"),
        ("t", Some(&stale), "stale"),
        ("missing", Some(&step), "missing_row"),
        ("t", Some(&other), "wrong_scope"),
        ("t", None, "missing_token"),
    ];
    for (thing, ask, wanted) in cases {
        let mut tx = conn.start_transaction(TxOpts::default()).await.unwrap();
        let set = ("`lines` = ''", vec![]);
        let outcome = mariadb::update_row(&mut tx, &fence, ask, &things(), key(thing), set).await;
        assert_eq!(word(&outcome), wanted, "{thing} {ask:?}");
        tx.commit().await.unwrap();
    }
}

/// A consistent read shows the past, and must decide nothing.
#[tokio::test]
async fn a_transaction_that_began_before_the_successor_cannot_commit_a_stale_write() {
    let database = Database::new().await;
    let (fence, mut old, mut new) =
        (Fence::of(&name("r")), database.connect().await, database.connect().await);
    for (n, level) in [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead].into_iter().enumerate()
    {
        let token = 10 * n as u64;
        mariadb::claim(&mut new, &fence, &grant("r", token + 4)).await.unwrap();
        let mut tx = old.start_transaction(TxOpts::new().with_isolation_level(level).clone()).await.unwrap();
        let before: Vec<i64> = tx.query("SELECT token FROM leasehold_fence").await.unwrap();
        mariadb::claim(&mut new, &fence, &grant("r", token + 9)).await.unwrap();
        assert_eq!(before, [token as i64 + 4]);
        let outcome = mariadb::admit(&mut tx, &fence, &grant("r", token + 5).write()).await;
        assert_eq!(word(&outcome), "stale", "{level:?}");
        drop(outcome);
        tx.rollback().await.unwrap();
    }
}

/// The number of affected rows means another thing with CLIENT_FOUND_ROWS; the verdict must not.
#[tokio::test]
async fn the_meaning_of_affected_rows_does_not_matter() {
    let database = with_things(Database::new().await).await;
    let database = database.with_table("INSERT INTO things (name, `lines`) VALUES ('t', '')").await;
    let url = format!("{}&client_found_rows=true", url(&database).await);
    let mut conn = Conn::new(Opts::from_url(&url).unwrap()).await.unwrap();
    let fence = Fence::of(&name("t"));
    for (token, wanted) in [(5, "admitted"), (5, "admitted"), (4, "stale"), (6, "admitted"), (5, "stale")] {
        let mut tx = conn.start_transaction(TxOpts::default()).await.unwrap();
        let ask = grant("t", token).write();
        assert_eq!(word(&mariadb::admit(&mut tx, &fence, &ask).await), wanted, "{token}");
        let set = ("`lines` = ''", vec![]);
        let outcome = mariadb::update_row(&mut tx, &fence, &ask, &things(), key("t"), set).await;
        assert_eq!(word(&outcome), wanted, "{token}");
        tx.commit().await.unwrap();
    }
    conn.disconnect().await.unwrap();
}

async fn url(database: &Database) -> String {
    let mut conn = database.connect().await;
    let name: Option<String> = conn.query_first("SELECT DATABASE()").await.unwrap();
    let base = SERVER.server().url().strip_suffix("/test").unwrap().to_owned();
    format!("{base}/{}?pool_max=16", name.unwrap())
}

#[tokio::test]
async fn a_force_released_grant_is_shut_out_before_there_is_a_successor() {
    let database = Database::new().await;
    let (fence, mut conn) = (Fence::of(&name("r")), database.connect().await);
    mariadb::raise_past(&mut conn, &fence, &grant("r", 5)).await.unwrap();
    mariadb::raise_past(&mut conn, &fence, &grant("r", 3)).await.unwrap();
    assert_eq!(word(&mariadb::claim(&mut conn, &fence, &grant("r", 5)).await), "stale");
    assert_eq!(word(&mariadb::claim(&mut conn, &fence, &grant("r", 6)).await), "admitted");
}

/// No collation makes two names equal: neither case nor trailing space.
#[tokio::test]
async fn names_are_compared_byte_for_byte() {
    let database = Database::new().await;
    let mut conn = database.connect().await;
    for (n, thing) in ["r", "R", "r ", "ü", "u"].into_iter().enumerate() {
        let token = 9 - n as u64;
        assert_eq!(
            word(&mariadb::claim(&mut conn, &Fence::of(&name(thing)), &grant(thing, token)).await),
            "admitted"
        );
    }
}

#[tokio::test]
async fn the_ledger_tells_a_successor_what_was_begun() {
    use leasehold_fence::effects::Began;
    let database = Database::new().await.with(ddl::ledger(Dialect::Mariadb).up()).await;
    let (fence, mut conn) = (Fence::of(&name("r")), database.connect().await);
    let operation = leasehold_types::RequestKey::new("invoice 17").unwrap();
    let mut at = async |token: u64, ends: bool| {
        let mut tx = conn.start_transaction(TxOpts::default()).await.unwrap();
        let mut admitted = mariadb::admit(&mut tx, &fence, &grant("r", token).write()).await.ok()?;
        let began = match ends {
            true => mariadb::ledger::end(&mut admitted, &operation, "sent").await.map(|()| Began::Fresh),
            false => mariadb::ledger::begin(&mut admitted, &operation).await,
        };
        let began = began.ok()?;
        tx.commit().await.unwrap();
        Some(began)
    };
    let token = |number| leasehold_types::FencingToken::new(number).unwrap();
    assert_eq!(at(5, true).await, None, "what was not begun cannot end");
    assert_eq!(at(5, false).await, Some(Began::Fresh));
    assert_eq!(at(5, false).await, Some(Began::Again));
    assert_eq!(at(6, false).await, Some(Began::Unfinished { token: token(5) }));
    assert_eq!(at(5, true).await, None, "the old holder comes too late to end it");
    assert_eq!(at(6, true).await, Some(Began::Fresh));
    assert_eq!(at(7, false).await, Some(Began::Done { token: token(6), outcome: "sent".to_owned() }));
}

mod triggers {
    use leasehold_fence::mariadb::Refused;
    use leasehold_fence::sql::ddl::Guarded;

    use super::*;

    async fn guarded(guarded: &Guarded) -> Database {
        let table = TableName::parse("accounts").unwrap();
        let database = Database::new().await;
        let database =
            database.with_table("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)").await;
        database.with(ddl::trigger(Dialect::Mariadb, None, &table, guarded).unwrap().up()).await
    }

    /// What raw SQL comes to, as the command-line client would send it.
    async fn raw(database: &Database, session: Option<(&str, &str)>, sql: &str) -> Result<(), Refused> {
        let mut conn = database.connect().await;
        if let Some((resource, token)) = session {
            let set = format!("SET @leasehold_resource = '{resource}', @leasehold_token = {token}");
            conn.query_drop(set).await.unwrap();
        }
        let outcome = conn.query_drop(sql).await;
        outcome.map_err(|error| mariadb::refused(&error).unwrap_or_else(|| panic!("{sql}: {error:?}")))
    }

    #[tokio::test]
    async fn raw_sql_is_refused_with_the_reason() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let insert = "INSERT INTO accounts VALUES (1, 10)";
        assert!(matches!(raw(&database, None, insert).await, Err(Refused::MissingToken(_))));
        raw(&database, Some(("billing", "5")), insert).await.unwrap();
        raw(&database, Some(("billing", "7")), "UPDATE accounts SET balance = 11").await.unwrap();
        let writes = [
            "UPDATE accounts SET balance = 0",
            "DELETE FROM accounts",
            "REPLACE INTO accounts VALUES (1, 0)",
            "INSERT INTO accounts VALUES (1, 0) ON DUPLICATE KEY UPDATE balance = 0",
        ];
        for sql in writes {
            assert!(matches!(raw(&database, None, sql).await, Err(Refused::MissingToken(_))), "{sql}");
            let Err(Refused::Stale(why)) = raw(&database, Some(("billing", "5")), sql).await else {
                panic!("{sql}")
            };
            assert_eq!(why, "leasehold: stale token 5: the highest seen is 7");
            let foreign = raw(&database, Some(("payroll", "900")), sql).await;
            assert!(matches!(foreign, Err(Refused::WrongScope(_))), "{sql}: {foreign:?}");
            for odd in ["''", "0", "-1", "9007199254740992", "'99999999999999999999'", "'5x'", "9.5", "NULL"]
            {
                let outcome = raw(&database, Some(("billing", odd)), sql).await;
                assert!(matches!(outcome, Err(Refused::MissingToken(_))), "{sql} with {odd}: {outcome:?}");
            }
        }
        let balance: Option<i64> =
            database.connect().await.query_first("SELECT balance FROM accounts").await.unwrap();
        assert_eq!(balance, Some(11));
    }

    #[tokio::test]
    async fn each_row_has_its_own_lock() {
        let database = guarded(&Guarded::Rows { prefix: name("accounts/"), key: "id".into() }).await;
        let (one, two) = (Some(("accounts/1", "5")), Some(("accounts/2", "3")));
        raw(&database, one, "INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        raw(&database, two, "INSERT INTO accounts VALUES (2, 10)").await.unwrap();
        for (session, sql) in [
            (one, "UPDATE accounts SET balance = 0 WHERE id = 2"),
            (one, "UPDATE accounts SET balance = 0"),
            (two, "UPDATE accounts SET id = 3 WHERE id = 2"),
        ] {
            assert!(matches!(raw(&database, session, sql).await, Err(Refused::WrongScope(_))), "{sql}");
        }
        raw(&database, two, "DELETE FROM accounts WHERE id = 2").await.unwrap();
    }

    #[tokio::test]
    async fn the_adapter_presents_and_withdraws() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let mut conn = database.connect().await;
        let mut tx = conn.start_transaction(TxOpts::default()).await.unwrap();
        mariadb::present(&mut tx, &grant("billing", 5)).await.unwrap();
        tx.query_drop("INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        mariadb::withdraw(&mut tx).await.unwrap();
        let error = tx.query_drop("DELETE FROM accounts").await.unwrap_err();
        assert!(matches!(mariadb::refused(&error), Some(Refused::MissingToken(_))));
        tx.commit().await.unwrap();
    }

    /// What is not covered is known: these go around the trigger.
    #[tokio::test]
    async fn truncate_goes_around_the_trigger() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        raw(&database, Some(("billing", "5")), "INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        raw(&database, None, "TRUNCATE accounts").await.unwrap();
    }

    #[tokio::test]
    async fn the_way_back_leaves_nothing() {
        let lock = Guarded::Rows { prefix: name("accounts/"), key: "id".into() };
        let (database, table) = (guarded(&lock).await, TableName::parse("accounts").unwrap());
        let database =
            database.with(ddl::trigger(Dialect::Mariadb, None, &table, &lock).unwrap().down()).await;
        let database = database.with(ddl::base(Dialect::Mariadb, None).unwrap().down()).await;
        let sql = "SELECT (SELECT count(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()) \
                   + (SELECT count(*) FROM information_schema.routines WHERE routine_schema = DATABASE())";
        let left: Option<i64> = database.connect().await.query_first(sql).await.unwrap();
        assert_eq!(left, Some(0));
    }
}
