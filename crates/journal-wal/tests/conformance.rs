//! The embedded journal passes the conformance suite: on a real directory, and on a disk in memory with tiny segments,
//! where every history rotates.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use leasehold_journal::Journal;
use leasehold_journal::conformance::{self, Fixture, Openers, Place};
use leasehold_journal_wal::disk::MemoryDisk;
use leasehold_journal_wal::{Background, WalConfig, WalJournal};

struct Site {
    journal: WalJournal,
    _dir: Option<tempfile::TempDir>,
}

impl Place for Site {
    fn journal(&self) -> &dyn Journal {
        &self.journal
    }
}

struct OnDisk;

#[async_trait::async_trait]
impl Fixture for OnDisk {
    fn openers(&self) -> Openers {
        Openers::One
    }

    async fn place(&self) -> Box<dyn Place> {
        let dir = tempfile::tempdir().unwrap();
        let config = WalConfig {
            segment_bytes: 2 << 20,
            first_segment_bytes: 1 << 20,
            reserve_bytes: 64 << 10,
            body_bytes: 64 << 10,
            ..WalConfig::new(dir.path().join("journal"))
        };
        Box::new(Site { journal: WalJournal::new(config), _dir: Some(dir) })
    }

    fn histories(&self) -> u64 {
        6
    }
}

struct InMemory;

#[async_trait::async_trait]
impl Fixture for InMemory {
    fn openers(&self) -> Openers {
        Openers::One
    }

    async fn place(&self) -> Box<dyn Place> {
        let config = WalConfig {
            segment_bytes: 16 << 10,
            first_segment_bytes: 8 << 10,
            reserve_bytes: 4 << 10,
            background: Background::Inline,
            ..WalConfig::new("unused")
        };
        Box::new(Site { journal: WalJournal::on(Arc::new(MemoryDisk::new()), config), _dir: None })
    }

    fn histories(&self) -> u64 {
        300
    }
}

#[tokio::test]
async fn on_a_real_directory() {
    conformance::run(&OnDisk).await.assert_passed();
}

#[tokio::test]
async fn on_tiny_segments_in_memory() {
    conformance::run(&InMemory).await.assert_passed();
}
