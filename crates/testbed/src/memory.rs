//! Shared memory that a killed PostgreSQL leaves in the kernel.

use std::fs;
use std::path::Path;

use crate::find;

/// Removes the segment that this lock file of PostgreSQL names, if it is still there. A server that ended in order has
/// removed both.
pub(crate) fn remove(lock_file: &Path) {
    let Some((key, id)) = fs::read_to_string(lock_file).ok().and_then(|text| noted(&text)) else { return };
    let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    // Both must fit: ids are used again.
    if segments.lines().any(|line| segment(line) == Some((key, id))) {
        let _ = std::process::Command::new(find::program("ipcrm", "util-linux"))
            .args(["--shmem-id", &id.to_string()])
            .output();
    }
}

/// The seventh line has key and id.
fn noted(text: &str) -> Option<(u32, u32)> {
    let mut words = text.lines().nth(6)?.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// Key and id of a line of the kernel's list, where the key has a sign.
fn segment(line: &str) -> Option<(u32, u32)> {
    let mut words = line.split_whitespace();
    let key: i32 = words.next()?.parse().ok()?;
    Some((key.cast_unsigned(), words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_and_id_are_found_on_both_sides() {
        let lock_file = "1234\n/data\n1700000000\n5432\n/socket\n127.0.0.1\n  10093764     98342\nready\n";
        assert_eq!(noted(lock_file), Some((10_093_764, 98_342)));
        let line = "  10093764      98342   600    56  4242  4243  0  65534 65534 65534 65534";
        assert_eq!(segment(line), Some((10_093_764, 98_342)));
        assert_eq!(segment("       key      shmid perms"), None);
    }
}
