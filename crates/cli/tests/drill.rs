//! `leasehold drill` as users run it, on real engines: with a fence the late write is refused, without one it is accepted,
//! and the exit code says so. Every engine sees the floor of F6b (a holder stopped past its ttl) and of F6c (a write held
//! in the network): `cargo xtask drill zombie-client 1000` and `cargo xtask drill late-write 1000` run more of them.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use leasehold_history::{Answer, Call, Checker, Id, Promise, Record};
use leasehold_testbed::{Shared, moto};
use serde_json::Value;
use support::{Serving, leasehold, service};

/// How often each drill is held when nothing else is said.
const FLOOR: usize = 5;
/// Drills that are under way at the same time: each mostly waits for a ttl to pass.
const AT_ONCE: usize = 6;

/// How a drill is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Paused,
    Delayed,
}

fn times() -> usize {
    std::env::var("LEASEHOLD_DRILLS").ok().and_then(|times| times.parse().ok()).unwrap_or(FLOOR)
}

/// Both, or the one that was asked for by hand.
fn chosen() -> Vec<How> {
    match std::env::var("LEASEHOLD_DRILL_HOW").as_deref() {
        Ok("paused") => vec![How::Paused],
        Ok("delayed") => vec![How::Delayed],
        _ => vec![How::Paused, How::Delayed],
    }
}

fn drill(how: How, more: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(["drill", "--ttl", "1s", "--output", "json"]).args(more);
    if how == How::Delayed {
        command.arg("--delay-write");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("LEASEHOLD_SERVER");
    command.env("AWS_ACCESS_KEY_ID", "test").env("AWS_SECRET_ACCESS_KEY", "test");
    command
}

/// Runs them, a few at a time.
fn outputs(commands: Vec<Command>) -> Vec<Output> {
    let mut commands = commands.into_iter();
    let mut outputs = Vec::new();
    loop {
        let started: Vec<_> =
            commands.by_ref().take(AT_ONCE).map(|mut command| command.spawn().unwrap()).collect();
        if started.is_empty() {
            return outputs;
        }
        outputs.extend(started.into_iter().map(|child| child.wait_with_output().unwrap()));
    }
}

/// What a drill reported, which must have ended with this code.
fn report(output: &Output, code: i32, what: &str) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(code), "{what}: {said}{shown}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{what}: {said}{shown}"))
}

/// With a fence every late write is refused; without it is accepted, and the successor's write is lost. `fenced` and
/// `unfenced` give the arguments of the n-th drill.
fn holds(fenced: impl Fn(usize) -> Vec<String>, unfenced: impl Fn(usize) -> Vec<String>) {
    let both = [How::Paused, How::Delayed];
    let rounds: Vec<How> = chosen().into_iter().flat_map(|how| std::iter::repeat_n(how, times())).collect();
    let with = rounds.iter().enumerate().map(|(n, how)| drill(*how, &fenced(n)));
    let without = both.iter().enumerate().map(|(n, how)| {
        let mut command = drill(*how, &unfenced(rounds.len() + n));
        command.arg("--without-fence");
        command
    });
    let outputs = outputs(with.chain(without).collect());
    let (with, without) = outputs.split_at(rounds.len());
    for (n, (how, output)) in rounds.iter().zip(with).enumerate() {
        let report = report(output, 0, &format!("{how:?} {:?}", fenced(n)));
        assert_eq!((&report["passed"], &report["lateWrite"]), (&true.into(), &"refused".into()), "{report}");
        assert_eq!(report["found"], "written by worker B", "{report}");
        assert_eq!(judged(&report), Ok(()), "{report}");
    }
    for (how, output) in both.iter().zip(without) {
        let report = report(output, 1, &format!("{how:?} without a fence"));
        assert_eq!(
            (&report["passed"], &report["lateWrite"]),
            (&false.into(), &"accepted".into()),
            "{report}"
        );
        assert_eq!(report["found"], "written by worker A, too late", "{report}");
        assert_eq!(judged(&report), Err(Promise::S4), "{report}");
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// The timeline as a history, in the eyes of the checker: a successor's token is larger (S3), and writes that the fence
/// accepts never go down in token (S4).
fn judged(report: &Value) -> Result<(), Promise> {
    let (mut checker, mut asked_at) = (Checker::default(), 0);
    for (n, entry) in (0_u8..).zip(report["timeline"].as_array().unwrap()) {
        let (at, token) = (1_000 * entry["atMs"].as_u64().unwrap(), entry["fencingToken"].as_u64());
        let records = match (entry["event"].as_str().unwrap(), token) {
            ("waits" | "lost", _) => {
                asked_at = at;
                Vec::new()
            }
            ("acquired", Some(token)) => acquired(n, (asked_at, at), token, report),
            (event @ ("accepted" | "refused"), Some(token)) => {
                let fence = report["place"].as_str().unwrap().into();
                vec![Record::Fence { at, fence, token, admitted: event == "accepted" }]
            }
            _ => Vec::new(),
        };
        records.iter().try_for_each(|record| checker.take(record)).map_err(|violation| violation.promise)?;
    }
    checker.finish().map(drop).map_err(|violation| violation.promise)
}

/// A worker asked for the lock and was given it. Who asks writes it down when it is answered; the moment counts.
fn acquired(n: u8, (asked_at, at): (u64, u64), token: u64, report: &Value) -> Vec<Record> {
    let resource = report["resource"].as_str().unwrap().into();
    let call = Call::Acquire { resource, lease: Id([n; 16]), session: None };
    let (op, client) = (u64::from(n), format!("worker {n}").into());
    let answer = Answer::Granted { token, ttl_ms: report["ttlMs"].as_u64().unwrap() };
    vec![Record::Invoke { at: asked_at, op, client, call }, Record::Answer { at, op, epoch: None, answer }]
}

fn on(address: &str) {
    holds(|_| words(&["--fence", address]), |_| words(&["--fence", address]));
}

#[test]
fn sqlite_without_naming_anything() {
    holds(|_| Vec::new(), |_| Vec::new());
}

/// Its own lock service was still writing when its directory was removed, and the rest of it stayed.
#[test]
fn a_drill_that_cannot_begin_leaves_nothing_behind() {
    for address in ["postgres://127.0.0.1:1/nobody", "redis://127.0.0.1:1"] {
        let scratch = tempfile::tempdir().unwrap();
        let mut command = drill(How::Paused, &words(&["--fence", address]));
        let output = command.env("TMPDIR", scratch.path()).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && told.contains("127.0.0.1:1"),
            "{address}: nobody listens there; {told}"
        );
        let left: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().flatten().collect();
        assert!(left.is_empty(), "{address}: {left:?}; {told}");
    }
}

#[test]
fn postgres() {
    let server = leasehold_testbed::postgres();
    on(server.url());
    let left = psql(server.url(), "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'");
    assert_eq!(left.trim(), "0", "a drill leaves nothing behind");
}

#[test]
fn mariadb() {
    on(leasehold_testbed::mariadb().url());
}

#[test]
fn redis() {
    on(leasehold_testbed::redis().url());
}

#[test]
fn etcd() {
    on(&leasehold_testbed::etcd().url().replace("http://", "etcd://"));
}

#[test]
fn the_reference_storage() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().to_str().unwrap();
    let storage = Serving::start(&["fence", "storage", "--dir", path, "--listen", "127.0.0.1:0"]);
    on(&storage.url.replace("http://", "storage://"));
}

/// A service that knows nothing of fences, behind `fence proxy`; without the fence workers go to it straight.
#[test]
fn a_service_behind_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    let state = format!("sqlite:{}", directory.path().join("fence.db").display());
    let service = format!("http://{}", service());
    let more = ["--state", &state, "--lock", "/{name}=drill/{name}", "--listen", "127.0.0.1:0"];
    let proxy = Serving::start(&[&["fence", "proxy", "--upstream", &service][..], &more].concat());
    let place =
        |url: &str, n| words(&["--fence", &format!("{url}/{n}"), "--resource", &format!("drill/{n}")]);
    holds(|n| place(&proxy.url, n), |n| place(&service, n));
}

static MOTO: Shared = Shared::new(moto);

/// A stand-in: what is shown is that the requests are right, and the story they tell.
#[test]
fn s3() {
    let server = MOTO.server();
    ask(server.url(), "PUT /drills HTTP/1.1", "", "");
    on(&format!("s3://drills?endpoint={}&region=us-east-1", server.url()));
}

/// A stand-in too.
#[cfg(feature = "dynamodb")]
#[test]
fn dynamodb() {
    let server = MOTO.server();
    let body = r#"{"TableName":"drills","BillingMode":"PAY_PER_REQUEST","KeySchema":[{"AttributeName":"fence","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"fence","AttributeType":"S"}]}"#;
    let headers = "content-type: application/x-amz-json-1.0\r\nx-amz-target: DynamoDB_20120810.CreateTable\r\n\
                   authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request\r\n";
    ask(server.url(), "POST / HTTP/1.1", headers, body);
    on(&format!("dynamodb://drills?endpoint={}&region=us-east-1", server.url()));
}

/// One request, which must go well.
fn ask(url: &str, line: &str, headers: &str, body: &str) {
    let host = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "{line}\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

/// A lock service with a lock that has been used, so that its tokens are not the first ones.
fn lock_service(directory: &Path) -> Serving {
    let data = directory.join("journal");
    let server = Serving::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.to_str().unwrap()]);
    let used = leasehold(&["acquire", "billing", "--ttl", "1s", "--server", &server.url]).output().unwrap();
    assert!(used.status.success(), "{}", String::from_utf8_lossy(&used.stderr));
    server
}

/// The user's own table: fenced by its trigger the drill passes, without the trigger it fails; the data stays as it is.
fn own_table(dialect: &str, fence: &str, run: impl Fn(&str) -> String) {
    let directory = tempfile::tempdir().unwrap();
    let server = lock_service(directory.path());
    run(
        "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER); INSERT INTO accounts VALUES (1, 100);",
    );
    let ddl = |more: &[&str]| {
        let args = ["fence", "sql", "--dialect", dialect, "--table", "accounts", "--lock", "billing"];
        let output = leasehold(&args).args(more).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    run(&ddl(&[]));
    let args =
        words(&["--server", &server.url, "--fence", fence, "--table", "accounts", "--resource", "billing"]);
    for how in [How::Paused, How::Delayed] {
        let report = report(&drill(how, &args).output().unwrap(), 0, dialect);
        assert!(report["reason"].as_str().unwrap().contains("stale token"), "{report}");
    }
    run(&ddl(&["--down"]));
    // What SQLite's triggers read is gone with them, and the drill says so; elsewhere the late write gets through.
    let unguarded = drill(How::Paused, &args).output().unwrap();
    assert_eq!(unguarded.status.code(), Some(if dialect == "sqlite" { 69 } else { 1 }), "{dialect}");
    assert_eq!(run("SELECT balance FROM accounts;").trim(), "100");
}

#[test]
fn a_table_of_ones_own_on_postgres() {
    let server = leasehold_testbed::postgres();
    own_table("postgres", server.url(), |sql| psql(server.url(), sql));
}

#[test]
fn a_table_of_ones_own_on_mariadb() {
    let server = leasehold_testbed::mariadb();
    let port = server.url().rsplit([':', '/']).nth(1).unwrap();
    let run = |sql: &str| {
        let args = ["--no-defaults", "-N", "-B", "-h", "127.0.0.1", "-P", port, "-u", "root", "test"];
        fed(Command::new("mariadb").args(args), sql)
    };
    own_table("mariadb", server.url(), run);
}

#[test]
fn a_table_of_ones_own_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("app.db");
    own_table("sqlite", file.to_str().unwrap(), |sql| {
        fed(Command::new("sqlite3").arg("-bail").arg(&file), sql)
    });
}

/// A client of a database, fed by its standard input.
fn fed(command: &mut Command, sql: &str) -> String {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(sql.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A program that keeps the highest token beside its data, if told to, and writes after it has said that it will.
const PROGRAM: &str = r#"
echo "$LEASEHOLD_DRILL is about to write"
sleep 0.3
highest=$(cat highest 2>/dev/null || echo 0)
if [ "$FENCED" = yes ] && [ "$LEASEHOLD_FENCING_TOKEN" -lt "$highest" ]; then
    echo "refused: $LEASEHOLD_FENCING_TOKEN is older than $highest" >&2
    exit 3
fi
echo "$LEASEHOLD_FENCING_TOKEN" > highest
echo "$LEASEHOLD_DRILL" > data
"#;

#[test]
fn a_program_of_ones_own_is_the_zombie() {
    for (fenced, code, late) in [("yes", 0, "refused"), ("no", 1, "accepted")] {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("program"), PROGRAM).unwrap();
        let args = words(&["--worker", "sh program", "--check", "grep -q B data"]);
        let output =
            drill(How::Paused, &args).current_dir(directory.path()).env("FENCED", fenced).output().unwrap();
        let report = report(&output, code, fenced);
        assert_eq!(
            (&report["lateWrite"], &report["intact"]),
            (&late.into(), &(code == 0).into()),
            "{report}"
        );
    }
}

/// Holds the lock by hand; when it cannot renew any more it writes all the same.
const HOLDER: &str = r#"
grant=$("$LEASEHOLD" acquire billing --ttl 1s --wait 30s --output json)
lease=$(echo "$grant" | grep -o '"leaseId":"[^"]*"' | cut -d'"' -f4)
export LEASEHOLD_FENCING_TOKEN=$(echo "$grant" | grep -o '"fencingToken":[0-9]*' | cut -d: -f2) LEASEHOLD_DRILL=A
while "$LEASEHOLD" renew "$lease"; do touch holding; sleep 0.1; done
sh program || touch refused
touch ended
"#;

#[test]
fn a_running_program_is_the_zombie() {
    let directory = tempfile::tempdir().unwrap();
    let server = lock_service(directory.path());
    std::fs::write(directory.path().join("program"), PROGRAM).unwrap();
    let mut holder = Command::new("sh");
    holder.args(["-c", HOLDER]).current_dir(directory.path()).env("FENCED", "yes");
    holder.env("LEASEHOLD", env!("CARGO_BIN_EXE_leasehold")).env("LEASEHOLD_SERVER", &server.url);
    let mut holder = holder.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let seen = |name: &str| {
        let file = directory.path().join(name);
        leasehold_tests::until(name, std::time::Duration::from_secs(60), || file.exists().then_some(()));
    };
    seen("holding");
    let check = "for n in $(seq 300); do [ -e ended ] && break; sleep 0.1; done; grep -q B data";
    let pid = holder.id().to_string();
    let args = [
        "--server",
        &server.url,
        "--pid",
        &pid,
        "--resource",
        "billing",
        "--worker",
        "sh program",
        "--check",
        check,
    ];
    let output = drill(How::Paused, &words(&args))
        .current_dir(directory.path())
        .env("FENCED", "yes")
        .output()
        .unwrap();
    seen("ended");
    holder.wait().unwrap();
    let report = report(&output, 0, "a running program");
    assert_eq!(report["intact"], true, "{report}");
    seen("refused");
}

fn psql(url: &str, sql: &str) -> String {
    let output = Command::new("psql").args(["-X", "-A", "-t", "-d", url, "-c", sql]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
