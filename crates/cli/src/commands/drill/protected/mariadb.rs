//! MariaDB and MySQL.

use async_trait::async_trait;
use leasehold_fence::sql::{Dialect, TableName};
use leasehold_fence::{Fence, Grant, mariadb};
use mysql_async::prelude::Queryable as _;
use mysql_async::{Conn, Opts, OptsBuilder, Transaction, TxOpts, Value};

use super::sql::{self, KEY, Target};
use super::{Address, Place, Protected, Written, unusable, written};
use crate::failure::Failure;

const D: Dialect = Dialect::Mariadb;

pub(super) struct Mariadb {
    connection: Conn,
    address: Address,
    target: Target,
    fence: Fence,
    fenced: bool,
}

impl Mariadb {
    pub(super) async fn connect(url: &str, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let options = Opts::from_url(url).map_err(unusable(&address))?;
        // Not by a socket that the server offers: the address is what was asked for, and a network may be in between.
        let options = OptsBuilder::from_opts(options).prefer_socket(Some(false));
        let connection = Conn::new(options).await.map_err(unusable(&address))?;
        Ok(Self {
            connection,
            address,
            target: Target::of(place)?,
            fence: place.fence(),
            fenced: place.fenced,
        })
    }

    async fn users(
        &mut self,
        grant: &Grant,
        table: &TableName,
        statement: Option<String>,
    ) -> Result<Written, Failure> {
        let address = self.address.clone();
        let mut transaction =
            self.connection.start_transaction(TxOpts::default()).await.map_err(unusable(&address))?;
        mariadb::present(&mut transaction, grant).await.map_err(unusable(&address))?;
        let statement = match statement {
            Some(statement) => statement,
            None => {
                let column = first_column(&mut transaction, table).await.map_err(unusable(&address))?;
                sql::no_change(table, D, &column.ok_or_else(|| sql::no_table(table))?)
            }
        };
        // A row that is set to what it is counts as found here, not as changed.
        let outcome = transaction.query_iter(statement).await.map(|result| result.info().into_owned());
        match outcome {
            Ok(info) => {
                sql::wrote_a_row(table, matched(&info, transaction.affected_rows()))?;
                mariadb::withdraw(&mut transaction).await.map_err(unusable(&address))?;
                transaction.commit().await.map_err(unusable(&address))?;
                Ok(Written::Accepted)
            }
            Err(error) => match mariadb::refused(&error) {
                Some(refused) => Ok(Written::Refused(refused.message().to_owned())),
                None => Err(unusable(&address)(error)),
            },
        }
    }
}

#[async_trait]
impl Protected for Mariadb {
    async fn make(&mut self) -> Result<(), Failure> {
        for statement in self.target.make(D) {
            self.connection.query_drop(statement).await.map_err(unusable(&self.address))?;
        }
        Ok(())
    }

    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure> {
        let table = match &self.target {
            Target::Users { table, statement } => {
                let (table, statement) = (table.clone(), statement.clone());
                return self.users(grant, &table, statement).await;
            }
            Target::Own(table) => table.clone(),
        };
        if !self.fenced {
            let statement = Target::plain(&table, D, "?");
            self.connection.exec_drop(statement, (text,)).await.map_err(unusable(&self.address))?;
            return Ok(Written::Accepted);
        }
        let mut transaction =
            self.connection.start_transaction(TxOpts::default()).await.map_err(unusable(&self.address))?;
        let key = ("id = :id", vec![("id".to_owned(), Value::from(KEY))]);
        let set = ("note = :note", vec![("note".to_owned(), Value::from(text))]);
        let outcome =
            mariadb::update_row(&mut transaction, &self.fence, &grant.write(), &table, key, set).await;
        match outcome {
            Ok(()) => transaction.commit().await.map_err(unusable(&self.address))?,
            Err(_) => transaction.rollback().await.map_err(unusable(&self.address))?,
        }
        written(&self.address, outcome)
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let Some(statement) = self.target.read(D) else { return Ok(None) };
        self.connection.query_first(statement).await.map_err(unusable(&self.address))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        match self.target.remove(D) {
            Some(statement) => self.connection.query_drop(statement).await.map_err(unusable(&self.address)),
            None => Ok(()),
        }
    }
}

async fn first_column(
    transaction: &mut Transaction<'_>,
    table: &TableName,
) -> Result<Option<String>, mysql_async::Error> {
    let sql = "SELECT column_name FROM information_schema.columns \
               WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ? AND generation_expression IS NULL \
               ORDER BY ordinal_position LIMIT 1";
    transaction.exec_first(sql, (table.schema(), table.name())).await
}

/// The server tells how many rows an UPDATE found in words: `Rows matched: 1  Changed: 0  Warnings: 0`.
fn matched(info: &str, affected: u64) -> u64 {
    let found = info.strip_prefix("Rows matched: ").and_then(|rest| rest.split(' ').next()?.parse().ok());
    found.unwrap_or(affected)
}
