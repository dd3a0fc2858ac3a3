//! A full disk (F5, L7): releases go on, acquires are refused before anything is decided, and resume with room.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use leasehold_tests::{Answer, Http, Seed, Server, until};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use serde_json::json;

/// Room for the first segment, a spare, the reserve, and later one more segment.
const DISK: &str = "size=256m";
/// More acquires than fit into the segments that exist before the disk is full.
const MOST: usize = 400_000;

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
    let filler = disk.fill();

    let held = acquire_until_refused(&mut http, &mut seed);
    println!("{} locks until the disk was full", held.len());
    let refused = acquire(&mut http, "one more", &seed.uuid());
    assert_eq!((refused.status, refused.code().as_str()), (503, "store_unavailable"), "{}", refused.body);
    assert_eq!(refused.json()["sideEffects"], "none");
    let session = http.post("/v1/sessions", &json!({ "ownerId": "test" })).unwrap();
    assert_eq!(session.code(), "store_unavailable", "{}", session.body);

    for lease in &held {
        let released = http.delete(&format!("/v1/locks/{lease}")).unwrap();
        assert_eq!(released.status, 200, "a release needs no room of its own: {}", released.body);
    }
    assert_eq!(http.get("/v1/locks").unwrap().json()["locks"], json!([]), "all are released");

    fs::remove_file(filler).unwrap();
    until("acquires to resume", Duration::from_secs(30), || {
        Some(acquire(&mut http, "one more", &seed.uuid())).filter(Answer::is_acquired)
    });
}

/// The disk of this test is memory, and the journal knows that it does not survive: correctness locks are refused there.
fn acquire(http: &mut Http, resource: &str, lease: &str) -> Answer {
    let body = json!({ "resource": resource, "ownerId": "test", "leaseId": lease, "ttlMs": 3_600_000,
                       "class": "efficiency" });
    http.post("/v1/locks/acquire", &body).unwrap()
}

fn acquire_until_refused(http: &mut Http, seed: &mut Seed) -> Vec<String> {
    let mut held = Vec::new();
    for number in 0..MOST {
        let lease = seed.uuid();
        let answer = acquire(http, &format!("full/{number}"), &lease);
        if !answer.is_acquired() {
            let problem = answer.json();
            assert_eq!(problem["code"], "store_unavailable", "{problem}");
            assert!(problem["detail"].as_str().unwrap().contains("disk full"), "{problem}");
            return held;
        }
        // Most are given back at once, so that the journal grows and the table does not.
        if number % 50 == 0 {
            held.push(lease);
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
