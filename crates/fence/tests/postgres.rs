//! The PostgreSQL fence, on a private server.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leasehold_fence::conformance::{Protected, race, run};
use leasehold_fence::sql::{Dialect, TableName, ddl};
use leasehold_fence::{Ask, Fence, Grant, postgres};
use leasehold_testbed::{Server, Shared};
use support::{Suite, failure, grant, name, seed, unknown, word};
use tokio::sync::{Mutex, MutexGuard};
use tokio_postgres::{Client, IsolationLevel, NoTls};

static SERVER: Shared = Shared::new(leasehold_testbed::postgres);
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// A database of its own for each test, with the fence table.
struct Database {
    _server: Arc<Server>,
    url: String,
}

impl Database {
    async fn new() -> Self {
        let server = SERVER.server();
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let admin = connect(server.url()).await;
        admin.batch_execute(&format!("CREATE DATABASE test{n}")).await.unwrap();
        let url = format!("{}/test{n}", server.url().strip_suffix("/postgres").unwrap());
        let database = Self { _server: server, url };
        database.with(&ddl::base(Dialect::Postgres, None).unwrap().up_script()).await
    }

    async fn connect(&self) -> Client {
        connect(&self.url).await
    }

    async fn with(self, sql: &str) -> Self {
        self.connect().await.batch_execute(sql).await.unwrap();
        self
    }
}

async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Some connections, shared by many writers.
struct Pool {
    _database: Database,
    clients: Vec<Mutex<Client>>,
    next: AtomicUsize,
}

impl Pool {
    async fn new(database: Database) -> Self {
        let mut clients = Vec::new();
        for _ in 0..16 {
            clients.push(Mutex::new(database.connect().await));
        }
        Self { _database: database, clients, next: AtomicUsize::new(0) }
    }

    async fn client(&self) -> MutexGuard<'_, Client> {
        let n = self.next.fetch_add(1, Ordering::Relaxed) % self.clients.len();
        self.clients[n].lock().await
    }
}

struct FenceTable(Pool);

impl Protected for FenceTable {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let mut client = self.0.client().await;
        let tx = client.transaction().await.map_err(unknown)?;
        let admitted = postgres::admit(&tx, fence, ask).await.map_err(failure)?;
        let sql = "INSERT INTO lines (fence, line) VALUES ($1, $2)";
        admitted.execute(sql, &[&fence.name().as_str(), &line]).await.map_err(unknown)?;
        tx.commit().await.map_err(unknown)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        postgres::claim(&*self.0.client().await, fence, grant).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let sql = "SELECT line FROM lines WHERE fence = $1 ORDER BY id";
        let rows = self.0.client().await.query(sql, &[&fence.name().as_str()]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

/// The same, with the statement prepared, by itself or in one round trip with the write.
struct PreparedTable(FenceTable);

impl Protected for PreparedTable {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let Some(ask) = ask else { return self.0.append(fence, None, line).await };
        let mut client = self.0.0.client().await;
        let prepared = postgres::Prepared::new(&*client).await.map_err(unknown)?;
        let insert =
            client.prepare("INSERT INTO lines (fence, line) VALUES ($1, $2)").await.map_err(unknown)?;
        let tx = client.transaction().await.map_err(unknown)?;
        let name = fence.name().as_str();
        let tx = match line.len() % 2 {
            0 => {
                let written = prepared.write(tx, fence, ask, &insert, &[&name, &line]).await;
                written.map_err(failure)?.0
            }
            _ => {
                let admitted = prepared.admit(&tx, fence, ask).await.map_err(failure)?;
                admitted.execute(&insert, &[&name, &line]).await.map_err(unknown)?;
                tx
            }
        };
        tx.commit().await.map_err(unknown)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        self.0.claim(fence, grant).await
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        self.0.lines(fence).await
    }
}

#[tokio::test]
async fn the_prepared_statement_keeps_the_contract() {
    let table = FenceTable(Pool::new(Database::new().await.with(LINES).await).await);
    run(&PreparedTable(table), seed()).await;
}

const LINES: &str = "CREATE TABLE lines (id BIGSERIAL PRIMARY KEY, fence TEXT, line TEXT)";

#[tokio::test]
async fn the_fence_table_keeps_the_contract() {
    run(&FenceTable(Pool::new(Database::new().await.with(LINES).await).await), seed()).await;
}

#[tokio::test]
async fn sixty_four_writers_race() {
    race(
        &FenceTable(Pool::new(Database::new().await.with(LINES).await).await),
        seed(),
        support::race_length(),
    )
    .await;
}

struct TokenColumns(Pool);

const THING: &str = "INSERT INTO things (name, lines) VALUES ($1, '') ON CONFLICT DO NOTHING";

impl Protected for TokenColumns {
    fn keeps_permits(&self) -> bool {
        false
    }

    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let mut client = self.0.client().await;
        let (thing, table, line) = (fence.name().as_str(), things(), format!("{line}\n"));
        client.execute(THING, &[&thing]).await.map_err(unknown)?;
        let tx = client.transaction().await.map_err(unknown)?;
        let (key, set) = (("name = $1", &[&thing as _][..]), ("lines = lines || $2", &[&line as _][..]));
        postgres::update_row(&tx, fence, ask, &table, key, set).await.map_err(failure)?;
        tx.commit().await.map_err(unknown)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        let (client, thing) = (self.0.client().await, fence.name().as_str());
        client.execute(THING, &[&thing]).await.map_err(unknown)?;
        postgres::claim_row(&*client, fence, grant, &things(), ("name = $1", &[&thing]))
            .await
            .map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let client = self.0.client().await;
        let row =
            client.query_opt("SELECT lines FROM things WHERE name = $1", &[&fence.name().as_str()]).await;
        let lines: String = row.unwrap().map(|row| row.get(0)).unwrap_or_default();
        lines.lines().map(str::to_owned).collect()
    }
}

fn things() -> TableName {
    TableName::parse("public.things").unwrap()
}

async fn with_things(database: Database) -> Database {
    let database = database.with("CREATE TABLE things (name TEXT PRIMARY KEY, lines TEXT NOT NULL)").await;
    database.with(&ddl::token_columns(Dialect::Postgres, &things()).up_script()).await
}

#[tokio::test]
async fn token_columns_keep_the_contract() {
    run(&TokenColumns(Pool::new(with_things(Database::new().await).await).await), seed()).await;
}

#[tokio::test]
async fn no_rows_updated_is_never_ambiguous() {
    let database = with_things(Database::new().await).await;
    let database = database.with("INSERT INTO things (name, lines) VALUES ('t', ''), ('u', '')").await;
    let (fence, mut client) = (Fence::of(&name("t")), database.connect().await);
    let step = grant("t", 5).step(std::num::NonZeroU64::MIN).unwrap();
    let (stale, newer, other) = (grant("t", 4).write(), grant("t", 9).write(), grant("other", 9).write());
    let cases = [
        ("name = 't'", Some(&step), "admitted"),
        ("name = 't'", Some(&step), "already_applied"),
        ("name = 't'", Some(&stale), "stale"),
        ("name = 'missing'", Some(&step), "missing_row"),
        ("name = 't'", Some(&other), "wrong_scope"),
        ("name = 't'", None, "missing_token"),
        ("name IN ('t', 'u')", Some(&newer), "corrupt"),
    ];
    for (key, ask, wanted) in cases {
        let tx = client.transaction().await.unwrap();
        let set = ("lines = $1", &[&"x" as _][..]);
        let outcome = postgres::update_row(&tx, &fence, ask, &things(), (key, &[]), set).await;
        assert_eq!(word(&outcome), wanted, "{key} {ask:?}");
        if outcome.is_ok() {
            tx.commit().await.unwrap();
        }
    }
}

/// Snapshot isolation: the transaction reads the past, and must not decide from it.
#[tokio::test]
async fn a_transaction_that_began_before_the_successor_cannot_commit_a_stale_write() {
    let database = Database::new().await;
    let (fence, mut old, new) = (Fence::of(&name("r")), database.connect().await, database.connect().await);
    postgres::claim(&new, &fence, &grant("r", 4)).await.unwrap();
    let levels =
        [IsolationLevel::ReadCommitted, IsolationLevel::RepeatableRead, IsolationLevel::Serializable];
    for (level, wanted) in levels.into_iter().zip(["stale", "store", "store"]) {
        let tx = old.build_transaction().isolation_level(level).start().await.unwrap();
        tx.query("SELECT * FROM leasehold_fence", &[]).await.unwrap();
        postgres::claim(&new, &fence, &grant("r", 9)).await.unwrap();
        let outcome = postgres::admit(&tx, &fence, &grant("r", 5).write()).await;
        assert_eq!(word(&outcome), wanted, "{level:?}");
        drop(outcome);
        tx.rollback().await.unwrap();
        new.batch_execute("UPDATE leasehold_fence SET token = 4").await.unwrap();
    }
}

/// A reader that was checked holds off writers until it is done, also at a fence that nobody has written yet.
#[tokio::test]
async fn a_shared_grant_holds_the_row_it_was_checked_against() {
    let database = Database::new().await;
    let (fence, mut reader, writer) =
        (Fence::of(&name("r")), database.connect().await, database.connect().await);
    writer.batch_execute("SET lock_timeout = '50ms'").await.unwrap();
    let shared = Grant::shared(name("r"), leasehold_types::FencingToken::new(5).unwrap()).write();
    let tx = reader.transaction().await.unwrap();
    assert_eq!(word(&postgres::admit(&tx, &fence, &shared).await), "admitted");
    assert_eq!(word(&postgres::claim(&writer, &fence, &grant("r", 6)).await), "store");
    tx.commit().await.unwrap();
    assert_eq!(word(&postgres::claim(&writer, &fence, &grant("r", 6)).await), "admitted");
}

#[tokio::test]
async fn a_force_released_grant_is_shut_out_before_there_is_a_successor() {
    let database = Database::new().await;
    let (fence, client) = (Fence::of(&name("r")), database.connect().await);
    postgres::raise_past(&client, &fence, &grant("r", 5)).await.unwrap();
    postgres::raise_past(&client, &fence, &grant("r", 3)).await.unwrap();
    assert_eq!(word(&postgres::claim(&client, &fence, &grant("r", 5)).await), "stale");
    assert_eq!(word(&postgres::claim(&client, &fence, &grant("r", 6)).await), "admitted");
}

#[tokio::test]
async fn the_ledger_tells_a_successor_what_was_begun() {
    use leasehold_fence::effects::Began;
    let database = Database::new().await.with(&ddl::ledger(Dialect::Postgres).up_script()).await;
    let (fence, mut client) = (Fence::of(&name("r")), database.connect().await);
    let operation = leasehold_types::RequestKey::new("invoice 17").unwrap();
    let mut at = async |token: u64, ends: bool| {
        let tx = client.transaction().await.unwrap();
        let admitted = postgres::admit(&tx, &fence, &grant("r", token).write()).await.ok()?;
        let began = match ends {
            true => postgres::ledger::end(&admitted, &operation, "sent").await.map(|()| Began::Fresh),
            false => postgres::ledger::begin(&admitted, &operation).await,
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
    use futures_util::SinkExt;
    use leasehold_fence::postgres::Refused;
    use leasehold_fence::sql::ddl::Guarded;

    use super::*;

    async fn guarded(guarded: &Guarded) -> Database {
        let table = TableName::parse("accounts").unwrap();
        let database = Database::new().await;
        let database = database.with("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)").await;
        database.with(&ddl::trigger(Dialect::Postgres, None, &table, guarded).unwrap().up_script()).await
    }

    /// What raw SQL comes to, as psql would send it.
    async fn raw(client: &Client, session: Option<(&str, &str)>, sql: &str) -> Result<(), Refused> {
        let set = session.map_or(String::new(), |(resource, token)| {
            format!("SET LOCAL leasehold.resource = '{resource}'; SET LOCAL leasehold.token = '{token}';")
        });
        match client.batch_execute(&format!("BEGIN; {set} {sql}; COMMIT")).await {
            Ok(()) => Ok(()),
            Err(error) => {
                client.batch_execute("ROLLBACK").await.unwrap();
                Err(postgres::refused(&error).unwrap_or_else(|| panic!("{sql}: {error:?}")))
            }
        }
    }

    #[tokio::test]
    async fn raw_sql_is_refused_with_the_reason() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let client = database.connect().await;
        let writes = [
            "UPDATE accounts SET balance = 0",
            "DELETE FROM accounts",
            "TRUNCATE accounts",
            "INSERT INTO accounts VALUES (1, 0) ON CONFLICT (id) DO UPDATE SET balance = 0",
            "SET LOCAL session_replication_role = replica; UPDATE accounts SET balance = 0",
        ];
        assert!(matches!(
            raw(&client, None, "INSERT INTO accounts VALUES (1, 10)").await,
            Err(Refused::MissingToken(_))
        ));
        raw(&client, Some(("billing", "5")), "INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        raw(&client, Some(("billing", "7")), "UPDATE accounts SET balance = 11").await.unwrap();
        for sql in writes {
            assert!(matches!(raw(&client, None, sql).await, Err(Refused::MissingToken(_))), "{sql}");
            let Err(Refused::Stale(why)) = raw(&client, Some(("billing", "5")), sql).await else {
                panic!("{sql}")
            };
            assert_eq!(why, "leasehold: stale token 5: the highest seen by fence accounts is 7");
            let Err(Refused::WrongScope(why)) = raw(&client, Some(("payroll", "900")), sql).await else {
                panic!("{sql}")
            };
            assert!(why.contains("a token of payroll does not count here, billing guards"), "{why}");
            for odd in ["", "0", "-1", "9007199254740992", "99999999999999999999", "5; DROP", " 9", "9.5"] {
                let outcome = raw(&client, Some(("billing", odd)), sql).await;
                assert!(matches!(outcome, Err(Refused::MissingToken(_))), "{sql} with {odd:?}: {outcome:?}");
            }
        }
        assert_eq!(client.query_one("SELECT balance FROM accounts", &[]).await.unwrap().get::<_, i32>(0), 11);
    }

    #[tokio::test]
    async fn copy_is_refused_too() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let client = database.connect().await;
        let sink = client.copy_in("COPY accounts FROM STDIN").await.unwrap();
        futures_util::pin_mut!(sink);
        sink.send(bytes::Bytes::from_static(b"1\t10\n")).await.unwrap();
        let error = sink.finish().await.unwrap_err();
        assert!(matches!(postgres::refused(&error), Some(Refused::MissingToken(_))), "{error:?}");
    }

    #[tokio::test]
    async fn each_row_has_its_own_lock() {
        let database = guarded(&Guarded::Rows { prefix: name("accounts/"), key: "id".into() }).await;
        let client = database.connect().await;
        let (one, two) = (Some(("accounts/1", "5")), Some(("accounts/2", "3")));
        raw(&client, one, "INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        raw(&client, two, "INSERT INTO accounts VALUES (2, 10)").await.unwrap();
        for (session, sql) in [
            (one, "UPDATE accounts SET balance = 0 WHERE id = 2"),
            (one, "UPDATE accounts SET balance = 0"),
            (two, "UPDATE accounts SET id = 3 WHERE id = 2"),
            (two, "TRUNCATE accounts"),
        ] {
            assert!(matches!(raw(&client, session, sql).await, Err(Refused::WrongScope(_))), "{sql}");
        }
        raw(&client, two, "DELETE FROM accounts WHERE id = 2").await.unwrap();
    }

    /// A table of the session's own with the same name fools nobody, and a writer needs no right on the fence table.
    #[tokio::test]
    async fn a_temporary_table_does_not_hide_the_fence() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let client = database.connect().await;
        raw(&client, Some(("billing", "7")), "INSERT INTO accounts VALUES (1, 10)").await.unwrap();
        let role = "CREATE ROLE app; GRANT ALL ON accounts TO app; SET ROLE app; \
                    CREATE TEMP TABLE leasehold_fence (name TEXT, permit BIGINT, guard TEXT, token BIGINT, writes BIGINT)";
        client.batch_execute(role).await.unwrap();
        let stale = raw(&client, Some(("billing", "5")), "UPDATE accounts SET balance = 0").await;
        assert!(matches!(stale, Err(Refused::Stale(_))), "{stale:?}");
        raw(&client, Some(("billing", "8")), "UPDATE accounts SET balance = 12").await.unwrap();
        client
            .batch_execute("RESET ROLE; DROP TABLE pg_temp.leasehold_fence; DROP OWNED BY app; DROP ROLE app")
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn the_adapter_presents_for_one_transaction() {
        let database = guarded(&Guarded::Table { guard: name("billing") }).await;
        let mut client = database.connect().await;
        let tx = client.transaction().await.unwrap();
        postgres::present(&tx, &grant("billing", 5)).await.unwrap();
        tx.execute("INSERT INTO accounts VALUES (1, 10)", &[]).await.unwrap();
        tx.commit().await.unwrap();
        assert!(matches!(raw(&client, None, "DELETE FROM accounts").await, Err(Refused::MissingToken(_))));
    }

    #[tokio::test]
    async fn the_way_back_leaves_nothing() {
        let lock = Guarded::Rows { prefix: name("accounts/"), key: "id".into() };
        let (database, table) = (guarded(&lock).await, TableName::parse("accounts").unwrap());
        let database =
            database.with(&ddl::trigger(Dialect::Postgres, None, &table, &lock).unwrap().down_script()).await;
        let database = database.with(&ddl::base(Dialect::Postgres, None).unwrap().down_script()).await;
        let sql = "SELECT count(*) FROM (SELECT relname FROM pg_class UNION SELECT proname FROM pg_proc) AS n (name) \
                   WHERE name LIKE '%leasehold%'";
        assert_eq!(database.connect().await.query_one(sql, &[]).await.unwrap().get::<_, i64>(0), 0);
    }
}
