//! Many writers with random tokens at one fence, at the same time.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use leasehold_types::{FencingToken, ResourceName};

use super::random::Random;
use super::{Outcome, Protected};
use crate::rollout::Timer;
use crate::{Fence, FenceError, Grant, Rejection};

/// How hard to race.
#[derive(Debug, Clone, Copy)]
pub struct Race {
    /// Writers at the same time.
    pub writers: u64,
    /// Writes of each, at least.
    pub writes: u64,
    /// Everybody goes on for this long.
    pub lasting: Duration,
}

impl Default for Race {
    fn default() -> Self {
        Self { writers: 64, writes: 8, lasting: Duration::ZERO }
    }
}

/// One answered write.
struct Write {
    token: u64,
    line: String,
    outcome: Outcome,
}

/// Lets writers race, then looks at what is there: accepted tokens never go down, the highest token is the last, every
/// acknowledged line is there once, and no rejected one.
///
/// # Panics
/// When one of these is not so: says which, and the seed.
pub async fn race(protected: &impl Protected, seed: u64, race: Race) {
    let name = ResourceName::new(&format!("race/{seed}")).expect("a valid name");
    let (fence, begun) = (&Fence::of(&name), &Timer::start());
    let random = |n: u64| Random::new(seed ^ (n << 32));
    let writers = (0..race.writers).map(|n| writer(protected, fence, random(n), n, race, begun));
    let mut writes: Vec<Write> = join_all(writers).await.into_iter().flatten().collect();
    writes.push(last(protected, fence, &writes).await);
    let lines = protected.lines(fence).await;
    check_order(&lines, seed);
    check_presence(&writes, &lines, seed);
    check_effort(&writes, seed);
}

/// Tokens wander upwards with the writes, so that the race goes on to its end.
async fn writer(
    protected: &impl Protected,
    fence: &Fence,
    mut random: Random,
    n: u64,
    race: Race,
    begun: &Timer,
) -> Vec<Write> {
    let mut done = Vec::new();
    for write in 0.. {
        if write >= race.writes && begun.elapsed() >= race.lasting {
            break;
        }
        let token = 1 + write * 8 + random.below(24);
        let line = format!("{token} {n} {write}");
        let grant = grant(fence, token);
        if random.below(8) == 0 {
            // Its answer does not matter: the write that follows is answered on its own.
            let _ = protected.claim(fence, &grant).await;
        }
        let outcome = protected.append(fence, Some(&grant.write()), &line).await;
        done.push(Write { token, line, outcome });
    }
    done
}

/// The highest token of all wins, whatever came before.
async fn last(protected: &impl Protected, fence: &Fence, writes: &[Write]) -> Write {
    let token = 1 + writes.iter().map(|write| write.token).max().expect("there are writers");
    let line = format!("{token} last 0");
    let outcome = protected.append(fence, Some(&grant(fence, token).write()), &line).await;
    assert!(outcome.is_ok(), "the highest token was not admitted: {outcome:?}");
    let late = protected.append(fence, Some(&grant(fence, token - 1).write()), "late").await;
    assert!(matches!(late, Err(FenceError::Rejected(Rejection::Stale { .. }))), "a late write: {late:?}");
    Write { token, line, outcome }
}

fn grant(fence: &Fence, token: u64) -> Grant {
    Grant::exclusive(fence.guard().clone(), FencingToken::new(token).expect("a small token"))
}

fn check_order(lines: &[String], seed: u64) {
    let token = |line: &String| -> u64 {
        let first = line.split(' ').next().expect("a line has words");
        first.parse().unwrap_or_else(|_| panic!("seed {seed}: a line nobody was admitted to write: {line:?}"))
    };
    let tokens: Vec<u64> = lines.iter().map(token).collect();
    assert!(tokens.is_sorted(), "seed {seed}: accepted tokens went down: {tokens:?}");
}

fn check_presence(writes: &[Write], lines: &[String], seed: u64) {
    let there: BTreeSet<&String> = lines.iter().collect();
    assert_eq!(there.len(), lines.len(), "seed {seed}: a line was written twice");
    for Write { line, outcome, .. } in writes {
        match outcome {
            Ok(()) => assert!(there.contains(line), "seed {seed}: the acknowledged write {line:?} is lost"),
            Err(FenceError::Store(_)) => {} // Unknown: there or not, but not twice.
            Err(_) => assert!(!there.contains(line), "seed {seed}: the rejected write {line:?} is there"),
        }
    }
}

/// A store that answers nothing, or rejects everyone in the race, would pass every check above. How many are admitted
/// is luck: the highest token may come first.
fn check_effort(writes: &[Write], seed: u64) {
    let admitted = writes.iter().filter(|write| write.outcome.is_ok()).count();
    let failed: Vec<_> = writes.iter().filter_map(|write| write.outcome.as_ref().err()).collect();
    let failed: Vec<_> = failed.into_iter().filter(|error| error.rejection().is_none()).collect();
    assert!(admitted > 1, "seed {seed}: nobody but the last of {} writes was admitted", writes.len());
    let (first, all) = (failed.first(), writes.len());
    assert!(
        failed.len() * 4 < all,
        "seed {seed}: {} of {all} writes were not answered: {first:?}",
        failed.len()
    );
}
