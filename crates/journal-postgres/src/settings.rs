//! What an acknowledged commit survives, as far as the engine tells (J6).

use leasehold_types::Durability;
use tokio_postgres::Row;

use crate::connection::{Connection, Trouble};
use crate::sql;

/// The settings that decide it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    fsync: bool,
    full_page_writes: bool,
    synchronous_commit: String,
    synchronous_standby_names: String,
    /// Physical standbys that are connected, or that have a slot waiting for them.
    standbys: i64,
}

impl Settings {
    pub(crate) async fn read(connection: &Connection) -> Result<Self, Trouble> {
        let rows = connection.query(sql::SETTINGS, &[]).await?;
        rows.first()
            .map(Self::of)
            .ok_or_else(|| Trouble::Unknown("the engine did not tell its settings".to_owned()))
    }

    fn of(row: &Row) -> Self {
        Self {
            fsync: row.get::<_, &str>(0) == "on",
            full_page_writes: row.get::<_, &str>(1) == "on",
            synchronous_commit: row.get(2),
            synchronous_standby_names: row.get(3),
            standbys: row.get(4),
        }
    }

    /// Why a commit can be lost; `None` if it cannot, as far as can be seen from here.
    pub(crate) fn weakness(&self) -> Option<&'static str> {
        if !self.fsync {
            return Some("fsync is off: a power cut loses commits, or the whole database");
        }
        if !self.full_page_writes {
            return Some("full_page_writes is off: a power cut can tear a page");
        }
        if !["on", "remote_apply"].contains(&self.synchronous_commit.as_str()) {
            return Some("synchronous_commit is weaker than on");
        }
        if self.standbys > 0 && self.synchronous_standby_names.trim().is_empty() {
            return Some("there is a standby, and none is synchronous: its promotion loses commits");
        }
        None
    }

    pub(crate) fn durability(&self) -> Durability {
        if self.weakness().is_some() { Durability::Lossy } else { Durability::Durable }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn safe() -> Settings {
        Settings {
            fsync: true,
            full_page_writes: true,
            synchronous_commit: "on".to_owned(),
            synchronous_standby_names: String::new(),
            standbys: 0,
        }
    }

    #[test]
    fn each_weak_setting_makes_it_lossy() {
        assert_eq!(safe().durability(), Durability::Durable);
        let weak = [
            Settings { fsync: false, ..safe() },
            Settings { full_page_writes: false, ..safe() },
            Settings { synchronous_commit: "local".to_owned(), ..safe() },
            Settings { standbys: 1, ..safe() },
        ];
        for settings in weak {
            assert_eq!(settings.durability(), Durability::Lossy, "{settings:?}");
        }
        let synchronous =
            Settings { standbys: 2, synchronous_standby_names: "ANY 1 (a, b)".to_owned(), ..safe() };
        assert_eq!(synchronous.durability(), Durability::Durable);
    }
}
