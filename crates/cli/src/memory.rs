//! How the server has its memory: in small pages, and what is free goes back to the system.
//!
//! A page of two megabytes is found and emptied while somebody waits for it, for milliseconds on a machine whose memory is
//! in pieces, or is the host's; and it counts as used when a part of it is.
//!
//! The allocator keeps what is freed for a second, since most of it is wanted again, and gives it back after that when
//! somebody asks: when pages are emptied, or when a thread ends. A server that has replayed a large journal, or made a large
//! snapshot, and is quiet then, does neither, and would keep what that took for ever. So a thread ends now and then.

use std::io;
use std::thread;
use std::time::Duration;

/// Longer than the allocator keeps what is free; short enough that nobody wonders where the memory has gone.
const EVERY: Duration = Duration::from_secs(3);

/// Without pages of two megabytes, whatever the system's setting.
pub(crate) fn in_small_pages() {
    // Best effort: with them it is slower now and then, and larger.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// Goes on until the process ends.
///
/// # Errors
/// There is no thread.
pub(crate) fn give_back() -> io::Result<()> {
    thread::Builder::new().name("leasehold-memory".to_owned()).spawn(end_threads)?;
    Ok(())
}

fn end_threads() {
    loop {
        pause();
        // Whether there is one more thread or not, there is nothing to do about it here.
        let ended = thread::Builder::new().name("leasehold-purge".to_owned()).spawn(|| {});
        let _ = ended.map(thread::JoinHandle::join);
    }
}

#[expect(clippy::disallowed_methods, reason = "nothing waits for it, and nothing is decided by it")]
fn pause() {
    thread::sleep(EVERY);
}
