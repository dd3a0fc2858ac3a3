//! Object storage, through `object_store`.
//!
//! The object's body is the fence's document: a short head with the highest tokens and a random number, then the value
//! as it is. A write is conditional, `If-Match` with the ETag that was read, or `If-None-Match: *` for a new object.
//!
//! The token is *in the body*, not only beside it in attributes. On S3 the ETag is a hash of the body: a claim, or a
//! write of the same bytes, that changed attributes alone would leave the ETag as it was, and an old holder's
//! conditional write would still pass. With a random number in the body every put changes the ETag.
//!
//! Guarantee: atomic, where the service honours conditional writes. Build the S3 client with
//! `S3ConditionalPut::ETagMatch` and without retries of its own (`RetryConfig { max_retries: 0, .. }`): what the outcome
//! was is resolved here, by putting the same bytes again and looking whose document is there.
//!
//! `object_store`'s local file system has no conditional update; for local files see
//! [`FileStore`](crate::cas::FileStore).

use std::sync::Arc;

use object_store::path::Path;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
};

use crate::cas::{self, CasFence, CompareAndSet, Versioned};

/// What can come of asking the fence.
pub type Error = cas::Error<StoreError>;

/// A fence over objects: `fence.update(…)` writes one, `fence.value(…)` reads it.
pub type ObjectFence = CasFence<Objects>;

/// Objects under a prefix; the name of a fence is the rest of the path.
#[derive(Debug, Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Path,
}

impl Objects {
    /// Objects of this store under this prefix.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: Path) -> Self {
        Self { store, prefix }
    }

    /// The object of a fence.
    pub fn path(&self, name: &str) -> Path {
        // As one segment: a name is compared byte for byte, and paths drop empty segments.
        self.prefix.clone().join(name)
    }
}

impl CompareAndSet for Objects {
    type Version = UpdateVersion;
    type Error = StoreError;

    async fn read(&self, key: &str) -> Result<Option<Versioned<UpdateVersion>>, StoreError> {
        let found = match self.store.get(&self.path(key)).await {
            Err(StoreError::NotFound { .. }) => return Ok(None),
            other => other?,
        };
        let version = UpdateVersion { e_tag: found.meta.e_tag.clone(), version: found.meta.version.clone() };
        Ok(Some((found.bytes().await?.to_vec(), version)))
    }

    async fn put_if(
        &self,
        key: &str,
        value: &[u8],
        version: Option<&UpdateVersion>,
    ) -> Result<bool, StoreError> {
        let mode = version.map_or(PutMode::Create, |version| PutMode::Update(version.clone()));
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(&self.path(key), PutPayload::from(value.to_vec()), options).await {
            Ok(_) => Ok(true),
            Err(
                StoreError::AlreadyExists { .. }
                | StoreError::Precondition { .. }
                | StoreError::NotFound { .. },
            ) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
