//! The SQLite fence, on a file that several connections share.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::time::Duration;

use leasehold_fence::conformance::{Protected, run};
use leasehold_fence::sql::{Dialect, TableName, ddl};
use leasehold_fence::{Ask, Fence, Grant, sqlite};
use rusqlite::{Connection, TransactionBehavior};
use support::{Suite, failure, grant, name, seed, suite, unknown, word};
use tempfile::TempDir;

struct File(TempDir);

impl File {
    fn new() -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        let connection = file.open();
        connection.pragma_update(None, "journal_mode", "wal").unwrap();
        for statement in ddl::base(Dialect::Sqlite, None).unwrap().up() {
            connection.execute_batch(statement).unwrap();
        }
        file
    }

    fn open(&self) -> Connection {
        let connection = Connection::open(self.0.path().join("test.db")).unwrap();
        connection.busy_timeout(Duration::from_secs(30)).unwrap();
        connection
    }

    fn with(self, sql: &str) -> Self {
        self.open().execute_batch(sql).unwrap();
        self
    }
}

/// Lines in a table, fenced by a row of the fence table.
struct FenceTable(File);

impl FenceTable {
    fn append_now(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let mut connection = self.0.open();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unknown)?;
        let admitted = sqlite::admit(&tx, fence, ask).map_err(failure)?;
        let sql = "INSERT INTO lines (fence, line) VALUES (?1, ?2)";
        admitted.execute(sql, [fence.name().as_str(), line]).map_err(unknown)?;
        tx.commit().map_err(unknown)
    }
}

impl Protected for FenceTable {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        // Real threads: SQLite's calls block, and futures on one thread would never meet.
        tokio::task::block_in_place(|| self.append_now(fence, ask, line))
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        tokio::task::block_in_place(|| sqlite::claim(&self.0.open(), fence, grant).map_err(failure))
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let connection = self.0.open();
        let mut statement =
            connection.prepare("SELECT line FROM lines WHERE fence = ?1 ORDER BY id").unwrap();
        let lines = statement.query_map([fence.name().as_str()], |row| row.get(0)).unwrap();
        lines.map(Result::unwrap).collect()
    }
}

const LINES: &str = "CREATE TABLE lines (id INTEGER PRIMARY KEY AUTOINCREMENT, fence TEXT, line TEXT)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_fence_table_keeps_the_contract() {
    suite(&FenceTable(File::new().with(LINES))).await;
}

/// Connections of many threads at one file: the race of the suite, with real threads.
#[test]
fn threads_race_and_accepted_tokens_never_go_down() {
    let file = File::new().with(LINES);
    let (fence, table) = (Fence::of(&name("race")), FenceTable(file));
    let write = |n: u64| {
        for round in 0..12 {
            let token = 1 + round * 8 + (n * 7) % 16;
            let _ = table.append_now(&fence, Some(&grant("race", token).write()), &token.to_string());
        }
    };
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || write(n));
        }
    });
    let connection = table.0.open();
    let mut statement = connection.prepare("SELECT CAST(line AS INTEGER) FROM lines ORDER BY id").unwrap();
    let tokens: Vec<i64> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert!(tokens.len() > 11 && tokens.is_sorted() && tokens.last() == Some(&104), "{tokens:?}");
}

/// Lines in a column of a row with token columns.
struct TokenColumns(File);

impl Protected for TokenColumns {
    fn keeps_permits(&self) -> bool {
        false
    }

    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let mut connection = self.0.open();
        let (thing, table) = (fence.name().as_str(), TableName::parse("things").unwrap());
        connection.execute(THING, [thing]).map_err(unknown)?;
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(unknown)?;
        let line = format!("{line}\n");
        let (key, set) = (("name = ?1", &[&thing as _][..]), ("lines = lines || ?2", &[&line as _][..]));
        sqlite::update_row(&tx, fence, ask, &table, key, set).map_err(failure)?;
        tx.commit().map_err(unknown)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        let (connection, thing) = (self.0.open(), fence.name().as_str());
        connection.execute(THING, [thing]).map_err(unknown)?;
        let table = TableName::parse("things").unwrap();
        sqlite::claim_row(&connection, fence, grant, &table, ("name = ?1", &[&thing])).map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let connection = self.0.open();
        let sql = "SELECT lines FROM things WHERE name = ?1";
        let lines: String =
            connection.query_row(sql, [fence.name().as_str()], |row| row.get(0)).unwrap_or_default();
        lines.lines().map(str::to_owned).collect()
    }
}

const THING: &str = "INSERT OR IGNORE INTO things (name, lines) VALUES (?1, '')";

fn with_things(file: File) -> File {
    let file = file.with("CREATE TABLE things (name TEXT PRIMARY KEY, lines TEXT NOT NULL)");
    let columns = ddl::token_columns(Dialect::Sqlite, &TableName::parse("things").unwrap());
    file.with(&columns.up_script())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_columns_keep_the_contract() {
    run(&TokenColumns(with_things(File::new())), seed()).await;
}

#[test]
fn no_rows_updated_is_never_ambiguous() {
    let file = with_things(File::new()).with("INSERT INTO things (name, lines) VALUES ('t', '')");
    let (fence, table) = (Fence::of(&name("t")), TableName::parse("things").unwrap());
    let mut connection = file.open();
    let mut write = |key: &str, ask: Option<&Ask>| {
        let tx = connection.transaction().unwrap();
        let set = ("lines = ?2", &[&"x" as _][..]);
        let outcome = sqlite::update_row(&tx, &fence, ask, &table, ("name = ?1", &[&key]), set);
        tx.commit().unwrap();
        word(&outcome)
    };
    let step = |token, n| grant("t", token).step(std::num::NonZeroU64::new(n).unwrap()).unwrap();
    assert_eq!(write("t", Some(&step(5, 1))), "admitted");
    assert_eq!(write("t", Some(&step(5, 1))), "already_applied");
    assert_eq!(write("t", Some(&grant("t", 4).write())), "stale");
    assert_eq!(write("missing", Some(&grant("t", 9).write())), "missing_row");
    assert_eq!(write("t", Some(&grant("other", 9).write())), "wrong_scope");
    assert_eq!(write("t", None), "missing_token");
}

#[test]
fn a_force_released_grant_is_shut_out_before_there_is_a_successor() {
    let file = File::new();
    let (fence, connection) = (Fence::of(&name("r")), file.open());
    sqlite::claim(&connection, &fence, &grant("r", 5)).unwrap();
    sqlite::raise_past(&connection, &fence, &grant("r", 5)).unwrap();
    sqlite::raise_past(&connection, &fence, &grant("r", 3)).unwrap();
    assert_eq!(word(&sqlite::claim(&connection, &fence, &grant("r", 5))), "stale");
    assert_eq!(word(&sqlite::claim(&connection, &fence, &grant("r", 6))), "admitted");
}

#[test]
fn an_impossible_row_admits_nobody() {
    let file = File::new().with(
        "PRAGMA ignore_check_constraints = on;
         INSERT INTO leasehold_fence VALUES ('low', -1, 'low', -7, 0), ('high', -1, 'high', 9007199254740992, 0)",
    );
    for thing in ["low", "high"] {
        let (fence, connection) = (Fence::of(&name(thing)), file.open());
        let tx = connection.unchecked_transaction().unwrap();
        let outcome = sqlite::admit(&tx, &fence, &grant(thing, 9_007_199_254_740_991).write());
        assert_eq!(word(&outcome), "corrupt", "{thing}");
    }
}

/// A deferred transaction that read the past cannot write into the present.
#[test]
fn a_transaction_that_began_before_the_successor_cannot_commit_a_stale_write() {
    let file = File::new().with(LINES);
    let (fence, mut old, new) = (Fence::of(&name("r")), file.open(), file.open());
    old.busy_timeout(Duration::ZERO).unwrap();
    let tx = old.transaction().unwrap();
    let before: i64 = tx.query_row("SELECT count(*) FROM lines", [], |row| row.get(0)).unwrap();
    sqlite::claim(&new, &fence, &grant("r", 9)).unwrap();
    assert_eq!(before, 0);
    assert_eq!(word(&sqlite::admit(&tx, &fence, &grant("r", 5).write())), "store");
}

mod triggers {
    use leasehold_fence::sql::ddl::Guarded;

    use super::*;

    fn guarded(guarded: &Guarded) -> File {
        let table = TableName::parse("accounts").unwrap();
        let file = File::new().with("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER)");
        file.with(&ddl::trigger(Dialect::Sqlite, None, &table, guarded).unwrap().up_script())
    }

    /// What raw SQL comes to, as a program would send it that knows nothing of this crate.
    fn raw(file: &File, session: &str, sql: &str) -> String {
        let connection = file.open();
        let script = format!("BEGIN IMMEDIATE; {session}; {sql}; DELETE FROM leasehold_session; COMMIT");
        match connection.execute_batch(&script) {
            Ok(()) => "done".to_owned(),
            Err(error) => sqlite::refused(&error).unwrap_or_else(|| panic!("{error}")).to_owned(),
        }
    }

    fn session(resource: &str, token: u64) -> String {
        format!("INSERT INTO leasehold_session (one, resource, token) VALUES (1, '{resource}', {token})")
    }

    #[test]
    fn raw_sql_is_refused_with_the_reason() {
        let file = guarded(&Guarded::Table { guard: name("billing") });
        let insert = "INSERT INTO accounts VALUES (1, 10)";
        assert!(raw(&file, "", insert).contains("missing token"));
        assert_eq!(raw(&file, &session("billing", 5), insert), "done");
        assert_eq!(raw(&file, &session("billing", 7), "UPDATE accounts SET balance = 11"), "done");
        for sql in
            ["UPDATE accounts SET balance = 0", "DELETE FROM accounts", "REPLACE INTO accounts VALUES (1, 0)"]
        {
            assert!(raw(&file, "", sql).contains("missing token"), "{sql}");
            assert!(raw(&file, &session("billing", 5), sql).contains("stale token"), "{sql}");
            assert!(raw(&file, &session("payroll", 900), sql).contains("wrong scope"), "{sql}");
        }
        let balance: i64 =
            file.open().query_row("SELECT balance FROM accounts", [], |row| row.get(0)).unwrap();
        assert_eq!(balance, 11);
    }

    #[test]
    fn each_row_has_its_own_lock() {
        let file = guarded(&Guarded::Rows { prefix: name("accounts/"), key: "id".into() });
        assert_eq!(raw(&file, &session("accounts/1", 5), "INSERT INTO accounts VALUES (1, 10)"), "done");
        assert!(
            raw(&file, &session("accounts/1", 5), "INSERT INTO accounts VALUES (2, 10)")
                .contains("wrong scope")
        );
        assert_eq!(raw(&file, &session("accounts/2", 3), "INSERT INTO accounts VALUES (2, 10)"), "done");
        let moved = raw(&file, &session("accounts/2", 3), "UPDATE accounts SET id = 1 WHERE id = 2");
        assert!(moved.contains("wrong scope"), "a row cannot be moved under another lock: {moved}");
    }

    #[test]
    fn the_adapter_presents_and_withdraws() {
        let file = guarded(&Guarded::Table { guard: name("billing") });
        let mut connection = file.open();
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        sqlite::present(&tx, &grant("billing", 5)).unwrap();
        tx.execute("INSERT INTO accounts VALUES (1, 10)", []).unwrap();
        sqlite::withdraw(&tx).unwrap();
        tx.commit().unwrap();
        assert!(raw(&file, "", "DELETE FROM accounts").contains("missing token"));
    }

    #[test]
    fn the_way_back_leaves_nothing() {
        let lock = Guarded::Table { guard: name("billing") };
        let (file, table) = (guarded(&lock), TableName::parse("accounts").unwrap());
        let file = file.with(&ddl::trigger(Dialect::Sqlite, None, &table, &lock).unwrap().down_script());
        let file = file.with(&ddl::base(Dialect::Sqlite, None).unwrap().down_script());
        let sql = "SELECT count(*) FROM sqlite_master WHERE name LIKE '%leasehold%' OR name LIKE '%fence%'";
        let left: i64 = file.open().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(left, 0);
    }
}

#[test]
fn the_ledger_tells_a_successor_what_was_begun() {
    use leasehold_fence::effects::Began;
    let file = File::new().with(&ddl::ledger(Dialect::Sqlite).up_script());
    let (fence, mut connection) = (Fence::of(&name("r")), file.open());
    let operation = leasehold_types::RequestKey::new("invoice 17").unwrap();
    let mut at = |token: u64, ends: bool| {
        let tx = connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
        let admitted = sqlite::admit(&tx, &fence, &grant("r", token).write())
            .map_err(|error| word::<(), _>(&Err(error)))?;
        let began = match ends {
            true => sqlite::ledger::end(&admitted, &operation, "sent").map(|()| Began::Fresh),
            false => sqlite::ledger::begin(&admitted, &operation),
        };
        let began = began.map_err(|error| word::<(), _>(&Err(error)))?;
        tx.commit().unwrap();
        Ok::<_, &str>(began)
    };
    let token = |number| leasehold_types::FencingToken::new(number).unwrap();
    assert_eq!(at(5, true), Err("corrupt"), "what was not begun cannot end");
    assert_eq!(at(5, false), Ok(Began::Fresh));
    assert_eq!(at(5, false), Ok(Began::Again));
    assert_eq!(at(6, false), Ok(Began::Unfinished { token: token(5) }));
    assert_eq!(at(5, true), Err("stale"), "the old holder comes too late to end it");
    assert_eq!(at(6, true), Ok(Began::Fresh));
    assert_eq!(at(7, false), Ok(Began::Done { token: token(6), outcome: "sent".to_owned() }));
    assert_eq!(at(7, true), Err("corrupt"), "it has ended");
}
