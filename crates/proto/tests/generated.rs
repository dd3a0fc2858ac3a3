//! The committed code is what the proto file says.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::fs;
use std::path::Path;

use prost::Message as _;

const BLESS: &str = "LEASEHOLD_BLESS";

#[test]
fn the_generated_code_is_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors =
        protox::compile(["leasehold/v1/locks.proto"], [root.join("proto")]).expect("the proto file is valid");
    let out = tempfile::tempdir().unwrap();
    fs::write(out.path().join("descriptors.bin"), descriptors.encode_to_vec()).unwrap();
    tonic_prost_build::configure()
        .out_dir(out.path())
        .bytes(".leasehold.v1")
        .btree_map(".leasehold.v1")
        .codec_path("crate::Codec")
        .compile_fds(descriptors)
        .expect("code for the proto file");
    for name in ["leasehold.v1.rs", "descriptors.bin"] {
        compare(&out.path().join(name), &root.join("src/generated").join(name));
    }
}

fn compare(made: &Path, committed: &Path) {
    let made = fs::read(made).unwrap();
    if std::env::var_os(BLESS).is_some() {
        fs::write(committed, &made).unwrap();
    }
    let same = fs::read(committed).is_ok_and(|committed| committed == made);
    assert!(same, "{} is out of date: {BLESS}=1 cargo test -p leasehold-proto", committed.display());
}
