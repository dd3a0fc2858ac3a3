//! A store in memory, for tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};

use super::CompareAndSet;

/// A map with versions. What it keeps is gone with the process, and the maximum with it: for tests alone.
#[derive(Debug, Default)]
pub struct MemoryStore(Mutex<BTreeMap<String, (Vec<u8>, u64)>>);

impl CompareAndSet for MemoryStore {
    type Version = u64;
    type Error = Infallible;

    fn is_durable(&self) -> bool {
        false
    }

    async fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, Infallible> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned())
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&u64>) -> Result<bool, Infallible> {
        let mut map = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let current = map.get(key).map(|(_, version)| *version);
        if current.as_ref() != version {
            return Ok(false);
        }
        map.insert(key.to_owned(), (value.to_vec(), current.map_or(1, |version| version + 1)));
        Ok(true)
    }
}
