//! Malformed bytes (F14): seeded mutations of valid ones, for whatever reads bytes of others.

use std::time::{Duration, Instant};

use crate::Seed;

/// So many in any case, however slow the reader is.
const FEWEST: u64 = 50;

/// Mutates the entries of a corpus again and again and gives each mutant to `read`, with the place of the entry that it
/// was made from. Goes on for ten seconds, or for as many as `LEASEHOLD_FUZZ_SECONDS` says; `LEASEHOLD_SEED` repeats a
/// run. How many there were.
#[expect(
    clippy::disallowed_methods,
    reason = "bounds how long a developer waits; nothing else depends on it"
)]
pub fn mutants(corpus: &[Vec<u8>], mut read: impl FnMut(usize, &[u8])) -> u64 {
    assert!(!corpus.is_empty(), "there is nothing to mutate");
    let seconds = std::env::var("LEASEHOLD_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let most = Duration::from_secs_f64(seconds.unwrap_or(10.0));
    let (began, mut seed, mut count) = (Instant::now(), Seed::from_env(14), 0);
    while count < FEWEST || began.elapsed() < most {
        let place = index(&mut seed, corpus.len());
        read(place, &mutant(&corpus[place], &corpus[index(&mut seed, corpus.len())], &mut seed));
        count += 1;
    }
    count
}

/// One to four changes; `other` lends what is spliced in.
fn mutant(valid: &[u8], other: &[u8], seed: &mut Seed) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=seed.below(4) {
        let at = index(seed, bytes.len() + 1);
        let is_inside = at < bytes.len();
        match seed.below(8) {
            0 | 1 if is_inside => bytes[at] ^= 1 << seed.below(8),
            2 if is_inside => bytes[at] = [0, 1, 0x7F, 0x80, 0xFF][index(seed, 5)],
            3 if is_inside => drop(bytes.remove(at)),
            4 => bytes.insert(at, u8::try_from(seed.below(256)).expect("below 256")),
            5 => bytes.truncate(at),
            6 => {
                let part: Vec<u8> = bytes[at..].iter().take(40).copied().collect();
                bytes.splice(at..at, part);
            }
            _ => {
                let from = index(seed, other.len() + 1);
                bytes.splice(at.., other[from..].iter().copied());
            }
        }
    }
    bytes
}

fn index(seed: &mut Seed, len: usize) -> usize {
    usize::try_from(seed.below(len as u64)).expect("an index")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_its_mutants_and_most_of_them_differ_from_what_was_valid() {
        let draw = || {
            let mut seed = Seed::new(3);
            (0..100).map(|_| mutant(b"orders/42", b"{}", &mut seed)).collect::<Vec<_>>()
        };
        assert_eq!(draw(), draw());
        let same = draw().iter().filter(|bytes| *bytes == b"orders/42").count();
        assert!(same < 20, "{same} of 100 were not changed");
    }
}
