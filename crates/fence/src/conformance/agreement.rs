//! Random acts: the adapter answers as the pure functions do.

use std::collections::BTreeMap;

use leasehold_types::ResourceName;

use super::random::Random;
use super::script::{Act, answer};
use super::{Outcome, Protected};
use crate::{Fence, FenceError, Row, Verdict, decide, decide_claim};

const ROUNDS: usize = 6;
const ACTS: usize = 60;

/// Runs random acts one after another, each against the adapter and against [`decide`].
///
/// # Panics
/// At the first answer that differs: says which, and the seed.
pub async fn agreement(protected: &impl Protected, seed: u64) {
    let mut random = Random::new(seed);
    for round in 0..ROUNDS {
        let name = ResourceName::new(&format!("agreement/{seed}/{round}")).expect("a valid name");
        let fence = match round % 3 {
            0 => Fence::of(&name),
            2 if protected.keeps_permits() => Fence::of(&name).each_permit(),
            _ => Fence::of(&name).strict(),
        };
        story(protected, &fence, &mut random, seed).await;
    }
}

async fn story(protected: &impl Protected, fence: &Fence, random: &mut Random, seed: u64) {
    let mut model = Model::default();
    let mut past = Vec::new();
    for n in 0..ACTS {
        let text = act(random);
        let (act, line) = (Act::parse(fence, &text), format!("{n}: {text}"));
        let wanted = model.answer(fence, &act, &line);
        let found = answer(&act.run(protected, fence, &line).await);
        past.push(format!("{text} -> {found}"));
        assert_eq!(found, wanted, "seed {seed}, {fence:?}: {past:#?}");
    }
    assert_eq!(protected.lines(fence).await, model.lines, "seed {seed}, {fence:?}: {past:#?}");
}

fn act(random: &mut Random) -> String {
    let claim = ["", "", "", "claim "][below(random, 4)];
    let kind = ["", "", "", "shared ", "permit 0 ", "permit 1 ", "other "][below(random, 7)];
    let token = 1 + random.below(6);
    let step = match random.below(3) {
        step if step > 0 && claim.is_empty() && kind != "shared " => format!(".{step}"),
        _ => String::new(),
    };
    if random.below(16) == 0 { "none".to_owned() } else { format!("{claim}{kind}{token}{step}") }
}

fn below(random: &mut Random, end: u64) -> usize {
    usize::try_from(random.below(end)).expect("a small number")
}

/// A fence that is nothing but the contract.
#[derive(Default)]
struct Model {
    rows: BTreeMap<i64, Row>,
    lines: Vec<String>,
}

impl Model {
    fn answer(&mut self, fence: &Fence, act: &Act, line: &str) -> String {
        let outcome: Outcome = match self.verdict(fence, act) {
            Verdict::Admitted(_) => Ok(()),
            Verdict::Rejected(rejection) => Err(FenceError::Rejected(rejection)),
        };
        if outcome.is_ok() && act.writes() {
            self.lines.push(line.to_owned());
        }
        answer(&outcome)
    }

    fn verdict(&mut self, fence: &Fence, act: &Act) -> Verdict {
        let grant = match act {
            Act::Write(ask) => ask.as_ref().map(|ask| ask.grant()),
            Act::Claim(grant) => Some(grant),
        };
        let number = grant.map_or(-1, |grant| grant.row_number());
        let row = self.rows.get(&number);
        let verdict = match act {
            Act::Write(ask) => decide(fence, row, ask.as_ref()),
            Act::Claim(grant) => decide_claim(fence, row, grant),
        };
        if let Verdict::Admitted(Some(next)) = &verdict {
            self.rows.insert(number, next.clone());
        }
        verdict
    }
}
