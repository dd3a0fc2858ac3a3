//! The Redis fence, on a private server.

#![allow(clippy::unwrap_used, reason = "a helper of tests that panics is a test that fails")]

mod support;

use leasehold_fence::conformance::{Protected, race, run};
use leasehold_fence::redis::{Change, RedisFence};
use leasehold_fence::{Ask, Fence, Grant};
use leasehold_testbed::Server;
use redis::aio::MultiplexedConnection;
use support::{Suite, failure, grant, name, seed, word};

struct Hashes {
    fence: RedisFence,
    connections: Vec<MultiplexedConnection>,
    _server: Server,
}

impl Hashes {
    async fn new() -> Self {
        let server = leasehold_testbed::redis();
        let client = redis::Client::open(server.url()).unwrap();
        let mut connections = Vec::new();
        for _ in 0..8 {
            connections.push(client.get_multiplexed_async_connection().await.unwrap());
        }
        Self { fence: RedisFence::new("fence:"), connections, _server: server }
    }

    fn connection(&self, text: &str) -> MultiplexedConnection {
        self.connections[text.len() % self.connections.len()].clone()
    }
}

impl Protected for Hashes {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Suite {
        let line = format!("{line}\n");
        let change = Change::Append(line.as_bytes());
        self.fence.write(&mut self.connection(&line), fence, ask, change).await.map_err(failure)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Suite {
        self.fence.claim(&mut self.connection(""), fence, grant).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let value = self.fence.value(&mut self.connection(""), fence).await.unwrap().unwrap_or_default();
        String::from_utf8(value).unwrap().lines().map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn the_script_keeps_the_contract() {
    run(&Hashes::new().await, seed()).await;
}

#[tokio::test]
async fn sixty_four_writers_race() {
    race(&Hashes::new().await, seed(), support::race_length()).await;
}

#[tokio::test]
async fn a_deleted_value_does_not_take_the_fence_with_it() {
    let hashes = Hashes::new().await;
    let (fence, mut connection) = (Fence::of(&name("r")), hashes.connection(""));
    let mut write = async |token, change| {
        word(&hashes.fence.write(&mut connection, &fence, &grant("r", token).write(), change).await)
    };
    assert_eq!(write(5, Change::Put(b"five")).await, "admitted");
    assert_eq!(write(6, Change::Delete).await, "admitted");
    assert_eq!(write(5, Change::Put(b"late")).await, "stale");
    assert_eq!(hashes.fence.value(&mut hashes.connection(""), &fence).await.unwrap(), None);
}

#[tokio::test]
async fn an_impossible_row_admits_nobody() {
    let hashes = Hashes::new().await;
    let mut connection = hashes.connection("");
    for (n, odd) in ["-1", "9007199254740992", "nan", "inf", "x", ""].into_iter().enumerate() {
        let thing = format!("r{n}");
        let fence = Fence::of(&name(&thing));
        let mut set = redis::cmd("HSET");
        set.arg(hashes.fence.key(&fence)).arg("fence:token:-1").arg(odd);
        set.exec_async(&mut connection).await.unwrap();
        let ask = grant(&thing, 9_007_199_254_740_991).write();
        let outcome = hashes.fence.write(&mut connection, &fence, &ask, Change::Put(b"x")).await;
        assert_eq!(word(&outcome), "corrupt", "{odd:?}");
    }
}

/// What the fence has admitted survives a crash of Redis, with the append-only file synced at every write.
#[tokio::test]
async fn the_maximum_survives_a_crash() {
    let server = leasehold_testbed::redis();
    let client = redis::Client::open(server.url()).unwrap();
    let (hashes, fence) = (RedisFence::new(""), Fence::of(&name("r")));
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    hashes.claim(&mut connection, &fence, &grant("r", 9)).await.unwrap();
    server.kill(0);
    server.restart(0);
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    assert_eq!(word(&hashes.claim(&mut connection, &fence, &grant("r", 8)).await), "stale");
}
