//! The suite passes the contract itself, and fails fences that are broken in the classic ways. A suite that cannot fail
//! shows nothing.

use std::collections::BTreeMap;
use std::sync::Mutex;

use leasehold_fence::conformance::{Outcome, Protected, run};
use leasehold_fence::{Ask, Fence, FenceError, Grant, Row, Verdict, decide, decide_claim};
use leasehold_types::ResourceName;

/// The classic ways to get it wrong, and none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// Reads the row, then writes in another step.
    CheckThenWrite,
    /// Writes whatever comes.
    NoCheck,
    /// Compares tokens of different locks.
    NoScope,
    /// Lets a reader's token advance the maximum.
    SharedAdvances,
    /// Keeps one maximum for all permits.
    OnePermit,
    /// Applies a retried step again.
    NoSteps,
    /// Says that it wrote, and did not.
    LosesWrites,
}

#[derive(Default)]
struct State {
    rows: BTreeMap<(String, i64), Row>,
    lines: BTreeMap<String, Vec<String>>,
}

struct Broken {
    mistake: Mistake,
    state: Mutex<State>,
}

impl Broken {
    fn new(mistake: Mistake) -> Self {
        Self { mistake, state: Mutex::default() }
    }

    fn key(&self, fence: &Fence, grant: &Grant) -> (String, i64) {
        let number = if self.mistake == Mistake::OnePermit { -1 } else { grant.row_number() };
        (fence.name().to_string(), number)
    }

    fn row(&self, fence: &Fence, grant: &Grant) -> Option<Row> {
        self.state.lock().expect("no panics").rows.get(&self.key(fence, grant)).cloned()
    }

    fn keep(&self, fence: &Fence, grant: &Grant, next: Option<Row>, line: Option<&str>) {
        let mut state = self.state.lock().expect("no panics");
        if let Some(row) = next {
            state.rows.insert(self.key(fence, grant), row);
        }
        state.lines.entry(fence.name().to_string()).or_default().extend(line.map(str::to_owned));
    }

    /// The ask as the broken fence reads it.
    fn misread(&self, fence: &Fence, grant: &Grant) -> Grant {
        match self.mistake {
            Mistake::NoScope => Grant::new(fence.guard().clone(), grant.token(), grant.kind()),
            Mistake::SharedAdvances if !grant.advances() => {
                Grant::exclusive(grant.resource().clone(), grant.token())
            }
            _ => grant.clone(),
        }
    }

    fn decide(&self, fence: &Fence, row: Option<&Row>, ask: Option<&Ask>) -> Verdict {
        let ask = ask.map(|ask| {
            let grant = self.misread(fence, ask.grant());
            match ask.step() {
                Some(step) if self.mistake != Mistake::NoSteps => grant.step(step).expect("not shared"),
                _ => grant.write(),
            }
        });
        let row = row.filter(|_| self.mistake != Mistake::NoCheck);
        decide(fence, row, ask.as_ref())
    }
}

impl Protected for Broken {
    async fn append(&self, fence: &Fence, ask: Option<&Ask>, line: &str) -> Outcome {
        let row = ask.and_then(|ask| self.row(fence, ask.grant()));
        if self.mistake == Mistake::CheckThenWrite {
            tokio::task::yield_now().await;
        }
        match (self.decide(fence, row.as_ref(), ask), ask) {
            (Verdict::Admitted(next), Some(ask)) => {
                let lost = self.mistake == Mistake::LosesWrites && line.ends_with('7');
                self.keep(fence, ask.grant(), next, (!lost).then_some(line));
                Ok(())
            }
            (Verdict::Rejected(rejection), _) => Err(FenceError::Rejected(rejection)),
            (Verdict::Admitted(_), None) => unreachable!("no token is never admitted"),
        }
    }

    async fn claim(&self, fence: &Fence, grant: &Grant) -> Outcome {
        let grant = &self.misread(fence, grant);
        match decide_claim(fence, self.row(fence, grant).as_ref(), grant) {
            Verdict::Admitted(next) => {
                self.keep(fence, grant, next, None);
                Ok(())
            }
            Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        }
    }

    async fn lines(&self, fence: &Fence) -> Vec<String> {
        let state = self.state.lock().expect("no panics");
        state.lines.get(&fence.name().to_string()).cloned().unwrap_or_default()
    }
}

fn passes(mistake: Mistake) -> bool {
    let suite = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(run(&Broken::new(mistake), 42));
    };
    std::thread::spawn(suite).join().is_ok()
}

#[test]
fn the_contract_passes_its_own_suite() {
    assert!(passes(Mistake::None));
}

#[test]
fn every_classic_mistake_is_caught() {
    use Mistake::*;
    for mistake in [CheckThenWrite, NoCheck, NoScope, SharedAdvances, OnePermit, NoSteps, LosesWrites] {
        assert!(!passes(mistake), "{mistake:?} got through the suite");
    }
}

#[test]
fn a_row_guarded_by_another_lock_than_declared_admits_nobody() {
    let name = |text| ResourceName::new(text).expect("a valid name");
    let fence = Fence::named(name("thing"), name("new lock"));
    let row = Row { guard: name("old lock"), highest: None, writes: 0 };
    for lock in ["old lock", "new lock"] {
        let grant = Grant::exclusive(name(lock), leasehold_types::FencingToken::new(9).expect("a token"));
        assert!(matches!(decide(&fence, Some(&row), Some(&grant.write())), Verdict::Rejected(_)), "{lock}");
    }
}
