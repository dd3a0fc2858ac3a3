//! What the built server asks of the machine for its figures.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

mod support;

use support::Serving;
use tempfile::TempDir;

fn serving(data: &TempDir) -> Serving {
    Serving::start(&["serve", "--listen", "127.0.0.1:0", "--data", data.path().to_str().unwrap()])
}

#[test]
fn the_server_has_its_memory_in_small_pages() {
    let data = TempDir::new().unwrap();
    let server = serving(&data);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let huge = status.lines().find_map(|line| line.strip_prefix("THP_enabled:")).expect("the kernel tells");
    assert_eq!(huge.trim(), "0");
}
