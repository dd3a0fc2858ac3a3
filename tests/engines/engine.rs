//! The engines that drills run on, each as nodes are told of it.

use std::net::SocketAddr;
use std::time::Duration;

use leasehold_testbed::{Proxy, Server};

/// Which engine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Postgres,
    Etcd,
    Etcd3,
    Zookeeper,
    Zookeeper3,
    Redis,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Etcd => "etcd",
            Self::Etcd3 => "etcd3",
            Self::Zookeeper => "zookeeper",
            Self::Zookeeper3 => "zookeeper3",
            Self::Redis => "redis",
        }
    }

    /// What is promised at default settings: after the active node died, another serves within this.
    pub(crate) const fn serving_again(self) -> Duration {
        match self {
            Self::Zookeeper | Self::Zookeeper3 => Duration::from_secs(5),
            _ => Duration::from_secs(3),
        }
    }

    fn start(self) -> Server {
        match self {
            Self::Postgres => leasehold_testbed::postgres(),
            Self::Etcd => leasehold_testbed::etcd(),
            Self::Etcd3 => leasehold_testbed::etcd_cluster(3),
            Self::Zookeeper => leasehold_testbed::zookeeper(),
            Self::Zookeeper3 => leasehold_testbed::zookeeper_ensemble(3),
            Self::Redis => leasehold_testbed::redis(),
        }
    }
}

/// A running engine.
pub(crate) struct Engine {
    pub(crate) kind: Kind,
    pub(crate) server: Server,
}

impl Engine {
    pub(crate) fn start(kind: Kind) -> Self {
        Self { kind, server: kind.start() }
    }

    /// The journal's URL.
    pub(crate) fn url(&self) -> String {
        self.url_at(&self.server.addresses())
    }

    /// The journal's URL when the members are reached at these addresses.
    pub(crate) fn url_at(&self, addresses: &[SocketAddr]) -> String {
        let hosts: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
        let hosts = hosts.join(",");
        match self.kind {
            Kind::Postgres => format!("postgres://postgres@{hosts}/postgres?sslmode=disable"),
            Kind::Etcd | Kind::Etcd3 => format!("etcd://{hosts}?tls=off"),
            Kind::Zookeeper | Kind::Zookeeper3 => format!("zookeeper://{hosts}"),
            Kind::Redis => format!("redis://{hosts}"),
        }
    }

    /// A proxy before each member, and the URL that leads through them.
    pub(crate) fn behind_proxies(&self) -> (Vec<Proxy>, String) {
        let proxies: Vec<Proxy> = self.server.addresses().into_iter().map(Proxy::before).collect();
        let addresses: Vec<SocketAddr> = proxies.iter().map(Proxy::address).collect();
        let url = self.url_at(&addresses);
        (proxies, url)
    }
}
