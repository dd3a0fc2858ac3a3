//! Who takes turns with whom. Figures are compared within a group alone, and only what a group needs runs meanwhile.

use serde::{Deserialize, Serialize};

use crate::contestant::Contestant;
use crate::workload::Workload;

/// A journal of ours and the recipes that it is compared with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) enum Group {
    Embedded,
    Postgres,
    Etcd,
    Etcd3,
    Zookeeper,
}

impl Group {
    /// All of them, in the order of the page.
    pub(crate) const ALL: [Self; 5] =
        [Self::Embedded, Self::Postgres, Self::Etcd, Self::Etcd3, Self::Zookeeper];

    /// Its name in tables.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Embedded => "embedded journal",
            Self::Postgres => "PostgreSQL",
            Self::Etcd => "etcd",
            Self::Etcd3 => "etcd × 3",
            Self::Zookeeper => "ZooKeeper",
        }
    }

    /// Who takes turns in a workload, ours first.
    pub(crate) fn contestants(self, workload: Workload, clients: usize) -> Vec<Contestant> {
        use Contestant as C;
        let all: &[Contestant] = match self {
            // The goal is the best durable peer, whoever that is; three members are slower than one.
            Self::Embedded if workload == Workload::Handoff => {
                &[C::Embedded, C::Separate, C::Redis, C::RedisVolatile, C::Etcd, C::Zookeeper, C::Postgres]
            }
            Self::Embedded => {
                &[C::Embedded, C::Separate, C::Redis, C::RedisShared, C::RedisVolatile, C::Etcd]
            }
            Self::Postgres => &[C::OnPostgres, C::Postgres],
            Self::Etcd => &[C::OnEtcd, C::Etcd],
            Self::Etcd3 => &[C::OnEtcd3, C::Etcd3],
            Self::Zookeeper => &[C::OnZookeeper, C::Zookeeper],
        };
        all.iter().copied().filter(|who| who.can(workload, clients)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_compared_takes_turns() {
        for group in Group::ALL {
            let contestants = group.contestants(Workload::Cycle, 64);
            assert!(contestants[0].is_ours(), "{group:?}");
            let peer = contestants[0].peer();
            assert!(peer.is_none_or(|peer| contestants.contains(&peer)), "{group:?}");
        }
    }
}
