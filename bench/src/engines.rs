//! The contestants, and the engines and servers behind them. Everything is started when it is first needed and lives
//! until the end of the run.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::time::Duration;

use leasehold_testbed::{self as testbed, Server as Engine, Setup};
use leasehold_tests::{Server as Node, binary, free_port};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use crate::lockers::{
    Connections, EtcdLocker, LeaseholdLocker, PostgresLocker, RedisLocker, RedisRecipe, StreamLocker,
    ZookeeperLocker, prepare_postgres,
};
use crate::measured::Measured;
use crate::workload::{self, Workload};

/// Who takes part.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) enum Contestant {
    Embedded,
    Separate,
    OnPostgres,
    OnEtcd,
    OnEtcd3,
    OnZookeeper,
    Redis,
    RedisShared,
    RedisVolatile,
    Etcd,
    Etcd3,
    Zookeeper,
    Postgres,
}

impl Contestant {
    /// All of them, ours first.
    pub(crate) const ALL: [Self; 13] = [
        Self::Embedded,
        Self::Separate,
        Self::OnPostgres,
        Self::OnEtcd,
        Self::OnEtcd3,
        Self::OnZookeeper,
        Self::Redis,
        Self::RedisShared,
        Self::RedisVolatile,
        Self::Etcd,
        Self::Etcd3,
        Self::Zookeeper,
        Self::Postgres,
    ];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "Leasehold",
            Self::Separate => "Leasehold, a connection each",
            Self::OnPostgres => "Leasehold on PostgreSQL",
            Self::OnEtcd => "Leasehold on etcd",
            Self::OnEtcd3 => "Leasehold on etcd × 3",
            Self::OnZookeeper => "Leasehold on ZooKeeper",
            Self::Redis => "Redis, synced, with token",
            Self::RedisShared => "Redis, synced, with token, one connection",
            Self::RedisVolatile => "Redis, not synced, no token",
            Self::Etcd => "etcd Lock service",
            Self::Etcd3 => "etcd × 3 Lock service",
            Self::Zookeeper => "ZooKeeper recipe",
            Self::Postgres => "PostgreSQL row lock",
        }
    }

    /// Whether it is ours.
    pub(crate) const fn is_ours(self) -> bool {
        self as usize <= Self::OnZookeeper as usize
    }

    /// The recipe that uses the same engine.
    pub(crate) const fn peer(self) -> Option<Self> {
        match self {
            Self::OnPostgres => Some(Self::Postgres),
            Self::OnEtcd => Some(Self::Etcd),
            Self::OnEtcd3 => Some(Self::Etcd3),
            Self::OnZookeeper => Some(Self::Zookeeper),
            _ => None,
        }
    }

    /// Whether what it acknowledges is on disk.
    pub(crate) const fn is_durable(self) -> bool {
        !matches!(self, Self::RedisVolatile)
    }

    /// Whether it can do this at all, and differs from the others in it.
    pub(crate) const fn can(self, workload: Workload, clients: usize) -> bool {
        if clients == 1 && matches!(self, Self::Separate | Self::RedisShared) {
            return false;
        }
        match workload {
            Workload::Cycle => true,
            // Whoever polls gains nothing by sharing a connection.
            Workload::Handoff => !matches!(self, Self::RedisShared),
            // A ZooKeeper session is renewed by its connection alone.
            Workload::Renew => !matches!(self, Self::Zookeeper | Self::OnZookeeper),
            // Neither can ZooKeeper here, and a try at etcd's Lock service always waits.
            Workload::Mixed => matches!(
                self,
                Self::Embedded
                    | Self::Separate
                    | Self::OnPostgres
                    | Self::Redis
                    | Self::RedisShared
                    | Self::RedisVolatile
                    | Self::Postgres
            ),
        }
    }
}

/// A Leasehold server with its directory.
pub(crate) struct Served {
    pub(crate) node: Node,
    dir: TempDir,
}

impl Served {
    /// On the embedded journal, or on the one at this URL.
    pub(crate) fn start(journal: Option<&str>) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let more: Vec<&str> = journal.map_or_else(Vec::new, |url| vec!["--journal", url]);
        Ok(Self { node: serve(free_port(), &dir, &more), dir })
    }

    /// Killed and started again on the same directory; returns when it is ready.
    pub(crate) fn restart(self) -> Self {
        let Self { node, dir } = self;
        let port = node.port();
        node.kill9();
        Self { node: serve(port, &dir, &[]), dir }
    }
}

/// A server that logs as little as its peers do: none of them writes a line for every lock.
fn serve(port: u16, dir: &TempDir, more: &[&str]) -> Node {
    // However this program ends, it leaves no server behind.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(binary::path());
    command.arg("serve").env("LEASEHOLD_LOG", "warn,leasehold::locks=off");
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut node = Node::spawn_by(command, address, &dir.path().join("data"), more);
    node.wait_ready();
    node
}

/// Everything that was started.
#[derive(Default)]
pub(crate) struct Engines {
    postgres: Option<Engine>,
    etcd: Option<Engine>,
    etcd3: Option<Engine>,
    zookeeper: Option<Engine>,
    redis: Option<Engine>,
    redis_volatile: Option<Engine>,
    served: Vec<(Contestant, Served)>,
}

impl Engines {
    /// Lets a contestant work for one turn.
    pub(crate) async fn turn(
        &mut self,
        who: Contestant,
        workload: Workload,
        clients: usize,
        length: Duration,
    ) -> anyhow::Result<Measured> {
        use Contestant as C;
        match who {
            C::Embedded | C::Separate | C::OnPostgres | C::OnEtcd | C::OnEtcd3 | C::OnZookeeper => {
                let server = if who == C::Separate { C::Embedded } else { who };
                let url = self.served(server)?.node.url();
                let each = if who == C::Separate { Connections::OneEach } else { Connections::One };
                match workload {
                    Workload::Cycle | Workload::Handoff => {
                        let mut lockers = LeaseholdLocker::connect(&url, each, clients).await?;
                        workload::turn(workload, &mut lockers, length).await
                    }
                    Workload::Renew | Workload::Mixed => {
                        let mut lockers = StreamLocker::connect(&url, each, clients).await?;
                        workload::turn(workload, &mut lockers, length).await
                    }
                }
            }
            C::Redis | C::RedisShared | C::RedisVolatile => {
                let recipe = if who == C::RedisVolatile { RedisRecipe::Plain } else { RedisRecipe::Token };
                let each = if who == C::RedisShared { Connections::One } else { Connections::OneEach };
                let url = self.engine(who).url().to_owned();
                let mut lockers = RedisLocker::connect(&url, recipe, each, clients).await?;
                workload::turn(workload, &mut lockers, length).await
            }
            C::Etcd | C::Etcd3 => {
                let endpoints = self.engine(who).endpoints().to_vec();
                workload::turn(workload, &mut EtcdLocker::connect(&endpoints, clients).await?, length).await
            }
            C::Zookeeper => {
                let hosts = self.engine(who).url().to_owned();
                workload::turn(workload, &mut ZookeeperLocker::connect(&hosts, clients).await?, length).await
            }
            C::Postgres => {
                let url = self.engine(who).url().to_owned();
                prepare_postgres(&url).await?;
                workload::turn(workload, &mut PostgresLocker::connect(&url, clients).await?, length).await
            }
        }
    }

    /// The Leasehold server of a contestant.
    pub(crate) fn served(&mut self, who: Contestant) -> anyhow::Result<&Served> {
        if !self.served.iter().any(|(of, _)| *of == who) {
            let journal = who.peer().map(|peer| journal_url(peer, self.engine(peer)));
            let served = Served::start(journal.as_deref())?;
            self.served.push((who, served));
        }
        let served = self.served.iter().find(|(of, _)| *of == who);
        Ok(served.map(|(_, served)| served).expect("it was just made sure of"))
    }

    /// The engine of a recipe.
    pub(crate) fn engine(&mut self, who: Contestant) -> &Engine {
        match who {
            Contestant::Postgres => self.postgres.get_or_insert_with(|| {
                testbed::postgres_with(&Setup::default().set("max_connections", "400"))
            }),
            Contestant::Etcd => self.etcd.get_or_insert_with(|| testbed::etcd_cluster_with(1, &etcd_setup())),
            Contestant::Etcd3 => {
                self.etcd3.get_or_insert_with(|| testbed::etcd_cluster_with(3, &etcd_setup()))
            }
            Contestant::Zookeeper => self
                .zookeeper
                .get_or_insert_with(|| testbed::zookeeper_with(&Setup::default().set("maxClientCnxns", "0"))),
            Contestant::RedisVolatile => self
                .redis_volatile
                .get_or_insert_with(|| testbed::redis_with(&Setup::default().set("appendfsync", "everysec"))),
            _ => self.redis.get_or_insert_with(testbed::redis),
        }
    }
}

/// etcd as its operators run it: old revisions go, and a long run does not meet the bound of its database.
fn etcd_setup() -> Setup {
    let compaction = [("auto-compaction-mode", "revision"), ("auto-compaction-retention", "10000")];
    let all = compaction.into_iter().chain([("quota-backend-bytes", "8589934592")]);
    all.fold(Setup::default(), |setup, (name, value)| setup.set(name, value))
}

/// How `serve --journal` is told of an engine.
fn journal_url(peer: Contestant, engine: &Engine) -> String {
    let hosts: Vec<_> = engine.addresses().iter().map(ToString::to_string).collect();
    let hosts = hosts.join(",");
    match peer {
        Contestant::Postgres => format!("postgres://postgres@{hosts}/postgres?sslmode=disable"),
        Contestant::Zookeeper => format!("zookeeper://{hosts}"),
        _ => format!("etcd://{hosts}?tls=off"),
    }
}
