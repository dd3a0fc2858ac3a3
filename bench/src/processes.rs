//! What the kernel tells of processes and threads.

use std::path::Path;
use std::time::Duration;

/// Processor time of a process or thread, its own and the kernel's for it, from its folder under `/proc`; and its parent.
pub(crate) fn time_and_parent(folder: &Path) -> Option<(Duration, u32)> {
    let stat = std::fs::read_to_string(folder.join("stat")).ok()?;
    // The name, in brackets, may hold spaces; after it the fields are plain.
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let number = |field: usize| fields.get(field).and_then(|text| text.parse::<u64>().ok());
    // The kernel counts in hundredths of a second.
    let time = Duration::from_millis((number(11)? + number(12)?) * 10);
    Some((time, u32::try_from(number(1)?).ok()?))
}

/// The number of a process or thread, from its folder.
pub(crate) fn number_of(folder: &Path) -> Option<u32> {
    folder.file_name()?.to_str()?.parse().ok()
}
