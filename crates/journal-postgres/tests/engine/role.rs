//! The role and the database that `deploy/postgres/role.sql` makes: enough for a node, and not more.

use leasehold_journal::{Journal as _, OpenError, Outcome};
use leasehold_testbed::{Server, psql};
use leasehold_types::{Durability, Slot};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::kit::{Node, claim, hasty, journal, raw};
use crate::passwords::asking;

/// As an operator would run it.
fn make_role(server: &Server) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/postgres/role.sql");
    psql(server.url(), &["-v", "password=s3cret", "-f", file]);
}

/// The URL of a database as a role sees it.
fn url(server: &Server, role: &str, database: &str) -> String {
    let (_, address) = server.url().split_once('@').unwrap();
    let (address, _) = address.split_once('/').unwrap();
    format!("postgres://{role}@{address}/{database}")
}

async fn is_forbidden(client: &Client, statement: &str) {
    let error = client.batch_execute(statement).await.expect_err(statement);
    assert_eq!(error.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{statement}: {error}");
}

#[tokio::test]
async fn a_node_does_everything_with_it() {
    let (server, _rules) = asking();
    make_role(&server);
    let ours = url(&server, "leasehold:s3cret", "leasehold");
    let mut node = Node::open(&journal(&ours)).await;
    // fsync is off here: the role may see that.
    assert_eq!(node.opened.durability, Durability::Lossy);
    for _ in 0..3 {
        node.commit("allowed").await;
    }
    node.opened.snapshots.begin(node.tail).await.unwrap();
    node.opened.snapshots.chunk("state".into()).await.unwrap();
    assert_eq!(node.opened.snapshots.install(Slot(3)).await, Outcome::Committed);
    let mut successor = Node::open(&journal(&ours)).await;
    assert_eq!(successor.tail, node.tail);
    successor.commit("goes on").await;
    let guess = hasty(&url(&server, "leasehold:guess", "leasehold")).open(claim()).await;
    assert!(matches!(guess, Err(OpenError::Refused(_))), "{guess:?}");
}

#[tokio::test]
async fn it_can_do_nothing_else() {
    let (server, _rules) = asking();
    make_role(&server);
    let operator = raw(server.url()).await;
    operator.batch_execute("CREATE TABLE theirs (); CREATE ROLE other LOGIN PASSWORD 'other'").await.unwrap();
    let at_home = raw(&url(&server, "leasehold:s3cret", "leasehold")).await;
    let statements = [
        "CREATE ROLE more",
        "CREATE DATABASE more",
        "ALTER ROLE leasehold SUPERUSER",
        "ALTER ROLE other PASSWORD 'taken'",
        "ALTER SYSTEM SET fsync = off",
        "SELECT rolpassword FROM pg_authid",
        "SELECT pg_read_file('PG_VERSION')",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
    ];
    for statement in statements {
        is_forbidden(&at_home, statement).await;
    }
    let elsewhere = raw(&url(&server, "leasehold:s3cret", "postgres")).await;
    for statement in ["SELECT * FROM theirs", "DROP TABLE theirs", "CREATE SCHEMA ours"] {
        is_forbidden(&elsewhere, statement).await;
    }
    // And nobody else comes in.
    let other = tokio_postgres::connect(&url(&server, "other:other", "leasehold"), NoTls).await;
    let refused = other.err().and_then(|error| error.code().cloned());
    assert_eq!(refused, Some(SqlState::INSUFFICIENT_PRIVILEGE));
}
