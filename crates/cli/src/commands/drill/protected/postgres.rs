//! PostgreSQL.

use std::error::Error as _;

use async_trait::async_trait;
use leasehold_fence::sql::{Dialect, TableName};
use leasehold_fence::{Fence, FenceError, Grant, postgres};
use tokio_postgres::{Client, NoTls, Transaction};

use super::sql::{self, KEY, Target};
use super::{Address, Place, Protected, Written, written};
use crate::failure::Failure;

const D: Dialect = Dialect::Postgres;

pub(super) struct Postgres {
    client: Client,
    address: Address,
    target: Target,
    fence: Fence,
    fenced: bool,
}

impl Postgres {
    pub(super) async fn connect(url: &str, place: &Place) -> Result<Self, Failure> {
        let address = place.address.clone();
        let (client, connection) =
            tokio_postgres::connect(url, NoTls).await.map_err(|error| failure(&address, &error))?;
        // Ends with the client; its error is seen by whoever waits for an answer.
        tokio::spawn(connection);
        Ok(Self { client, address, target: Target::of(place)?, fence: place.fence(), fenced: place.fenced })
    }

    async fn users(
        &mut self,
        grant: &Grant,
        table: &TableName,
        statement: Option<String>,
    ) -> Result<Written, Failure> {
        let address = self.address.clone();
        let failed = |error| failure(&address, &error);
        let transaction = self.client.transaction().await.map_err(failed)?;
        postgres::present(&transaction, grant)
            .await
            .map_err(|error| Failure::Fence(format!("{address}: {error}")))?;
        let statement = match statement {
            Some(statement) => statement,
            None => sql::no_change(
                table,
                D,
                &first_column(&transaction, table)
                    .await
                    .map_err(failed)?
                    .ok_or_else(|| sql::no_table(table))?,
            ),
        };
        match transaction.execute(&statement, &[]).await {
            Ok(rows) => {
                sql::wrote_a_row(table, rows)?;
                transaction.commit().await.map_err(failed)?;
                Ok(Written::Accepted)
            }
            Err(error) => match postgres::refused(&error) {
                Some(refused) => Ok(Written::Refused(refused.message().to_owned())),
                None => Err(failed(error)),
            },
        }
    }
}

#[async_trait]
impl Protected for Postgres {
    async fn make(&mut self) -> Result<(), Failure> {
        for statement in self.target.make(D) {
            self.client.batch_execute(&statement).await.map_err(|error| failure(&self.address, &error))?;
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
        let failed = |error| failure(&self.address, &error);
        if !self.fenced {
            let statement = Target::plain(&table, D, "$1");
            self.client.execute(&statement, &[&text]).await.map_err(failed)?;
            return Ok(Written::Accepted);
        }
        let transaction = self.client.transaction().await.map_err(failed)?;
        let (key, set): (_, (&str, &[_])) = (("id = $1", [&KEY as _]), ("note = $2", &[&text as _]));
        let outcome =
            postgres::update_row(&transaction, &self.fence, &grant.write(), &table, (key.0, &key.1), set)
                .await;
        if outcome.is_ok() {
            transaction.commit().await.map_err(failed)?;
        }
        written(&self.address, outcome.map_err(plain))
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        let Some(statement) = self.target.read(D) else { return Ok(None) };
        let row =
            self.client.query_one(&statement, &[]).await.map_err(|error| failure(&self.address, &error))?;
        Ok(Some(row.get(0)))
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        match self.target.remove(D) {
            Some(statement) => {
                self.client.batch_execute(&statement).await.map_err(|error| failure(&self.address, &error))
            }
            None => Ok(()),
        }
    }
}

async fn first_column(
    transaction: &Transaction<'_>,
    table: &TableName,
) -> Result<Option<String>, tokio_postgres::Error> {
    let sql = "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 \
               AND NOT attisdropped AND attgenerated = '' ORDER BY attnum LIMIT 1";
    let row = transaction.query_opt(sql, &[&table.quoted(D)]).await?;
    Ok(row.map(|row| row.get(0)))
}

/// The database's own words; the driver's are only "db error".
fn words(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(source)) => source.to_string(),
        (None, None) => error.to_string(),
    }
}

fn failure(address: &Address, error: &tokio_postgres::Error) -> Failure {
    Failure::Fence(format!("{address}: {}", words(error)))
}

fn plain(error: postgres::Error) -> FenceError<String> {
    match error {
        FenceError::Rejected(rejection) => FenceError::Rejected(rejection),
        FenceError::Store(error) => FenceError::Store(words(&error)),
        FenceError::Corrupt(why) => FenceError::Corrupt(why),
    }
}
