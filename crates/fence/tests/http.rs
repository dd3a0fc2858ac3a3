//! The HTTP layer, over each stored maximum.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response, StatusCode};
use leasehold_fence::Fence;
use leasehold_fence::cas::{CasFence, FileStore, MemoryStore};
use leasehold_fence::http::{Asked, FenceLayer, Maximum, PostgresMaximum, RedisMaximum, SqliteMaximum};
use leasehold_fence::redis::RedisFence;
use leasehold_fence::rollout::{Rollout, Stage};
use leasehold_fence::signed::{Checker, Key, KeyId, Keyring, Signed};
use leasehold_fence::sql::{Dialect, ddl};
use leasehold_types::{Generation, TenantName, WallTime};
use support::{grant, name};
use tower::{Layer, ServiceExt};

fn rollout(stage: Stage) -> Arc<Rollout> {
    Arc::new(Rollout::new(stage, (), || WallTime(0)))
}

/// The path of a request names its fence; `/free` has none.
fn find(parts: &http::request::Parts) -> Option<Fence> {
    let path = parts.uri.path().trim_start_matches('/');
    (path != "free").then(|| Fence::of(&name(path)))
}

fn checking(maximum: impl Maximum + 'static, rollout: &Arc<Rollout>) -> FenceLayer {
    FenceLayer::checking(find, maximum, rollout.clone())
}

/// Sends one request; the handler answers with what it found in the extensions.
async fn send(layer: &FenceLayer, method: &str, path: &str, headers: &[(&str, &str)]) -> Response<String> {
    let handler = tower::service_fn(|request: Request<()>| async move {
        let asked = request.extensions().get::<Asked>();
        let token = asked.and_then(|asked| asked.ask.as_ref()).map(|ask| ask.token().get());
        Ok::<_, Infallible>(Response::new(format!("{token:?}")))
    });
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    layer.layer(handler).oneshot(request.body(()).unwrap()).await.unwrap()
}

async fn status(layer: &FenceLayer, path: &str, token: &str) -> u16 {
    send(layer, "POST", path, &[("X-Fencing-Token", token)]).await.status().as_u16()
}

/// The story that every stored maximum tells.
async fn refuses_the_late_one(maximum: impl Maximum + 'static) {
    let rollout = rollout(Stage::Require);
    let layer = checking(maximum, &rollout);
    assert_eq!(status(&layer, "/books", "33").await, 200);
    assert_eq!(status(&layer, "/books", "34").await, 200);
    let late = send(&layer, "POST", "/books", &[("X-Fencing-Token", "33")]).await;
    assert_eq!(late.status(), StatusCode::CONFLICT);
    assert_eq!(late.headers()["content-type"], "application/problem+json");
    assert!(late.body().contains("\"code\":\"stale_token\""), "{}", late.body());
    assert!(late.body().contains("\"fencingToken\":33,\"highestToken\":34"), "{}", late.body());
    assert_eq!(status(&layer, "/other-books", "33").await, 200);
    assert_eq!(send(&layer, "POST", "/books", &[]).await.status(), StatusCode::PRECONDITION_REQUIRED);
    assert_eq!(send(&layer, "GET", "/books", &[]).await.status(), StatusCode::OK);
    assert_eq!(send(&layer, "POST", "/free", &[]).await.status(), StatusCode::OK);
    let foreign = [("X-Fencing-Token", "99"), ("X-Fencing-Resource", "payroll")];
    assert!(send(&layer, "POST", "/books", &foreign).await.body().contains("wrong_scope"));
    let counters: Vec<_> =
        rollout.status().into_iter().map(|status| (status.prefix, status.counters)).collect();
    let books = &counters.iter().find(|(prefix, _)| prefix == "books").unwrap().1;
    assert_eq!((books.accepted, books.rejected, books.wrong_scope, books.without_token), (2, 3, 1, 1));
}

#[tokio::test]
async fn sqlite_keeps_the_maximum() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    connection.execute_batch(&ddl::base(Dialect::Sqlite, None).unwrap().up_script()).unwrap();
    refuses_the_late_one(SqliteMaximum::new(connection)).await;
}

#[tokio::test]
async fn files_keep_the_maximum() {
    let directory = tempfile::tempdir().unwrap();
    refuses_the_late_one(CasFence::new(FileStore::open(directory.path()).unwrap())).await;
}

#[tokio::test]
async fn redis_keeps_the_maximum() {
    let server = leasehold_testbed::redis();
    let connection =
        redis::Client::open(server.url()).unwrap().get_multiplexed_async_connection().await.unwrap();
    refuses_the_late_one(RedisMaximum::new(RedisFence::new("fence:"), connection)).await;
}

#[tokio::test]
async fn postgres_keeps_the_maximum_and_out_of_reach_is_503() {
    let server = leasehold_testbed::postgres();
    let connect = async || {
        let (client, connection) =
            tokio_postgres::connect(server.url(), tokio_postgres::NoTls).await.unwrap();
        (client, tokio::spawn(connection))
    };
    connect().await.0.batch_execute(&ddl::base(Dialect::Postgres, None).unwrap().up_script()).await.unwrap();
    refuses_the_late_one(PostgresMaximum(connect().await.0)).await;
    let (rollout, (client, connection)) = (rollout(Stage::Enforce), connect().await);
    let layer = checking(PostgresMaximum(client), &rollout);
    server.kill(0);
    // The process behind the connection notices a moment later.
    let _ = connection.await.unwrap();
    assert_eq!(status(&layer, "/books", "99").await, 503);
    rollout.switch("books", Stage::Shadow);
    assert_eq!(status(&layer, "/books", "99").await, 200, "a shadow does not hurt");
}

#[tokio::test]
async fn a_maximum_in_memory_is_refused_once_it_matters() {
    let rollout = rollout(Stage::Shadow);
    let layer = checking(CasFence::new(MemoryStore::default()), &rollout);
    assert_eq!(status(&layer, "/books", "34").await, 200);
    assert_eq!(status(&layer, "/books", "33").await, 200);
    assert_eq!(rollout.status()[0].counters.would_reject, 1);
    rollout.switch("books", Stage::Enforce);
    assert_eq!(status(&layer, "/books", "35").await, 503);
}

#[tokio::test]
async fn a_mistyped_header_is_not_a_missing_one() {
    let layer = FenceLayer::extracting(find);
    for token in
        ["", "0", "-1", "+5", " 5", "5 ", "5e3", "0x5", "9007199254740992", "18446744073709551616", "five"]
    {
        assert_eq!(status(&layer, "/books", token).await, 400, "{token:?}");
    }
    let twice = [("X-Fencing-Token", "5"), ("X-Fencing-Token", "6")];
    assert_eq!(send(&layer, "POST", "/books", &twice).await.status(), StatusCode::BAD_REQUEST);
    let permit = [("X-Fencing-Token", "5"), ("X-Fencing-Permit", "4294967296")];
    assert_eq!(send(&layer, "POST", "/books", &permit).await.status(), StatusCode::BAD_REQUEST);
    assert_eq!(send(&layer, "POST", "/books", &[("X-Fencing-Token", "5")]).await.body(), "Some(5)");
    assert_eq!(send(&layer, "POST", "/books", &[]).await.body(), "None");
}

/// With keys a number proves nothing, and what becomes of it is for the stage to say.
#[tokio::test]
async fn signed_tokens_alone_count_where_there_are_keys() {
    let (ring, tenant) =
        (Keyring::new(KeyId::new("a").unwrap(), Key::new([7; 32])), TenantName::default_tenant());
    let sign = |ring: &Keyring, resource: &str, token| {
        let (tenant, generation) = (tenant.clone(), Generation(1));
        ring.sign(&Signed { tenant, generation, grant: grant(resource, token) })
    };
    let checker = Arc::new(Checker::new(ring.clone(), tenant.clone(), Generation(1)));
    let (directory, rollout) = (tempfile::tempdir().unwrap(), rollout(Stage::Enforce));
    let maximum = CasFence::new(FileStore::open(directory.path()).unwrap());
    let layer = checking(maximum, &rollout).signed(checker.clone());
    assert_eq!(status(&layer, "/books", &sign(&ring, "books", 34)).await, 200);
    assert_eq!(status(&layer, "/books", &sign(&ring, "books", 33)).await, 409, "signed, and late");
    assert_eq!(status(&layer, "/books", &sign(&ring, "other", 99)).await, 409, "of another lock");
    let refused = send(&layer, "POST", "/books", &[("X-Fencing-Token", "99")]).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(refused.body().contains("untrusted_token"), "{}", refused.body());
    rollout.switch("books", Stage::Shadow);
    assert_eq!(status(&layer, "/books", "99").await, 200, "a shadow stops nothing");
    assert_eq!(rollout.status()[0].counters.would_reject, 1);

    let forger = Keyring::new(KeyId::new("a").unwrap(), Key::new([8; 32]));
    let layer = FenceLayer::extracting(find).signed(checker.clone());
    assert_eq!(status(&layer, "/books", &sign(&forger, "books", 99)).await, 403);
    let token = sign(&ring, "books", 34);
    assert_eq!(send(&layer, "POST", "/books", &[("X-Fencing-Token", &token)]).await.body(), "Some(34)");
    checker.replace(forger.clone());
    assert_eq!(status(&layer, "/books", &token).await, 403, "its key is replaced");
    let lenient = Checker::new(ring, tenant.clone(), Generation(1)).letting_plain_pass();
    let layer = FenceLayer::extracting(find).signed(Arc::new(lenient));
    assert_eq!(status(&layer, "/books", "5").await, 200);
    assert_eq!(status(&layer, "/books", &sign(&forger, "books", 99)).await, 403);
}

/// From shadow to enforce under load, without a restart: what was answered and what was counted agree.
#[tokio::test]
async fn a_stage_is_switched_under_load() {
    let directory = tempfile::tempdir().unwrap();
    let rollout = rollout(Stage::Shadow);
    rollout.switch("books", Stage::Shadow);
    let layer = checking(CasFence::new(FileStore::open(directory.path()).unwrap()), &rollout);
    assert_eq!(status(&layer, "/books", "100").await, 200);
    let stale = async || {
        let answers = futures_util::future::join_all((0..50).map(|_| status(&layer, "/books", "99"))).await;
        answers.into_iter().filter(|&status| status == 409).count()
    };
    assert_eq!(stale().await, 0);
    assert_eq!(rollout.status()[0].counters.would_reject, 50);
    assert!(!rollout.status()[0].next_stage_is_safe());
    rollout.switch("books", Stage::Enforce);
    assert_eq!(stale().await, 50);
    let counters = rollout.status()[0].counters;
    assert_eq!((counters.rejected, counters.would_reject), (50, 0));
}
