//! What the kernel tells of processes and threads.

use std::path::Path;
use std::time::Duration;

/// Processor time of a thread, or of the first thread of a process, its own and the kernel's for it, from its folder under
/// `/proc`. To the nanosecond: `stat` has hundredths of a second, of which many processes that do a little each have none.
pub(crate) fn time_of(folder: &Path) -> Option<Duration> {
    let schedstat = std::fs::read_to_string(folder.join("schedstat")).ok()?;
    schedstat.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Who began a process.
pub(crate) fn parent_of(folder: &Path) -> Option<u32> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    // The name, in brackets, may hold spaces; after it the fields are plain: a letter for the state, and the parent.
    stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()
}

/// The number of a process or thread, from its folder.
pub(crate) fn number_of(folder: &Path) -> Option<u32> {
    folder.file_name()?.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn little_work_takes_a_little_time() {
        let own = Path::new("/proc/thread-self");
        let (before, begun) = (time_of(own).unwrap(), Instant::now());
        while begun.elapsed() < Duration::from_millis(3) {}
        // The kernel counts when a thread leaves its core.
        std::thread::sleep(Duration::from_millis(1));
        let took = time_of(own).unwrap() - before;
        // It may have had to wait for a core meanwhile.
        assert!(took > Duration::ZERO && took < Duration::from_secs(1), "{took:?}");
        assert_eq!(parent_of(Path::new("/proc/self")), Some(std::os::unix::process::parent_id()));
    }
}
