//! The fence from two functions, over stores that lose answers, and over stores that are broken.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold_fence::cas::{CasFence, CompareAndSet, FileStore, MemoryStore};
use leasehold_fence::conformance::{CasLines, run, store};

mod support;

#[tokio::test]
async fn the_store_in_memory_keeps_the_contract() {
    store(&MemoryStore::default()).await;
    support::suite(&CasLines(CasFence::new(support::Yielding(MemoryStore::default())))).await;
}

/// What goes wrong between the fence and its store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Every eleventh put is done and its answer lost; every thirteenth is lost before it is done.
    LostAnswers,
    /// Puts whatever the version.
    IgnoresVersion,
    /// Says no to every seventh put that it has done, as a client does that tries again by itself.
    DeniesDone,
    /// Looks at the version in one step and puts in another.
    ChecksFirst,
}

struct Faulty {
    store: MemoryStore,
    fault: Fault,
    puts: AtomicU64,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self { store: MemoryStore::default(), fault, puts: AtomicU64::new(0) }
    }

    /// Puts, whatever is there: nothing comes between these two calls, since neither waits.
    async fn force(&self, key: &str, value: &[u8]) -> Result<bool, String> {
        let current = self.store.read(key).await.expect("memory does not fail").map(|(_, version)| version);
        Ok(self.store.put_if(key, value, current.as_ref()).await.expect("memory does not fail"))
    }
}

impl CompareAndSet for Faulty {
    type Version = u64;
    type Error = String;

    async fn read(&self, key: &str) -> Result<Option<(Vec<u8>, u64)>, String> {
        let found = self.store.read(key).await.expect("memory does not fail");
        tokio::task::yield_now().await;
        Ok(found)
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&u64>) -> Result<bool, String> {
        let n = self.puts.fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::LostAnswers if n % 13 == 12 => Err("lost before".to_owned()),
            Fault::LostAnswers => {
                let done = self.store.put_if(key, value, version).await.expect("memory does not fail");
                if n % 11 == 10 { Err("lost after".to_owned()) } else { Ok(done) }
            }
            Fault::DeniesDone => {
                let done = self.store.put_if(key, value, version).await.expect("memory does not fail");
                Ok(done && n % 7 != 6)
            }
            Fault::IgnoresVersion => self.force(key, value).await,
            Fault::ChecksFirst => {
                let current = self.read(key).await?.map(|(_, version)| version);
                if current.as_ref() != version { Ok(false) } else { self.force(key, value).await }
            }
        }
    }
}

/// Outcomes that stay unknown are allowed; lines lost, doubled or out of order are not.
#[tokio::test]
async fn lost_answers_are_resolved_or_said_to_be_unknown() {
    run(&CasLines(CasFence::new(Faulty::new(Fault::LostAnswers))), support::seed()).await;
}

fn passes(fault: Fault, whole: bool) -> bool {
    let suite = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        match whole {
            true => runtime.block_on(run(&CasLines(CasFence::new(Faulty::new(fault))), 42)),
            false => runtime.block_on(store(&Faulty::new(fault))),
        }
    };
    std::thread::spawn(suite).join().is_ok()
}

#[test]
fn a_store_without_compare_and_set_is_caught() {
    for fault in [Fault::IgnoresVersion, Fault::ChecksFirst] {
        assert!(!passes(fault, false), "{fault:?} got through the checks of the store");
        assert!(!passes(fault, true), "{fault:?} got through the suite");
    }
}

#[tokio::test]
async fn a_put_that_was_done_and_denied_is_not_done_twice() {
    use leasehold_fence::Fence;
    let (fence, lines) = (Fence::of(&support::name("r")), CasFence::new(Faulty::new(Fault::DeniesDone)));
    let ask = support::grant("r", 5).write();
    for n in 1..=50 {
        let append = |value: Option<&[u8]>| [value.unwrap_or_default(), b"x"].concat();
        lines.update(&fence, &ask, append).await.expect("admitted");
        assert_eq!(lines.value(&fence).await.expect("readable").map(|value| value.len()), Some(n));
    }
}

/// Writers on threads of their own: the calls block, and futures on one thread would never meet.
#[test]
fn files_keep_the_contract_among_threads() {
    use leasehold_fence::Fence;
    let directory = tempfile::tempdir().expect("a directory");
    let open = || CasFence::new(FileStore::open(directory.path()).expect("a directory"));
    let runtime = || tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime().block_on(store(open().store()));
    runtime().block_on(run(&CasLines(open()), support::seed()));
    let (fence, admitted) = (Fence::of(&support::name("threads")), AtomicU64::new(0));
    let write = |n: u64| {
        for round in 0..6 {
            let token = 1 + round * 8 + n % 16;
            let append =
                |value: Option<&[u8]>| [value.unwrap_or_default(), format!("{token} ").as_bytes()].concat();
            let ask = support::grant("threads", token).write();
            let outcome = runtime().block_on(open().update(&fence, &ask, append));
            admitted.fetch_add(u64::from(outcome.is_ok()), Ordering::Relaxed);
        }
    };
    std::thread::scope(|scope| {
        for n in 0..16 {
            scope.spawn(move || write(n));
        }
    });
    let value = runtime().block_on(open().value(&fence)).expect("readable").expect("written");
    let text = String::from_utf8(value).expect("text");
    let tokens: Vec<u64> = text.split_whitespace().map(|token| token.parse().expect("a token")).collect();
    assert!(tokens.is_sorted() && tokens.last() == Some(&56), "{tokens:?}");
    assert_eq!(tokens.len() as u64, admitted.into_inner());
}
