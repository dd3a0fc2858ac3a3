//! What the check costs, side by side with the same write without it, on private engines. By hand, on a quiet machine:
//! `cargo xtask overhead`.

#![allow(clippy::unwrap_used, reason = "a measurement that panics has failed")]
#![allow(clippy::print_stdout, reason = "a measurement is for people to read")]

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Request, Response};
use leasehold_fence::http::{FenceLayer, RedisMaximum};
use leasehold_fence::redis::{Change, RedisFence};
use leasehold_fence::rollout::{Rollout, Stage};
use leasehold_fence::sql::{Dialect, ddl};
use leasehold_fence::{Ask, Fence, Grant, mariadb, postgres, sqlite};
use leasehold_types::{FencingToken, ResourceName, WallTime};
use mysql_async::prelude::Queryable;
use tower::{Layer, ServiceExt};

const ROUNDS: usize = 2_000;
/// What the check may add to a write at p99.
const ALLOWED: Duration = Duration::from_millis(1);
/// What it may take from PostgreSQL's throughput, in percent.
const ALLOWED_LOSS: f64 = 20.0;
/// Connections that write at the same time when throughput is measured.
const CONNECTIONS: usize = 8;
/// How long each side writes before the other has its turn.
const TURN: Duration = Duration::from_millis(500);
const TURNS: usize = 10;

fn asked(resource: &str) -> (Fence, Ask) {
    let name = ResourceName::new(resource).unwrap();
    let grant = Grant::exclusive(name.clone(), FencingToken::new(5).unwrap());
    (Fence::of(&name), grant.write())
}

#[tokio::main]
async fn main() {
    println!("{:<24} {:>28} {:>28} {:>10}", "", "p50 plain -> fenced", "p99 plain -> fenced", "added p99");
    let kept = [
        on_postgres().await,
        on_mariadb().await,
        on_sqlite().await,
        on_redis().await,
        middleware().await,
        postgres_throughput().await,
    ];
    if kept.contains(&false) {
        println!("the check costs more than it may");
        std::process::exit(1);
    }
}

#[expect(clippy::disallowed_methods, reason = "this measures time")]
fn now() -> Instant {
    Instant::now()
}

/// Alternates between the two, so that both see the same machine, and prints them. Whether it adds no more than it may.
async fn side_by_side(engine: &str, mut write: impl AsyncFnMut(bool)) -> bool {
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
    let (plain, fenced) = (quantiles(plain), quantiles(fenced));
    let added = fenced.1.saturating_sub(plain.1);
    let (half, most) =
        (format!("{:?} -> {:?}", plain.0, fenced.0), format!("{:?} -> {:?}", plain.1, fenced.1));
    println!("{engine:<24} {half:>28} {most:>28} {added:>10?}");
    added < ALLOWED
}

fn quantiles(mut times: Vec<Duration>) -> (Duration, Duration) {
    times.sort();
    (times[ROUNDS / 2], times[ROUNDS * 99 / 100])
}

async fn on_postgres() -> bool {
    let server = leasehold_testbed::postgres();
    let (mut client, connection) =
        tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&ddl::base(Dialect::Postgres, None).unwrap().up_script()).await.unwrap();
    client.batch_execute("CREATE TABLE t (n BIGINT); INSERT INTO t VALUES (0)").await.unwrap();
    let (fence, ask) = asked("r");
    let update = client.prepare("UPDATE t SET n = n + 1").await.unwrap();
    let prepared = postgres::Prepared::new(&client).await.unwrap();
    side_by_side("postgres", async |check| {
        let tx = client.transaction().await.unwrap();
        let tx = if check {
            prepared.write(tx, &fence, &ask, &update, &[]).await.unwrap().0
        } else {
            tx.execute(&update, &[]).await.unwrap();
            tx
        };
        tx.commit().await.unwrap();
    })
    .await
}

async fn on_mariadb() -> bool {
    let server = leasehold_testbed::mariadb();
    let mut conn = mysql_async::Conn::new(mysql_async::Opts::from_url(server.url()).unwrap()).await.unwrap();
    for sql in ddl::base(Dialect::Mariadb, None).unwrap().up() {
        conn.query_drop(sql).await.unwrap();
    }
    conn.query_drop("CREATE TABLE t (n BIGINT)").await.unwrap();
    conn.query_drop("INSERT INTO t VALUES (0)").await.unwrap();
    let (fence, ask) = asked("r");
    side_by_side("mariadb", async |check| {
        let mut tx = conn.start_transaction(mysql_async::TxOpts::default()).await.unwrap();
        if check {
            let _ = mariadb::admit(&mut tx, &fence, &ask).await.unwrap();
        }
        tx.exec_drop("UPDATE t SET n = n + 1", ()).await.unwrap();
        tx.commit().await.unwrap();
    })
    .await
}

async fn on_sqlite() -> bool {
    let directory = tempfile::tempdir().unwrap();
    let mut connection = rusqlite::Connection::open(directory.path().join("test.db")).unwrap();
    connection.execute_batch(&ddl::base(Dialect::Sqlite, None).unwrap().up_script()).unwrap();
    connection
        .execute_batch("PRAGMA journal_mode = wal; CREATE TABLE t (n); INSERT INTO t VALUES (0)")
        .unwrap();
    let (fence, ask) = asked("r");
    side_by_side("sqlite", async |check| {
        let tx = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        if check {
            let _ = sqlite::admit(&tx, &fence, &ask).unwrap();
        }
        tx.prepare_cached("UPDATE t SET n = n + 1").unwrap().execute([]).unwrap();
        tx.commit().unwrap();
    })
    .await
}

async fn on_redis() -> bool {
    let server = leasehold_testbed::redis();
    let mut connection =
        redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let ((fence, ask), hashes) = (asked("r"), RedisFence::new("fence:"));
    side_by_side("redis", async |check| {
        if check {
            hashes.write(&mut connection, &fence, &ask, Change::Put(b"value")).await.unwrap();
        } else {
            let mut set = redis::cmd("HSET");
            set.arg("plain").arg("value").arg("value").exec_async(&mut connection).await.unwrap();
        }
    })
    .await
}

/// A handler that does nothing, with and without the layer that asks a stored maximum.
async fn middleware() -> bool {
    let server = leasehold_testbed::redis();
    let connection =
        redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    let rollout = Arc::new(Rollout::new(Stage::Require, (), || WallTime(0)));
    let (fence, _) = asked("r");
    let maximum = RedisMaximum::new(RedisFence::new("fence:"), connection);
    let layer = FenceLayer::checking(move |_| Some(fence.clone()), maximum, rollout);
    let handler =
        tower::service_fn(|_: Request<()>| async { Ok::<_, Infallible>(Response::new(String::new())) });
    let (plain, fenced) = (handler, layer.layer(handler));
    let request = || Request::post("/").header("X-Fencing-Token", "5").body(()).unwrap();
    side_by_side("middleware over redis", async |check| {
        let response = match check {
            true => fenced.clone().oneshot(request()).await,
            false => plain.oneshot(request()).await,
        };
        assert_eq!(response.unwrap().status(), 200);
    })
    .await
}

/// Many connections, each with a row and a fence of its own, in turns with and without the check.
async fn postgres_throughput() -> bool {
    let server = leasehold_testbed::postgres();
    let connect = async || {
        let (client, connection) =
            tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    };
    let setup = connect().await;
    setup.batch_execute(&ddl::base(Dialect::Postgres, None).unwrap().up_script()).await.unwrap();
    setup.batch_execute("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT)").await.unwrap();
    let mut clients = Vec::new();
    for id in 0..CONNECTIONS {
        setup.batch_execute(&format!("INSERT INTO t VALUES ({id}, 0)")).await.unwrap();
        clients.push((id, connect().await));
    }
    let mut written = [0_usize; 2];
    for turn in 0..2 * TURNS {
        let (check, until) = (turn % 2, now() + TURN);
        let writers = clients.iter_mut().map(|(id, client)| write_until(client, *id, check == 1, until));
        written[check] += futures_util::future::join_all(writers).await.into_iter().sum::<usize>();
    }
    let seconds = TURN.as_secs_f64() * TURNS as f64;
    let [plain, fenced] = written.map(|writes| writes as f64 / seconds);
    let loss = 100.0 * (1.0 - fenced / plain);
    println!("postgres, {CONNECTIONS} connections: {plain:.0} -> {fenced:.0} writes/s, {loss:.1} % less");
    loss < ALLOWED_LOSS
}

async fn write_until(client: &mut tokio_postgres::Client, id: usize, check: bool, until: Instant) -> usize {
    let (fence, ask) = asked(&format!("r/{id}"));
    let update = client.prepare(&format!("UPDATE t SET n = n + 1 WHERE id = {id}")).await.unwrap();
    let prepared = postgres::Prepared::new(client).await.unwrap();
    let mut writes = 0;
    while now() < until {
        let tx = client.transaction().await.unwrap();
        let tx = if check {
            prepared.write(tx, &fence, &ask, &update, &[]).await.unwrap().0
        } else {
            tx.execute(&update, &[]).await.unwrap();
            tx
        };
        tx.commit().await.unwrap();
        writes += 1;
    }
    writes
}
