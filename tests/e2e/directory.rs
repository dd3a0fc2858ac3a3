//! What `serve` refuses to start on, and how an operator goes on from there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use leasehold_tests::{Seed, Server, binary};

/// What `recover` adds to every token that was known.
const RECOVERY_STEP: u64 = 1 << 40;

#[test]
fn a_second_server_on_the_same_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let server = Server::start(&data);
    let refused = Server::refused(&data);
    assert_refused(&refused, &["in use"]);
    assert_eq!(server.http().get("/readyz").unwrap().status, 200, "the first one does not notice");
}

#[test]
fn a_flipped_bit_in_the_acknowledged_record_is_refused_with_file_and_offset() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let names = ["flip/first", "flip/middle", "flip/last"];
    let mut seed = Seed::from_env(6);
    let server = Server::start(&data);
    let mut http = server.http();
    for name in names {
        assert!(http.acquire(name, &seed.uuid(), 3_600_000).unwrap().is_acquired());
    }
    server.kill9();

    for name in names {
        let (file, offset) = find(&data, name.as_bytes());
        flip(&file, offset);
        let refused = Server::refused(&data);
        let file_name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let sector = format!("at byte {}", offset / 512 * 512);
        assert_refused(&refused, &["corrupt", &file_name, &sector]);
        flip(&file, offset);
    }
    let server = Server::start(&data);
    let held = server.http().get("/v1/locks?prefix=flip").unwrap().json();
    assert_eq!(held["locks"].as_array().unwrap().len(), names.len(), "whole again, it serves again: {held}");
}

#[test]
fn a_directory_copied_back_is_refused_until_recover_and_tokens_stay_above() {
    let dir = tempfile::tempdir().unwrap();
    let (data, copy) = (dir.path().join("data"), dir.path().join("copy"));
    let mut seed = Seed::from_env(7);
    let server = Server::start(&data);
    assert!(server.http().acquire("before", &seed.uuid(), 3_600_000).unwrap().is_acquired());
    server.stop();
    copy_all(&data, &copy);
    let server = Server::start(&data);
    let lost = server.http().acquire("after", &seed.uuid(), 3_600_000).unwrap().token();
    server.stop();

    fs::remove_dir_all(&data).unwrap();
    copy_all(&copy, &data);
    assert_refused(&Server::refused(&data), &["recover"]);

    let recovered = leasehold(&["recover", "--actor", "ada", "--reason", "copied back"], &data);
    assert!(recovered.status.success(), "{}", text(&recovered));
    let server = Server::start(&data);
    let mut http = server.http();
    let next = http.acquire("next", &seed.uuid(), 60_000).unwrap().token();
    assert!(next > lost && next > RECOVERY_STEP, "token {next} after {lost} was lost");
    let status = http.get("/v1/status").unwrap().json();
    assert_eq!(status["generation"], 2, "{status}");
    let audit = http.get("/v1/audit").unwrap().json();
    assert_eq!(audit["entries"][0]["action"], "RECOVER", "{audit}");
}

#[test]
fn a_backup_is_restored_elsewhere_with_larger_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let (data, restored, file) =
        (dir.path().join("data"), dir.path().join("restored"), dir.path().join("backup"));
    let file_text = file.to_str().unwrap();
    let lease = Seed::from_env(8).uuid();
    let server = Server::start(&data);
    let token = server.http().acquire("kept", &lease, 3_600_000).unwrap().token();
    server.stop();
    let asked = ["backup", file_text, "--unserved", "--actor", "ada", "--reason", "monday"];
    let backup = leasehold(&asked, &data);
    assert!(backup.status.success(), "{}", text(&backup));
    let again = leasehold(&asked, &data);
    assert!(!again.status.success(), "a backup is never overwritten: {}", text(&again));

    let restore = leasehold(&["restore", file_text, "--actor", "ada", "--reason", "new disk"], &restored);
    assert!(restore.status.success(), "{}", text(&restore));
    let server = Server::start(&restored);
    let mut http = server.http();
    let kept = http.get(&format!("/v1/locks/{lease}")).unwrap();
    assert_eq!((kept.status, kept.token()), (200, token), "{}", kept.body);
    let next = http.acquire("next", &Seed::from_env(9).uuid(), 60_000).unwrap().token();
    assert!(next > RECOVERY_STEP, "token {next}");
    let onto_live = leasehold(&["restore", file_text, "--actor", "ada", "--reason", "by mistake"], &restored);
    assert!(
        !onto_live.status.success(),
        "a directory with a journal is never restored over: {}",
        text(&onto_live)
    );
}

#[test]
fn an_unsafe_address_is_refused_without_insecure() {
    let dir = tempfile::tempdir().unwrap();
    let refused = Command::new(binary::path())
        .args(["serve", "--listen", "0.0.0.0:0", "--data"])
        .arg(dir.path().join("data"))
        .output()
        .unwrap();
    assert_refused(&refused, &["--insecure"]);
}

fn assert_refused(refused: &Output, words: &[&str]) {
    let said = text(refused);
    assert_eq!(refused.status.code(), Some(78), "{said}");
    for word in words {
        assert!(said.contains(word), "`{word}` is missing in: {said}");
    }
}

fn leasehold(args: &[&str], data: &Path) -> Output {
    Command::new(binary::path()).args(args).arg("--data").arg(data).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The file and place where these bytes stand.
fn find(directory: &Path, bytes: &[u8]) -> (PathBuf, usize) {
    let found = files(directory).into_iter().find_map(|file| {
        let content = fs::read(&file).unwrap();
        let at = content.windows(bytes.len()).position(|window| window == bytes)?;
        Some((file, at))
    });
    found.expect("what was acknowledged stands in a file")
}

fn flip(file: &Path, offset: usize) {
    let mut content = fs::read(file).unwrap();
    content[offset] ^= 0x10;
    fs::write(file, content).unwrap();
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

fn copy_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_all(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
