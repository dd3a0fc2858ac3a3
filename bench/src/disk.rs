//! What the disk alone takes for a durable write: the floor under every durable acquire.

use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use crate::measured::Measured;

/// What is written at once.
const BLOCK: usize = 4096;
/// Zero-filled in advance, as a journal would be, so that a write changes no metadata.
const BLOCKS: u64 = 1_024;

/// Writes a block and waits until it is durable, again and again, in the folder that servers and engines use too.
pub(crate) fn turn(length: Duration) -> anyhow::Result<Measured> {
    let file = tempfile::tempfile()?;
    let block = [1; BLOCK];
    for number in 0..BLOCKS {
        file.write_all_at(&[0; BLOCK], number * BLOCK as u64)?;
    }
    file.sync_all()?;
    let mut measured = Measured::new();
    let began = Instant::now();
    for number in (0..BLOCKS).cycle() {
        let started = Instant::now();
        if began.elapsed() >= length {
            break;
        }
        file.write_all_at(&block, number * BLOCK as u64)?;
        file.sync_data()?;
        measured.note(started.elapsed());
    }
    measured.took = began.elapsed();
    Ok(measured)
}
