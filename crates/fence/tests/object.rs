//! Fenced objects: in memory as `object_store` has it, and with ETags as S3 makes them.

mod support;

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use leasehold_fence::Fence;
use leasehold_fence::cas::{CasFence, CompareAndSet, MemoryStore, Versioned};
use leasehold_fence::conformance::{CasLines, run, store};
use leasehold_fence::object::Objects;
use object_store::memory::InMemory;
use support::{Yielding, grant, name, seed, word};

fn objects() -> Objects {
    Objects::new(Arc::new(InMemory::new()), "fenced/things".into())
}

#[tokio::test]
async fn conditional_writes_keep_the_contract() {
    store(&objects()).await;
    run(&CasLines(CasFence::new(Yielding(objects()))), seed()).await;
}

/// A store whose version is a hash of the content, as the ETag of S3: equal bytes have equal versions.
#[derive(Default)]
struct ContentTags(MemoryStore);

fn tag(value: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl CompareAndSet for ContentTags {
    type Version = u64;
    type Error = std::convert::Infallible;

    async fn read(&self, key: &str) -> Result<Option<Versioned<u64>>, Self::Error> {
        Ok(self.0.read(key).await?.map(|(value, _)| (value.clone(), tag(&value))))
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&u64>) -> Result<bool, Self::Error> {
        let found = self.0.read(key).await?;
        let (now, inner) = found.map(|(value, version)| (tag(&value), version)).unzip();
        if now.as_ref() != version { Ok(false) } else { self.0.put_if(key, value, inner.as_ref()).await }
    }
}

/// The reason why the token is in the body: with the ETag of S3, a claim that changed attributes alone would not change
/// the version, and the old holder's conditional write would pass.
#[tokio::test]
async fn a_claim_changes_the_version_even_if_the_value_stays() {
    let (fence, things) = (Fence::of(&name("r")), CasFence::new(ContentTags::default()));
    things.update(&fence, &grant("r", 5).write(), |_| b"same".to_vec()).await.expect("admitted");
    let (_, seen_by_old_holder) = things.store().read("r").await.expect("readable").expect("written");
    things.claim(&fence, &grant("r", 7)).await.expect("admitted");
    let late = things.store().put_if("r", b"late", Some(&seen_by_old_holder)).await;
    assert_eq!(late, Ok(false), "the version that the old holder saw is gone");
    let rewritten = things.update(&fence, &grant("r", 7).write(), |_| b"same".to_vec()).await;
    assert_eq!(word(&rewritten), "admitted");
    assert_eq!(word(&things.update(&fence, &grant("r", 5).write(), |_| b"late".to_vec()).await), "stale");
}

#[tokio::test]
async fn content_tags_keep_the_contract() {
    run(&CasLines(CasFence::new(Yielding(ContentTags::default()))), seed()).await;
}
