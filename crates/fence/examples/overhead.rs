//! What the check costs, side by side with the same write without it, on private engines. By hand, on a quiet machine:
//! `cargo xtask overhead`.

#![allow(clippy::unwrap_used, reason = "a measurement that panics has failed")]
#![allow(clippy::print_stdout, reason = "a measurement is for people to read")]

use std::time::{Duration, Instant};

use leasehold_fence::sql::{Dialect, ddl};
use leasehold_fence::{Ask, Fence, Grant, mariadb, postgres, redis::Change, redis::RedisFence, sqlite};
use leasehold_types::{FencingToken, ResourceName};
use mysql_async::prelude::Queryable;

const ROUNDS: usize = 2_000;

fn asked() -> (Fence, Ask) {
    let name = ResourceName::new("r").unwrap();
    let grant = Grant::exclusive(name.clone(), FencingToken::new(5).unwrap());
    (Fence::of(&name), grant.write())
}

#[tokio::main]
async fn main() {
    on_postgres().await;
    on_mariadb().await;
    on_sqlite().await;
    on_redis().await;
}

#[expect(clippy::disallowed_methods, reason = "this measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Alternates between the two, so that both see the same machine, and prints them.
async fn side_by_side(engine: &str, mut write: impl AsyncFnMut(bool)) {
    for _ in 0..100 {
        write(true).await;
        write(false).await;
    }
    let (mut plain, mut fenced) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        for (fence, times) in [(false, &mut plain), (true, &mut fenced)] {
            let begun = now();
            write(fence).await;
            times.push(begun.elapsed());
        }
    }
    let (plain, fenced) = (summary(plain), summary(fenced));
    println!("{engine}: p50 {:?} -> {:?}, p99 {:?} -> {:?}", plain.0, fenced.0, plain.1, fenced.1);
    println!("{engine}: throughput {:+.1} %", 100.0 * (plain.2.as_secs_f64() / fenced.2.as_secs_f64() - 1.0));
}

fn summary(mut times: Vec<Duration>) -> (Duration, Duration, Duration) {
    times.sort();
    (times[ROUNDS / 2], times[ROUNDS * 99 / 100], times.iter().sum())
}

async fn on_postgres() {
    let server = leasehold_testbed::postgres();
    let (mut client, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&ddl::base(Dialect::Postgres, None).unwrap().up_script()).await.unwrap();
    client.batch_execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (0)").await.unwrap();
    let (fence, ask) = asked();
    let update = client.prepare("UPDATE t SET n = n + 1").await.unwrap();
    side_by_side("postgres", async |check| {
        let tx = client.transaction().await.unwrap();
        if check {
            let _ = postgres::admit(&tx, &fence, &ask).await.unwrap();
        }
        tx.execute(&update, &[]).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await;
}

async fn on_mariadb() {
    let server = leasehold_testbed::mariadb();
    let mut conn = mysql_async::Conn::new(mysql_async::Opts::from_url(server.url()).unwrap()).await.unwrap();
    for sql in ddl::base(Dialect::Mariadb, None).unwrap().up() {
        conn.query_drop(sql).await.unwrap();
    }
    conn.query_drop("CREATE TABLE t (n BIGINT)").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (0)").await.unwrap();
    let (fence, ask) = asked();
    side_by_side("mariadb", async |check| {
        let mut tx = conn.start_transaction(mysql_async::TxOpts::default()).await.unwrap();
        if check {
            let _ = mariadb::admit(&mut tx, &fence, &ask).await.unwrap();
        }
        tx.exec_drop("UPDATE t SET n = n + 1", ()).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await;
}

async fn on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = rusqlite::Connection::open(directory.path().join("test.db")).unwrap();
    connection.execute_batch(&ddl::base(Dialect::Sqlite, None).unwrap().up_script()).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n); INSERT INTO t VALUES (0)")
        .unwrap();
    let (fence, ask) = asked();
    side_by_side("sqlite", async |check| {
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        if check {
            let _ = sqlite::admit(&tx, &fence, &ask).unwrap();
        }
        tx.prepare_cached("UPDATE t SET n = n + 1").unwrap().execute([]).unwrap();
        tx.commit().unwrap();
    })
    .await;
}

async fn on_redis() {
    let server = leasehold_testbed::redis();
    let mut connection =
        redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let ((fence, ask), hashes) = (asked(), RedisFence::new("fence:"));
    side_by_side("redis", async |check| {
        if check {
            hashes.write(&mut connection, &fence, &ask, Change::Put(b"value")).await.unwrap();
        } else {
            let mut set = redis::cmd("HSET");
            set.arg("plain").arg("value").arg("value").exec_async(&mut connection).await.unwrap();
        }
    })
    .await;
}
