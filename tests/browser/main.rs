//! The console in a real Chromium: every page, live updates, taking a lock away, a server that goes and comes back.
//!
//! The steps of a scenario are in `scenarios.mjs`, which starts its own server and browser; here each is a test.
//! `cargo xtask browser NAME` runs one of them; pictures of every page are left in `target/tmp/console`.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::path::PathBuf;
use std::process::Command;

use leasehold_tests::{binary, free_port};
use tempfile::TempDir;

fn scenario(name: &str) {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| binary::root().join("target"), PathBuf::from);
    let data = TempDir::new().unwrap();
    let ended = Command::new("timeout")
        .args(["--kill-after=5", "120", "node"])
        .arg(binary::root().join("tests/browser/scenarios.mjs"))
        .arg(name)
        .env("LEASEHOLD_BIN", binary::path())
        .env("LEASEHOLD_TOOLS", target.join("tools/node"))
        .env("LEASEHOLD_DATA", data.path())
        .env("LEASEHOLD_PORT", free_port().to_string())
        .env("LEASEHOLD_PICTURES", target.join("tmp/console"))
        .status()
        .expect("`cargo xtask needs install` brings what this test needs");
    assert!(ended.success(), "to repeat: cargo xtask browser {name}");
}

#[test]
fn every_page_shows_and_is_accessible() {
    scenario("every_page_shows_and_is_accessible");
}

#[test]
fn a_lock_taken_elsewhere_appears_by_itself() {
    scenario("a_lock_taken_elsewhere_appears_by_itself");
}

#[test]
fn filters_show_what_wants_a_look() {
    scenario("filters_show_what_wants_a_look");
}

#[test]
fn a_lock_is_taken_away_only_with_name_and_reason() {
    scenario("a_lock_is_taken_away_only_with_name_and_reason");
}

#[test]
fn a_lease_that_ended_meanwhile_is_not_hit() {
    scenario("a_lease_that_ended_meanwhile_is_not_hit");
}

#[test]
fn a_server_that_goes_and_comes_back_is_said() {
    scenario("a_server_that_goes_and_comes_back_is_said");
}

#[test]
fn ten_thousand_locks_are_no_burden() {
    scenario("ten_thousand_locks_are_no_burden");
}

#[test]
fn without_rights_there_is_no_button() {
    scenario("without_rights_there_is_no_button");
}

#[test]
fn the_keyboard_is_enough() {
    scenario("the_keyboard_is_enough");
}
