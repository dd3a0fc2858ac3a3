//! Starts real engines for tests, each in a directory of its own and on free ports of 127.0.0.1.
//!
//! [`postgres`], [`mariadb`], [`redis`], [`etcd`], [`etcd_cluster`], [`zookeeper`] and [`zookeeper_ensemble`] return a [`Server`]: a guard with
//! the address of the engine. Dropping it, also by a panic, ends the processes it started, by their ids, and removes
//! the directory. When the test process itself is killed, the kernel ends the engines with it; the directory then
//! stays in the temporary directory.
//!
//! Engines run with their durability on. Speed bought with durability is asked for by name: [`Setup::without_fsync`].
//! A [`Server`] can be killed, paused, resumed and restarted, one member at a time, for tests of failures. A [`Proxy`]
//! in front of any of them does what networks do, a [`Network`] of namespaces what cables do. [`Seed`] is chance that can be
//! repeated, [`mutants`] are malformed bytes from it. With a [`Certificate`] engines speak TLS ([`Setup::with_tls`]). A [`Collector`] takes traces.
//!
//! What it does not do: install anything, use a running service of the machine, or hide a missing engine. When a
//! program is not found, the call panics with the name of the Debian package that has it.
//!
//! ```
//! let redis = leasehold_testbed::redis();
//! assert!(redis.url().starts_with("redis://127.0.0.1:"));
//! ```

mod certificate;
mod collector;
mod etcd;
mod family;
mod find;
mod keeper;
mod mariadb;
mod member;
mod memory;
mod moto;
mod mutants;
mod network;
mod port;
mod postgres;
mod postgres_pair;
mod proxy;
mod psql;
mod redis;
mod seed;
mod server;
mod setup;
mod shared;
mod zookeeper;

pub use certificate::Certificate;
pub use collector::{CollectedSpan, Collector};
pub use mutants::mutants;
pub use network::{Network, Place};
pub use port::free_port;
pub use postgres_pair::PostgresPair;
pub use proxy::{Fault, Passage, Proxy};
pub use psql::psql;
pub use seed::Seed;
pub use server::Server;
pub use setup::Setup;
pub use shared::Shared;

/// PostgreSQL; the URL is `postgres://postgres@127.0.0.1:PORT/postgres`.
pub fn postgres() -> Server {
    postgres_with(&Setup::default())
}

/// PostgreSQL with chosen settings, each given as `-c name=value`.
pub fn postgres_with(setup: &Setup) -> Server {
    server::start("PostgreSQL", || postgres::launch(setup))
}

/// MariaDB; the URL is `mysql://root@127.0.0.1:PORT/test`.
pub fn mariadb() -> Server {
    mariadb_with(&Setup::default())
}

/// MariaDB with chosen settings, each given as `--name=value`.
pub fn mariadb_with(setup: &Setup) -> Server {
    server::start("MariaDB", || mariadb::launch(setup))
}

/// A stand-in for S3 and DynamoDB; the URL is `http://127.0.0.1:PORT`. It takes any credentials.
pub fn moto() -> Server {
    server::start("moto", moto::launch)
}

/// Redis with an append-only file that is synced at every write; the URL is `redis://127.0.0.1:PORT/`.
pub fn redis() -> Server {
    redis_with(&Setup::default())
}

/// Redis with chosen settings, each given as `--name value`.
pub fn redis_with(setup: &Setup) -> Server {
    server::start("Redis", || redis::launch(setup))
}

/// One etcd member; the URL is `http://127.0.0.1:PORT`.
pub fn etcd() -> Server {
    etcd_cluster(1)
}

/// An etcd cluster; [`Server::endpoints`] has one URL for each member.
pub fn etcd_cluster(members: usize) -> Server {
    etcd_cluster_with(members, &Setup::default())
}

/// An etcd cluster with chosen settings, each given to every member as `--name=value`.
pub fn etcd_cluster_with(members: usize, setup: &Setup) -> Server {
    server::start("etcd", || etcd::launch(&etcd::program(), members, setup))
}

/// One member of etcd 3.5, where [`etcd`] is what the Debian package has.
pub fn etcd_3_5() -> Server {
    server::start("etcd 3.5", || etcd::launch(&etcd::program_3_5(), 1, &Setup::default()))
}

/// A stand-alone ZooKeeper; the URL is `127.0.0.1:PORT`.
pub fn zookeeper() -> Server {
    zookeeper_with(&Setup::default())
}

/// A stand-alone ZooKeeper with chosen settings, each a line `name=value` of its configuration file.
pub fn zookeeper_with(setup: &Setup) -> Server {
    server::start("ZooKeeper", || zookeeper::launch(1, setup))
}

/// A ZooKeeper ensemble; [`Server::endpoints`] has one address for each member, the URL all of them.
pub fn zookeeper_ensemble(members: usize) -> Server {
    server::start("ZooKeeper", || zookeeper::launch(members, &Setup::default()))
}
