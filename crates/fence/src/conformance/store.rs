//! For compare-and-set stores: the two functions by themselves, and a thing of lines over them.

use std::fmt::Debug;

use futures_util::future::join_all;

use super::{Failure, Outcome, Protected};
use crate::cas::{CasError, CasFence, CompareAndSet};
use crate::{Ask, Fence, FenceError, Grant};

/// Checks the two functions of a store on fresh keys: what [`CasFence`] rests on.
///
/// # Panics
/// When the store breaks one of their promises: says which.
pub async fn store<S: CompareAndSet<Error: Debug>>(store: &S) {
    let read = async |key| store.read(key).await.expect("the store answers");
    let put = async |key, value: &[u8], version| {
        store.put_if(key, value, version).await.expect("the store answers")
    };
    let key = "conformance-store";
    assert!(read(key).await.is_none(), "the key must be fresh");
    assert!(put(key, b"one", None).await, "a key that is not there can be made");
    assert!(!put(key, b"two", None).await, "a key that is there cannot be made");
    let (value, first) = read(key).await.expect("it was put");
    assert_eq!(value, b"one");
    assert!(put(key, b"two", Some(&first)).await, "the current version admits");
    assert!(!put(key, b"three", Some(&first)).await, "an old version does not");
    let (value, second) = read(key).await.expect("it was put");
    assert_eq!(value, b"two");
    assert!(put(key, b"three", Some(&second)).await, "the new version admits");
    assert!(!put(key, b"four", Some(&second)).await, "once");
    one_of_many(store).await;
}

/// Of many puts at the same version, one is admitted.
async fn one_of_many<S: CompareAndSet<Error: Debug>>(store: &S) {
    for round in 0..8 {
        let key = format!("conformance-many-{round}");
        let puts = (0..32_u8).map(|n| {
            let key = &key;
            async move { store.put_if(key, &[n], None).await.expect("the store answers") }
        });
        let admitted: Vec<usize> = positions(join_all(puts).await);
        assert_eq!(
            admitted.len(),
            1,
            "round {round}: of many puts at one version these were admitted: {admitted:?}"
        );
        let (value, _) = store.read(&key).await.expect("the store answers").expect("one was admitted");
        assert_eq!(
            usize::from(value[0]),
            admitted[0],
            "round {round}: the value is of a put that was not admitted"
        );
    }
}

fn positions(answers: Vec<bool>) -> Vec<usize> {
    answers.iter().enumerate().filter(|(_, admitted)| **admitted).map(|(n, _)| n).collect()
}

/// Lines in a document of [`CasFence`], for the whole suite over any store.
#[derive(Debug)]
pub struct CasLines<S>(pub CasFence<S>);

impl<S: CompareAndSet<Error: Into<Failure>>> Protected for CasLines<S> {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Outcome {
        let append = |value: Option<&[u8]>| [value.unwrap_or_default(), line.as_bytes(), b"\n"].concat();
        self.0.update(fence, ask, append).await.map_err(failure)
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Outcome {
        self.0.claim(fence, grant).await.map_err(failure)
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let value = match self.0.value(fence).await {
            Ok(value) => value.unwrap_or_default(),
            Err(error) => panic!("the lines cannot be read: {}", failure(error)),
        };
        String::from_utf8(value).expect("lines are text").lines().map(str::to_owned).collect()
    }
}

fn failure<E: Into<Failure>>(error: FenceError<CasError<E>>) -> FenceError<Failure> {
    match error {
        FenceError::Rejected(rejection) => FenceError::Rejected(rejection),
        FenceError::Corrupt(why) => FenceError::Corrupt(why),
        FenceError::Store(CasError::Contended) => FenceError::Store("too many writers at once".into()),
        FenceError::Store(CasError::Store(error) | CasError::Unknown(error)) => {
            FenceError::Store(error.into())
        }
    }
}
