//! DynamoDB, with the SDK of AWS.
//!
//! One item for each fence: its document, with the highest tokens and the protected value, and a revision. A write is a
//! conditional put: the revision must still be the one that was read, or the item must not exist. Reads are strongly
//! consistent.
//!
//! Guarantee: atomic, within one region. A global table keeps the last writer of two regions, so it can lose a maximum:
//! write a fenced table in one region alone.
//!
//! The table has a string key called `fence`, and nothing else is asked of it. An item has 400 KB at most, value
//! included.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::get_item::GetItemError;
use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use crate::cas::{self, CasFence, CompareAndSet, Versioned};

/// The key of the table.
pub const KEY: &str = "fence";
const DOCUMENT: &str = "document";
const REVISION: &str = "revision";

/// A fence over items: `fence.update(…)` writes one, `fence.value(…)` reads it.
pub type DynamoFence = CasFence<Items>;

/// What can come of asking the fence.
pub type Error = cas::Error<ItemsError>;

/// Why DynamoDB gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum ItemsError {
    /// An item could not be read.
    #[error("the item could not be read: {}", aws_sdk_dynamodb::error::DisplayErrorContext(.0))]
    Get(#[from] SdkError<GetItemError>),
    /// An item could not be put.
    #[error("the item could not be put: {}", aws_sdk_dynamodb::error::DisplayErrorContext(.0))]
    Put(#[from] SdkError<PutItemError>),
    /// An item that is none of ours.
    #[error("the item has no document and revision of a fence")]
    Foreign,
}

/// The items of one table.
#[derive(Debug, Clone)]
pub struct Items {
    client: Client,
    table: String,
}

impl Items {
    /// Items of this table. The SDK may try again by itself: a put that was done and is refused the second time is
    /// found out.
    pub fn new(client: Client, table: &str) -> Self {
        Self { client, table: table.to_owned() }
    }
}

impl CompareAndSet for Items {
    type Version = u64;
    type Error = ItemsError;

    async fn read(&self, key: &str) -> Result<Option<Versioned<u64>>, ItemsError> {
        let get = self.client.get_item().table_name(&self.table).consistent_read(true);
        let found = get.key(KEY, AttributeValue::S(key.to_owned())).send().await?;
        let Some(item) = found.item() else { return Ok(None) };
        let document = item.get(DOCUMENT).and_then(|document| document.as_b().ok());
        let revision = item.get(REVISION).and_then(|revision| revision.as_n().ok()?.parse().ok());
        match (document, revision) {
            (Some(document), Some(revision)) => Ok(Some((document.as_ref().to_vec(), revision))),
            _ => Err(ItemsError::Foreign),
        }
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&u64>) -> Result<bool, ItemsError> {
        let next = version.map_or(1, |version| version + 1);
        let put = self.client.put_item().table_name(&self.table);
        let put = put.item(KEY, AttributeValue::S(key.to_owned()));
        let put = put.item(DOCUMENT, AttributeValue::B(Blob::new(value)));
        let put = put.item(REVISION, AttributeValue::N(next.to_string()));
        let put = match version {
            None => {
                put.condition_expression("attribute_not_exists(#key)").expression_attribute_names("#key", KEY)
            }
            Some(version) => put
                .condition_expression("#revision = :before")
                .expression_attribute_names("#revision", REVISION)
                .expression_attribute_values(":before", AttributeValue::N(version.to_string())),
        };
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) if is_refused(&error) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Whether the condition did not hold: an answer, unlike every other error.
fn is_refused(error: &SdkError<PutItemError>) -> bool {
    error.as_service_error().is_some_and(PutItemError::is_conditional_check_failed_exception)
}
