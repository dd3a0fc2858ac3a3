//! `leasehold top` in a terminal.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::process::Stdio;
use std::time::Duration;

use leasehold::testing::TestServer;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// For what takes milliseconds on a quiet machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn the_view_takes_the_terminal_and_gives_it_back() {
    let server = TestServer::start().await;
    let _held = server.client().acquire("billing/close").await.unwrap();
    // Afterwards the terminal reads whole lines again, and shows what is typed.
    let line = format!("{} top; echo code $?; stty -a", env!("CARGO_BIN_EXE_leasehold"));
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).env("LEASEHOLD_SERVER", server.url()).kill_on_drop(true);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut keyboard = script.stdin.take().unwrap();
    keyboard.write_all(b"q").await.unwrap();
    let shown = tokio::time::timeout(PATIENCE, script.wait_with_output()).await.expect("q ends it").unwrap();
    drop(keyboard);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("billing/close") && shown.contains("q quits"), "{shown}");
    let (_, after) = shown.split_once("\x1b[?1049l").expect("it gives the screen back");
    assert!(after.contains("code 0") && after.contains(" icanon") && after.contains(" echo "), "{after}");
}
