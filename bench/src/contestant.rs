//! The contestants.

use serde::{Deserialize, Serialize};

use crate::workload::Workload;

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

    /// The Leasehold server that it uses, if it is ours.
    pub(crate) const fn server(self) -> Option<Self> {
        match self {
            Self::Separate => Some(Self::Embedded),
            _ if self.is_ours() => Some(self),
            _ => None,
        }
    }

    /// The recipe in whose name the engine runs that it uses, by itself or as a journal.
    pub(crate) const fn engine(self) -> Option<Self> {
        match self {
            Self::RedisShared => Some(Self::Redis),
            _ if self.is_ours() => self.peer(),
            _ => Some(self),
        }
    }

    /// Whether it runs on a Java virtual machine.
    pub(crate) const fn is_java(self) -> bool {
        matches!(self, Self::Zookeeper | Self::OnZookeeper)
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
            Workload::Renew => !matches!(self, Self::Zookeeper),
            // Neither can ZooKeeper here, and a try at etcd's Lock service always waits.
            Workload::Mixed => !matches!(self, Self::Zookeeper | Self::Etcd | Self::Etcd3),
        }
    }
}
