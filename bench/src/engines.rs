//! The engines and servers behind the contestants. Each is started when it is first needed, and ended when what comes next
//! does not need it.

use std::time::Duration;

use anyhow::Context as _;
use leasehold_testbed::{self as testbed, Server as Engine, Setup};

use crate::contestant::Contestant;
use crate::lockers::{
    Connections, EtcdLocker, LeaseholdLocker, PostgresLocker, RedisLocker, RedisRecipe, StreamLocker,
    ZookeeperLocker, prepare_postgres,
};
use crate::measured::Measured;
use crate::served::Served;
use crate::workload::{self, Workload};

/// Everything that runs.
#[derive(Default)]
pub(crate) struct Engines {
    // Before the engines, so that a server ends before its journal does.
    served: Vec<(Contestant, Served)>,
    engines: Vec<(Contestant, Engine)>,
    /// Who has worked since what it needs was started.
    warm: Vec<Contestant>,
}

impl Engines {
    /// Ends whatever none of these needs: what only stands by costs time of processors that the others want.
    pub(crate) fn end_all_but(&mut self, needed: &[Contestant]) {
        self.served.retain(|(of, _)| needed.iter().any(|who| who.server() == Some(*of)));
        self.engines.retain(|(of, _)| needed.iter().any(|who| who.engine() == Some(*of)));
        self.warm.retain(|who| needed.contains(who));
    }

    /// Whether a contestant has worked already since it was needed; from now on it has.
    pub(crate) fn was_warm(&mut self, who: Contestant) -> bool {
        let warm = self.warm.contains(&who);
        self.warm.push(who);
        warm
    }

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
                let url = self.served(who)?.node.url();
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

    /// The Leasehold server of a contestant that is ours.
    pub(crate) fn served(&mut self, who: Contestant) -> anyhow::Result<&Served> {
        let server = who.server().context("a contestant that is ours has a server")?;
        let place = match self.served.iter().position(|(of, _)| *of == server) {
            Some(place) => place,
            None => {
                let journal = server.peer().map(|peer| journal_url(peer, self.engine(peer)));
                self.served.push((server, Served::start(journal.as_deref())?));
                self.served.len() - 1
            }
        };
        Ok(&self.served[place].1)
    }

    /// The engine of a recipe.
    pub(crate) fn engine(&mut self, who: Contestant) -> &Engine {
        let recipe = who.engine().unwrap_or(who);
        let place = match self.engines.iter().position(|(of, _)| *of == recipe) {
            Some(place) => place,
            None => {
                self.engines.push((recipe, start(recipe)));
                self.engines.len() - 1
            }
        };
        &self.engines[place].1
    }
}

/// Starts the engine of a recipe.
fn start(recipe: Contestant) -> Engine {
    let with = |name, value| Setup::default().set(name, value);
    match recipe {
        Contestant::Postgres => testbed::postgres_with(&with("max_connections", "400")),
        Contestant::Etcd => testbed::etcd_cluster_with(1, &etcd_setup()),
        Contestant::Etcd3 => testbed::etcd_cluster_with(3, &etcd_setup()),
        Contestant::Zookeeper => testbed::zookeeper_with(&with("maxClientCnxns", "0")),
        Contestant::RedisVolatile => testbed::redis_with(&with("appendfsync", "everysec")),
        _ => testbed::redis(),
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
