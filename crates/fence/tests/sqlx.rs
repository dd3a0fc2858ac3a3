//! The fence table of PostgreSQL through sqlx.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use leasehold_fence::conformance::{Outcome, Protected, agreement, cases, race};
use leasehold_fence::rollout::{Rollout, Stage};
use leasehold_fence::sql::{Dialect, ddl};
use leasehold_fence::{Ask, Fence, Grant, sqlx as fenced};
use leasehold_types::WallTime;
use sqlx::postgres::{PgPool, PgPoolOptions};
use sqlx::{Executor, Row};
use support::{failure, grant, name, race_length, seed, unknown, word};

async fn pool(url: &str) -> PgPool {
    let pool = PgPoolOptions::new().max_connections(8).connect(url).await.unwrap();
    for sql in ddl::base(Dialect::Postgres, None).unwrap().up() {
        pool.execute(sqlx::AssertSqlSafe(sql.clone())).await.unwrap();
    }
    pool.execute("CREATE TABLE line (n BIGSERIAL, thing TEXT, line TEXT)").await.unwrap();
    pool
}

/// Lines in a table, each written in the transaction of its check.
struct Lines(PgPool);

impl Protected for Lines {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Outcome {
        let mut tx = self.0.begin().await.map_err(unknown)?;
        let mut admitted = fenced::admit(&mut tx, fence, ask).await.map_err(failure)?;
        let write = sqlx::query("INSERT INTO line (thing, line) VALUES ($1, $2)");
        let write = write.bind(fence.name().to_string()).bind(line.to_owned());
        write.execute(&mut **admitted).await.map_err(unknown)?;
        tx.commit().await.map_err(unknown)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Outcome {
        let mut connection = self.0.acquire().await.map_err(unknown)?;
        fenced::claim(&mut connection, fence, grant).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let read = sqlx::query("SELECT line FROM line WHERE thing = $1 ORDER BY n");
        let rows = read.bind(fence.name().to_string()).fetch_all(&self.0).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect()
    }
}

#[tokio::test]
async fn the_fence_table_keeps_the_contract() {
    let server = leasehold_testbed::postgres();
    let lines = Lines(pool(server.url()).await);
    cases(&lines).await;
    agreement(&lines, seed()).await;
    race(&lines, seed(), race_length()).await;
}

#[tokio::test]
async fn a_stage_decides_and_an_operator_raises() {
    let server = leasehold_testbed::postgres();
    let pool = pool(server.url()).await;
    let (fence, rollout) = (Fence::of(&name("r")), Rollout::new(Stage::Shadow, (), || WallTime(0)));
    let mut connection = pool.acquire().await.unwrap();
    fenced::raise_past(&mut connection, &fence, &grant("r", 33)).await.unwrap();
    fenced::raise_past(&mut connection, &fence, &grant("r", 20)).await.unwrap();
    let late = grant("r", 33).write();
    let mut tx = pool.begin().await.unwrap();
    assert_eq!(word(&fenced::admit(&mut tx, &fence, &late).await), "stale");
    assert_eq!(word(&fenced::admit_staged(&mut tx, &fence, &late, &rollout).await), "admitted");
    rollout.switch("r", Stage::Enforce);
    assert_eq!(word(&fenced::admit_staged(&mut tx, &fence, &late, &rollout).await), "stale");
    tx.rollback().await.unwrap();
}
