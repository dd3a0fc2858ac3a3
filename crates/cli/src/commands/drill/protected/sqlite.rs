//! SQLite.

use std::time::Duration;

use async_trait::async_trait;
use leasehold_fence::sql::{Dialect, TableName};
use leasehold_fence::{Fence, Grant, sqlite};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};

use super::sql::{self, KEY, Target};
use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

const D: Dialect = Dialect::Sqlite;
/// A writer that waits this long for another one has met a program that does not let go.
const BUSY: Duration = Duration::from_secs(30);

pub(super) struct Sqlite {
    connection: Connection,
    address: Address,
    target: Target,
    fence: Fence,
    fenced: bool,
}

impl Sqlite {
    pub(super) fn open(path: &str, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let connection = Connection::open(path).map_err(unusable(&address))?;
        connection.busy_timeout(BUSY).map_err(unusable(&address))?;
        Ok(Self {
            connection,
            address,
            target: Target::of(place)?,
            fence: place.fence(),
            fenced: place.fenced,
        })
    }

    fn users(
        &mut self,
        grant: &Grant,
        table: &TableName,
        statement: Option<String>,
    ) -> Result<Written, Failure> {
        let address = self.address.clone();
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(unusable(&address))?;
        sqlite::present(&transaction, grant).map_err(unusable(&address))?;
        let statement = match statement {
            Some(statement) => statement,
            None => {
                let column = first_column(&transaction, table).map_err(unusable(&address))?;
                sql::no_change(table, D, &column.ok_or_else(|| sql::no_table(table))?)
            }
        };
        match transaction.execute(&statement, []) {
            Ok(rows) => {
                sql::wrote_a_row(table, rows as u64)?;
                sqlite::withdraw(&transaction).map_err(unusable(&address))?;
                transaction.commit().map_err(unusable(&address))?;
                Ok(Written::Accepted)
            }
            Err(error) => match sqlite::refused(&error) {
                Some(words) => Ok(Written::Refused(words.to_owned())),
                None => Err(unusable(&address)(error)),
            },
        }
    }
}

#[async_trait]
impl Protected for Sqlite {
    async fn make(&mut self) -> Result<(), Failure> {
        for statement in self.target.make(D) {
            self.connection.execute_batch(&statement).map_err(unusable(&self.address))?;
        }
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        let table = match &self.target {
            Target::Users { table, statement } => {
                let (table, statement) = (table.clone(), statement.clone());
                return self.users(grant, &table, statement);
            }
            Target::Own(table) => table.clone(),
        };
        if !self.fenced {
            let statement = Target::plain(&table, D, "?1");
            self.connection.execute(&statement, [text]).map_err(unusable(&self.address))?;
            return Ok(Written::Accepted);
        }
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(unusable(&self.address))?;
        let ask = grant.write();
        let outcome = sqlite::update_row(
            &transaction,
            &self.fence,
            &ask,
            &table,
            ("id = ?1", &[&KEY]),
            ("note = ?2", &[&text]),
        );
        if outcome.is_ok() {
            transaction.commit().map_err(unusable(&self.address))?;
        }
        written(&self.address, outcome)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let Some(statement) = self.target.read(D) else { return Ok(None) };
        self.connection.query_row(&statement, [], |row| row.get(0)).map(Some).map_err(unusable(&self.address))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        match self.target.remove(D) {
            Some(statement) => self.connection.execute_batch(&statement).map_err(unusable(&self.address)),
            None => Ok(()),
        }
    }
}

fn first_column(connection: &Connection, table: &TableName) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT name FROM pragma_table_info(?1) ORDER BY cid LIMIT 1";
    connection.query_row(sql, [table.name()], |row| row.get(0)).optional()
}
