//! What `fence sql` prints, run by each database's own client: it is accepted as it is, guards the table against raw SQL
//! with words that say why, and goes away without a trace.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::io::Write as _;
use std::process::{Command, Stdio};

fn fence_sql(args: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    let output = command.args(["fence", "sql"]).args(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A database's own client, which reads a script and stops at the first error.
struct Client(Box<dyn Fn() -> Command>);

impl Client {
    /// What it says of an error, or what it prints.
    fn run(&self, script: &str) -> Result<String, String> {
        let mut command = (self.0)();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() {
            true => Ok(String::from_utf8(output.stdout).unwrap()),
            false => Err(said),
        }
    }

    #[track_caller]
    fn works(&self, script: &str) -> String {
        self.run(script).unwrap_or_else(|said| panic!("{said}\n{script}"))
    }

    #[track_caller]
    fn refuses(&self, script: &str, words: &str) {
        let said = self.run(script).expect_err(script);
        assert!(said.contains(words), "expected {words:?} in {said:?}");
    }
}

/// The same story on every database; `with` puts resource and token before a statement as that database has it.
fn guards(client: &Client, dialect: &str, with: impl Fn(&str, u64, &str) -> String) {
    client.works("CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO accounts VALUES (1, 100);");
    let args = ["--dialect", dialect, "--table", "accounts", "--lock", "billing"];
    client.works(&fence_sql(&args));
    let spend = "UPDATE accounts SET balance = balance - 10 WHERE id = 1;";
    client.refuses(spend, "leasehold: missing token");
    client.works(&with("billing", 34, spend));
    client.refuses(&with("billing", 33, spend), "leasehold: stale token");
    client.refuses(&with("payroll", 99, spend), "leasehold: wrong scope");
    client.refuses(&with("payroll", 99, "DELETE FROM accounts;"), "leasehold: wrong scope");
    client.refuses("INSERT INTO accounts VALUES (2, 0);", "leasehold: missing token");
    client.works(&with("billing", 34, spend));
    assert_eq!(client.works("SELECT balance FROM accounts;").trim(), "80");
    client.works(&fence_sql(&[&args[..], &["--down"]].concat()));
    client.works(spend);
    // Rows with a lock each, and the base once more: nothing of the first one is left in the way.
    let rows = ["--dialect", dialect, "--table", "accounts", "--row-locks", "account/", "--key-column", "id"];
    client.works(&fence_sql(&rows));
    client.works(&with("account/1", 40, spend));
    client.refuses(&with("account/2", 41, spend), "leasehold: wrong scope");
    client.works(&fence_sql(&[&rows[..], &["--down"]].concat()));
    let columns = ["--dialect", dialect, "--table", "accounts", "--form", "column"];
    client.works(&fence_sql(&columns));
    assert_eq!(client.works("SELECT fence_token FROM accounts;").trim(), "0");
    client.works(&fence_sql(&[&columns[..], &["--down"]].concat()));
    assert_eq!(client.works("SELECT * FROM accounts;").trim().replace(['|', '\t'], " "), "1 60");
}

#[test]
fn psql_takes_it_and_raw_sql_is_refused() {
    let server = leasehold_testbed::postgres();
    let url = server.url().to_owned();
    let client = Client(Box::new(move || {
        let mut psql = Command::new("psql");
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", &url]);
        psql
    }));
    let with = |resource: &str, token: u64, statement: &str| {
        format!(
            "BEGIN; SET LOCAL leasehold.resource = '{resource}'; SET LOCAL leasehold.token = '{token}'; {statement} COMMIT;"
        )
    };
    guards(&client, "postgres", with);
    client.works(&fence_sql(&["--dialect", "postgres", "--table", "accounts"]));
    client.works(&with("accounts", 34, "UPDATE accounts SET balance = 1;"));
    client.refuses(
        &with("accounts", 33, "UPDATE accounts SET balance = 0;"),
        "leasehold: stale token 33: the highest seen by fence accounts is 34",
    );
    client.refuses("TRUNCATE accounts;", "SET LOCAL leasehold.resource and leasehold.token");
}

#[test]
fn the_mariadb_client_takes_it_and_raw_sql_is_refused() {
    let server = leasehold_testbed::mariadb();
    let port = server.url().rsplit([':', '/']).nth(1).unwrap().to_owned();
    let client = Client(Box::new(move || {
        let mut mariadb = Command::new("mariadb");
        mariadb.args(["--no-defaults", "-N", "-B", "-h", "127.0.0.1", "-P", &port, "-u", "root", "test"]);
        mariadb
    }));
    let with = |resource: &str, token: u64, statement: &str| {
        format!(
            "BEGIN; SET @leasehold_resource = '{resource}', @leasehold_token = {token}; {statement} COMMIT;"
        )
    };
    guards(&client, "mariadb", with);
    // The same text for MySQL, whose own server is not tested.
    let args = ["--table", "accounts", "--dialect"];
    assert_eq!(fence_sql(&[&args[..], &["mysql"]].concat()), fence_sql(&[&args[..], &["mariadb"]].concat()));
}

#[test]
fn the_sqlite_shell_takes_it_and_raw_sql_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("app.db");
    let client = Client(Box::new(move || {
        let mut sqlite = Command::new("sqlite3");
        sqlite.arg("-bail").arg(&file);
        sqlite
    }));
    let with = |resource: &str, token: u64, statement: &str| {
        format!(
            "BEGIN IMMEDIATE; INSERT INTO leasehold_session (one, resource, token) VALUES (1, '{resource}', {token}); \
             {statement} DELETE FROM leasehold_session; COMMIT;"
        )
    };
    guards(&client, "sqlite", with);
}
