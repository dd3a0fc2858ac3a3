//! What one call of the script does.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Script};

use crate::keys::Keys;

static SCRIPT: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("txn.lua")));

/// The hash that a field is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Table {
    Head = 1,
    Slots = 2,
    Chunks = 3,
}

/// A field of one of the hashes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Field(pub(crate) Table, pub(crate) String);

impl Field {
    pub(crate) fn head(name: &str) -> Self {
        Self(Table::Head, name.to_owned())
    }
}

/// Compares, then writes and removes if all was as expected, then reads.
#[derive(Clone, Default)]
pub(crate) struct Txn {
    /// Fields of the head and what they must be; `None`: missing.
    pub(crate) compare: Vec<(&'static str, Option<Bytes>)>,
    pub(crate) set: Vec<(Field, Bytes)>,
    pub(crate) delete: Vec<Field>,
    pub(crate) get: Vec<Field>,
}

/// What came of it.
pub(crate) struct Answer {
    pub(crate) succeeded: bool,
    values: Vec<Option<Bytes>>,
}

impl Answer {
    pub(crate) fn value(&self, index: usize) -> Option<&Bytes> {
        self.values.get(index)?.as_ref()
    }

    pub(crate) fn values_from(&self, index: usize) -> impl Iterator<Item = Option<&Bytes>> {
        self.values.iter().skip(index).map(Option::as_ref)
    }
}

impl Txn {
    /// Only reads.
    pub(crate) fn read(get: Vec<Field>) -> Self {
        Self { get, ..Self::default() }
    }

    /// Has the engine do it. A script that Redis does not know yet is loaded; that attempt has certainly done nothing.
    /// `None` if the answer is that of another question: Redis numbers nothing, so that after one message which was
    /// delivered twice on the way every later question would be given the answer of the one before it.
    pub(crate) async fn run(
        &self,
        connection: &mut MultiplexedConnection,
        keys: &Keys,
    ) -> RedisResult<Option<Answer>> {
        static QUESTIONS: AtomicU64 = AtomicU64::new(0);
        let question = QUESTIONS.fetch_add(1, Ordering::Relaxed).to_string();
        let mut call = SCRIPT.prepare_invoke();
        call.key(&keys.head).key(&keys.slots).key(&keys.chunks);
        call.arg(&question).arg(self.compare.len());
        for (field, value) in &self.compare {
            call.arg(*field).arg(u8::from(value.is_some())).arg(value.as_deref().unwrap_or_default());
        }
        call.arg(self.set.len());
        for (Field(table, field), value) in &self.set {
            call.arg(*table as u8).arg(field).arg(&value[..]);
        }
        for fields in [&self.delete, &self.get] {
            call.arg(fields.len());
            for Field(table, field) in fields {
                call.arg(*table as u8).arg(field);
            }
        }
        let answer: Vec<Option<Vec<u8>>> = call.invoke_async(connection).await?;
        let mut parts = answer.into_iter().map(|value| value.map(Bytes::from));
        if parts.next().flatten().as_deref() != Some(question.as_bytes()) {
            return Ok(None);
        }
        let succeeded = parts.next().flatten().as_deref() == Some(b"1");
        Ok(Some(Answer { succeeded, values: parts.collect() }))
    }
}
