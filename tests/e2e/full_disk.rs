//! A full disk (F5, L7): releases go on, acquires are refused before anything is decided, and resume with room.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_history::{Answer as Recorded, Call};
use leasehold_tests::{Answer, Http, Seed, Server, Story, until};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;

/// Room for the first segment, a spare, the reserve, and later one more segment.
const DISK: &str = "size=256m";
/// More acquires than fit into the segments that exist before the disk is full.
const MOST: usize = 400_000;
/// Longer than the test.
const TTL_MS: u64 = 3_600_000;

#[test]
fn on_a_full_disk_releases_work_and_acquires_resume_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let disk = match SmallDisk::mount(&dir.path().join("disk")) {
        Ok(disk) => disk,
        Err(error) => return println!("skipped: a small file system cannot be mounted here: {error}"),
    };
    let server = Server::start(&disk.0.join("data"));
    let mut http = server.http();
    let mut seed = Seed::from_env(10);
    let (filler, story) = (disk.fill(), Story::begin("full-disk"));

    let held = acquire_until_refused(&mut http, &mut seed, &story);
    println!("{} locks until the disk was full", held.len());
    let refused = told(&story, &mut http, "one more", &seed.uuid());
    assert_eq!((refused.status, refused.code().as_str()), (503, "store_unavailable"), "{}", refused.body);
    assert_eq!(refused.json()["sideEffects"], "none");
    let session = http.post("/v1/sessions", &json!({ "ownerId": "test" })).unwrap();
    assert_eq!(session.code(), "store_unavailable", "{}", session.body);

    for (_, lease) in &held {
        let op = story.releases("test", lease);
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        assert_eq!(released.status, 200, "a release needs no room of its own: {}", released.body);
        story.told(op, Recorded::Released { token: released.token() });
    }
    let names = held.iter().map(|(name, _)| name.as_str()).chain(["one more"]);
    let looks: Vec<u64> =
        names.map(|name| story.asks("looking", Call::Read { resource: name.into() })).collect();
    assert_eq!(http.get("/v1/locks").unwrap().json()["locks"], json!([]), "all are released");
    looks.into_iter().for_each(|op| story.told(op, Recorded::Holders { tokens: Vec::new() }));

    fs::remove_file(filler).unwrap();
    until("acquires to resume", Duration::from_secs(30), || {
        Some(told(&story, &mut http, "one more", &seed.uuid())).filter(Answer::is_acquired)
    });
    story.judge();
}

/// Acquires, and writes down what came of it.
fn told(story: &Story, http: &mut Http, resource: &str, lease: &str) -> Answer {
    let op = story.acquires("test", resource, lease);
    let answer = acquire(http, resource, lease);
    let recorded = match answer.is_acquired() {
        true => Recorded::Granted { token: answer.token(), ttl_ms: TTL_MS },
        false => Recorded::Failed,
    };
    story.told(op, recorded);
    answer
}

/// The disk of this test is memory, and the journal knows that it does not survive: correctness locks are refused there.
fn acquire(http: &mut Http, resource: &str, lease: &str) -> Answer {
    let body = json!({ "resource": resource, "ownerId": "test", "leaseId": lease, "ttlMs": TTL_MS,
                       "class": "efficiency" });
    http.post("/v1/locks/acquire", &body).unwrap()
}

/// What is held when there is no room any more: resources and leases.
fn acquire_until_refused(http: &mut Http, seed: &mut Seed, story: &Story) -> Vec<(String, String)> {
    let mut held = Vec::new();
    for number in 0..MOST {
        let (name, lease) = (format!("full/{number}"), seed.uuid());
        // Most are given back at once, so that the journal grows and the table does not; nor does the history.
        let is_kept = number % 50 == 0;
        let answer = match is_kept {
            true => told(story, http, &name, &lease),
            false => acquire(http, &name, &lease),
        };
        if !answer.is_acquired() {
            let problem = answer.json();
            assert_eq!(problem["code"], "store_unavailable", "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains("disk full"), "{problem}");
            return held;
        }
        if is_kept {
            held.push((name, lease));
        } else {
            assert_eq!(http.delete(&format!("/v1/locks/{lease}")).unwrap().status, 200);
        }
    }
    panic!("{MOST} acquires did not fill the disk");
}

/// A tmpfs, unmounted when it is dropped.
struct SmallDisk(PathBuf);

impl SmallDisk {
    fn mount(at: &Path) -> std::io::Result<Self> {
        fs::create_dir(at)?;
        let options = std::ffi::CString::new(DISK).unwrap();
        mount("tmpfs", at, "tmpfs", MountFlags::empty(), options.as_c_str())?;
        Ok(Self(at.to_owned()))
    }

    /// Takes all the room that is left.
    fn fill(&self) -> PathBuf {
        let path = self.0.join("filler");
        let mut file = File::create(&path).unwrap();
        let block = vec![1; 64 * 1024];
        while file.write_all(&block).is_ok() {}
        while file.write_all(&block[..512]).is_ok() {}
        path
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // The server is dropped before; should something still be open, the kernel lets go of it when that ends.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
