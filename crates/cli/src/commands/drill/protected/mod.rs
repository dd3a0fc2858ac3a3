//! What the workers of a drill write, behind its fence.

mod address;
#[cfg(feature = "dynamodb")]
mod dynamodb;
mod etcd;
mod exchange;
mod http;
mod mariadb;
mod object;
mod postgres;
mod redis;
mod sql;
mod sqlite;
mod storage;

use std::fmt;
use std::net::SocketAddr;

use async_trait::async_trait;
use leasehold_fence::{Fence, FenceError, Grant};
use leasehold_types::ResourceName;
use serde::{Deserialize, Serialize};

pub(super) use address::Address;

use super::relay::Remote;
use crate::failure::Failure;

/// How long a store may take to accept a connection.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(10);

/// What came of one write.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Written {
    /// It is there.
    Accepted,
    /// The fence said no, in these words.
    Refused(String),
}

/// The thing that is written, of whatever kind. The drill makes it, reads it and removes it; workers write it.
#[async_trait]
pub(super) trait Protected: Send {
    /// Makes what the drill needs and was not there before.
    async fn make(&mut self) -> Result<(), Failure>;

    /// Writes, if the fence admits the grant.
    async fn write(&mut self, grant: &Grant, text: &str) -> Result<Written, Failure>;

    /// What is there now; `None` where that cannot be compared.
    async fn read(&mut self) -> Result<Option<String>, Failure>;

    /// Removes what the drill made.
    async fn remove(&mut self) -> Result<(), Failure>;
}

/// Which thing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    /// Where it is.
    pub(super) address: Address,
    /// The lock that guards it.
    #[serde(with = "name_as_text")]
    pub(super) resource: ResourceName,
    /// The user's own table, instead of one that is made for the drill.
    pub(super) table: Option<String>,
    /// The statement that writes the user's own table.
    pub(super) statement: Option<String>,
    /// Ends the names of whatever is made for this drill, so that it meets nothing else.
    pub(super) id: String,
    /// Whether the fence is asked.
    pub(super) fenced: bool,
    /// Where a process writes it for others, when it has no network in front of it.
    pub(super) relay: Option<SocketAddr>,
}

impl Place {
    /// The fence around what is made for this drill.
    fn fence(&self) -> Fence {
        Fence::of(&self.resource)
    }

    /// The name of what is made for this drill, where names are like those of tables.
    fn own_name(&self) -> String {
        format!("leasehold_drill_{}", self.id)
    }

    /// The same where they are like paths.
    fn own_path(&self) -> String {
        format!("leasehold-drill/{}", self.id)
    }

    /// How many requests of a write pass before the one that matters: the question of a compare-and-set, the beginning and
    /// preparation of a transaction. Held is then the write itself, as late as can be.
    pub(super) fn requests_before_write(&self) -> u32 {
        match (&self.address, self.fenced) {
            (Address::Postgres(_), true) => 2,
            // The driver keeps the prepared statement of the first write.
            (Address::Mariadb(_) | Address::Etcd(_) | Address::S3(_) | Address::Dynamodb(_), true) => 1,
            _ => 0,
        }
    }

    /// The same thing, reached another way.
    pub(super) fn through(&self, network: SocketAddr) -> Self {
        match self.address.host() {
            Some(_) => Self { address: self.address.through(network), ..self.clone() },
            None => Self { relay: Some(network), ..self.clone() },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)?;
        match (&self.table, self.address.own_kind()) {
            (Some(table), _) => write!(f, ", table {table}"),
            (None, Some(kind)) => write!(f, ", in a {kind} of its own"),
            (None, None) => Ok(()),
        }
    }
}

/// Connects to it.
pub(super) async fn open(place: &Place) -> Result<Box<dyn Protected>, Failure> {
    if let Some(address) = place.relay {
        return Ok(Box::new(Remote::at(address)));
    }
    let connecting = async {
        Ok::<Box<dyn Protected>, Failure>(match &place.address {
            Address::Sqlite(path) => Box::new(sqlite::Sqlite::open(path, place)?),
            Address::Postgres(url) => Box::new(postgres::Postgres::connect(url, place).await?),
            Address::Mariadb(url) => Box::new(mariadb::Mariadb::connect(url, place).await?),
            Address::Redis(url) => Box::new(redis::Redis::connect(url, place).await?),
            Address::Etcd(url) => Box::new(etcd::Etcd::connect(url, place).await?),
            #[cfg(feature = "dynamodb")]
            Address::Dynamodb(cloud) => Box::new(dynamodb::Item::new(cloud, place)?),
            #[cfg(not(feature = "dynamodb"))]
            Address::Dynamodb(_) => {
                let why = "this leasehold was built without DynamoDB; build it with --features dynamodb";
                return Err(Failure::Usage(why.into()));
            }
            Address::S3(cloud) => Box::new(object::Object::new(cloud, place)?),
            Address::Program => Box::new(Nothing),
            Address::Storage(url) => Box::new(storage::Storage::new(url, place)),
            Address::Http(url) => Box::new(http::Http::new(url, place)),
        })
    };
    let late = || Failure::Fence(format!("{}: no connection in {} s", place.address, CONNECT.as_secs()));
    tokio::time::timeout(CONNECT, connecting).await.map_err(|_| late())?
}

/// What a program of the user's own writes is its affair.
struct Nothing;

#[async_trait]
impl Protected for Nothing {
    async fn make(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    async fn write(&mut self, _: &Grant, _: &str) -> Result<Written, Failure> {
        unreachable!("the program writes")
    }

    async fn read(&mut self) -> Result<Option<String>, Failure> {
        Ok(None)
    }

    async fn remove(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// The verdict of a fence: a rejection is an answer, everything else a reason to give up.
fn written<E: fmt::Display>(of: &Address, outcome: Result<(), FenceError<E>>) -> Result<Written, Failure> {
    match outcome {
        Ok(()) => Ok(Written::Accepted),
        Err(FenceError::Rejected(rejection)) => Ok(Written::Refused(rejection.to_string())),
        Err(error) => Err(Failure::Fence(format!("{of}: {error}"))),
    }
}

/// The protected thing cannot be used, whatever the fence thinks.
pub(super) fn unusable<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Failure {
    move |error| Failure::Fence(format!("{what}: {error}"))
}

/// A name travels to the workers as text, and is checked again there.
mod name_as_text {
    use leasehold_types::ResourceName;
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(name: &ResourceName, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(name.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ResourceName, D::Error> {
        ResourceName::new(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}
