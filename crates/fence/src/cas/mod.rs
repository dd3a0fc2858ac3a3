//! A fence from two functions: read with a version, put if the version is still that.
//!
//! Whatever store has these two, atomically on one key, can be fenced: [`CompareAndSet`] names them, [`CasFence`] keeps
//! the rows of the fence and the protected value in one document under one key.
//!
//! Guarantee: atomic, as far as the store's compare-and-set is. An answer that got lost is resolved by putting the same
//! bytes again at the same version, and by looking whether the document there is ours; what stays unknown is said.

mod document;
mod files;
mod memory;

use std::future::Future;

use document::Document;
pub use files::FileStore;
pub use memory::MemoryStore;

use crate::{Ask, Fence, FenceError, Grant, Rejection, Row, Verdict, decide, decide_claim};

/// Attempts to get a change in among other writers; with 64 of them, some lose dozens of times in a row.
const ATTEMPTS: usize = 1_000;
/// Attempts to learn the outcome of one put.
const RESOLVE: usize = 3;

/// A value and its version.
pub type Versioned<V> = (Vec<u8>, V);

/// A store with a compare-and-set on one key.
pub trait CompareAndSet: Sync {
    /// What is different for different bytes: a revision, an ETag. It may come back with the same bytes, which
    /// [`CasFence`] never puts twice.
    type Version: Send + Sync;
    /// Why the store gave no answer.
    type Error: Send;

    /// Whether what is put survives the process.
    fn is_durable(&self) -> bool {
        true
    }

    /// The value of the key and its version, or `None`. Linearizable: it shows every put that was answered before.
    fn read(
        &self,
        key: &str,
    ) -> impl Future<Output = Result<Option<Versioned<Self::Version>>, Self::Error>> + Send;

    /// Puts the value if the key still has this version; `None`: if there is no such key. Whether it did.
    ///
    /// An error means that the outcome is unknown.
    fn put_if(
        &self,
        key: &str,
        value: &[u8],
        version: Option<&Self::Version>,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// Why a fence over a compare-and-set gave no verdict.
#[derive(Debug, thiserror::Error)]
pub enum CasError<E> {
    /// The store failed before anything was put: nothing has happened.
    #[error("the store failed: {0}")]
    Store(E),
    /// A put was not answered, and the document has moved on: it happened or not. A retry by step is safe.
    #[error("the outcome of the write is unknown: {0}")]
    Unknown(E),
    /// Other writers came first every time. Nothing has happened.
    #[error("too many writers at once")]
    Contended,
}

/// What can come of asking a fence over a compare-and-set.
pub type Error<E> = FenceError<CasError<E>>;

/// A fence that keeps its rows and the protected value in one document.
#[derive(Debug, Clone)]
pub struct CasFence<S> {
    store: S,
}

impl<S: CompareAndSet> CasFence<S> {
    /// A fence over this store. The fence's name is the key.
    pub fn new(store: S) -> Self {
        Self { store }
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Changes the protected value, if the fence admits it, in one atomic step with the check. The change may be called
    /// several times, each time with the value then current; the last call counts.
    ///
    /// If the future is dropped, the outcome is unknown.
    ///
    /// # Errors
    /// Rejected: stop the work. Store: see [`CasError`].
    pub async fn update<'ask>(
        &self,
        fence: &Fence,
        ask: impl Into<Option<&'ask Ask>>,
        change: impl Fn(Option<&[u8]>) -> Vec<u8>,
    ) -> Result<(), Error<S::Error>> {
        let ask = ask.into().ok_or(FenceError::Rejected(Rejection::MissingToken))?;
        let verdict = |row: Option<&Row>| decide(fence, row, Some(ask));
        self.run(fence, ask.grant(), verdict, |value| Some(change(value))).await
    }

    /// Raises the maximum before the first read, so that no older holder can write between that read and the write that
    /// follows from it. Can be repeated.
    ///
    /// # Errors
    /// Rejected: the lease is lost. Store: try again.
    pub async fn claim(&self, fence: &Fence, grant: &Grant) -> Result<(), Error<S::Error>> {
        self.run(fence, grant, |row| decide_claim(fence, row, grant), |_| None).await
    }

    /// The protected value.
    ///
    /// # Errors
    /// Store, or a document that is none of ours.
    pub async fn value(&self, fence: &Fence) -> Result<Option<Vec<u8>>, Error<S::Error>> {
        Ok(self.read(fence).await?.and_then(|(document, _)| document.value))
    }

    async fn run(
        &self,
        fence: &Fence,
        grant: &Grant,
        verdict: impl Fn(Option<&Row>) -> Verdict,
        change: impl Fn(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<(), Error<S::Error>> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let (mut document, version) = match self.read(fence).await? {
                // The store said no to a put that it had done: it, or something before it, tries again by itself.
                Some((document, _)) if last == Some(document.put) => return Ok(()),
                Some((document, version)) => (document, Some(version)),
                None => (Document::default(), None),
            };
            let next = match verdict(document.rows.get(&grant.row_number())) {
                Verdict::Rejected(rejection) => return Err(FenceError::Rejected(rejection)),
                Verdict::Admitted(next) => next,
            };
            let value = change(document.value.as_deref());
            if next.is_none() && value.is_none() {
                return Ok(());
            }
            document.advance(grant.row_number(), next, value);
            last = Some(document.put);
            if self.put(fence, &document, version.as_ref()).await? {
                return Ok(());
            }
        }
        Err(FenceError::Store(CasError::Contended))
    }

    async fn read(&self, fence: &Fence) -> Result<Option<(Document, S::Version)>, Error<S::Error>> {
        let found = self.store.read(fence.name().as_str()).await.map_err(CasError::Store)?;
        let Some((bytes, version)) = found else { return Ok(None) };
        let document =
            Document::decode(&bytes).ok_or_else(|| FenceError::Corrupt(fence.name().to_string()))?;
        Ok(Some((document, version)))
    }

    /// Puts the document, the same bytes at the same version until there is an answer. `false`: another came first.
    async fn put(
        &self,
        fence: &Fence,
        document: &Document,
        version: Option<&S::Version>,
    ) -> Result<bool, Error<S::Error>> {
        let (bytes, mut unanswered) = (document.encode(), None);
        for _ in 0..RESOLVE {
            match (self.store.put_if(fence.name().as_str(), &bytes, version).await, unanswered.take()) {
                (Ok(true), _) => return Ok(true),
                (Ok(false), None) => return Ok(false),
                (Ok(false), Some(error)) => return self.landed(fence, document, error).await,
                (Err(error), _) => unanswered = Some(error),
            }
        }
        Err(FenceError::Store(CasError::Unknown(unanswered.expect("the last attempt failed"))))
    }

    /// Whether the document there is the one whose answer was lost. Another one may have replaced it already.
    async fn landed(
        &self,
        fence: &Fence,
        document: &Document,
        error: S::Error,
    ) -> Result<bool, Error<S::Error>> {
        match self.read(fence).await {
            Ok(Some((found, _))) if found.put == document.put => Ok(true),
            _ => Err(FenceError::Store(CasError::Unknown(error))),
        }
    }
}
