//! The suite passes on a right journal and fails, by name, on each wrong one: a suite that cannot fail proves nothing.

use leasehold_journal::conformance::{self, Fixture, Openers, Place, Report};
use leasehold_journal::{Defect, MemoryJournal};

struct Memory(Option<Defect>);

#[async_trait::async_trait]
impl Fixture for Memory {
    fn openers(&self) -> Openers {
        Openers::Many
    }

    async fn place(&self) -> Box<dyn Place> {
        Box::new(self.0.map_or_else(MemoryJournal::new, MemoryJournal::with_defect))
    }
}

async fn run(defect: Option<Defect>) -> Report {
    conformance::run(&Memory(defect)).await
}

#[tokio::test]
async fn the_memory_journal_passes() {
    let report = run(None).await;
    report.assert_passed();
    assert!(report.checks.len() >= 30, "{report}");
}

#[tokio::test]
async fn each_defect_is_caught_by_the_check_of_its_rule() {
    let cases = [
        (Defect::StaleAppend, "J4 an older writer is fenced, or a second one refused"),
        (Defect::StaleBeat, "J15 a beat is seen, and fenced"),
        (Defect::StaleConfirm, "J7 only the current epoch is confirmed"),
        (Defect::StaleInstall, "J13 an older writer cannot install a snapshot"),
        (Defect::DuelWonTwice, "J4 a duel is lost cleanly"),
        (Defect::TailBeforeTakeOver, "J5 the tail is that after the take-over"),
        (Defect::AppendedTwice, "J3 the same bytes again are committed once"),
        (Defect::ConflictUnseen, "J2 other bytes in a taken slot are a conflict"),
        (Defect::GapTaken, "J1 a gap is refused"),
        (Defect::EpochUnread, "J1 a batch that is chained in another epoch is refused"),
        (Defect::ChainUnchecked, "J1 a batch that does not follow the chain is refused"),
        (Defect::CompactedReopened, "J8 a compacted slot is never created again"),
        (Defect::CompactionHidden, "J8 truncated slots are said to be compacted"),
        (Defect::TruncatedPastSnapshot, "J8 truncation never passes the snapshot"),
        (Defect::SnapshotGoesBack, "J13 a snapshot goes neither back nor past the tail"),
        (Defect::SnapshotsMixed, "J13 a replaced snapshot is never mixed with its successor"),
        (Defect::BodyCut, "J10 a body at the limit is taken, one over it refused"),
        (Defect::ChunkUnbounded, "J10 a chunk at the limit is taken, one over it refused"),
        (Defect::RefusedVisible, "J1 a gap is refused"),
        (Defect::CopyServed, "D12 a copy is refused until it is recovered"),
    ];
    for (defect, check) in cases {
        let report = run(Some(defect)).await;
        assert!(report.checks.contains(&check), "no check is called {check:?}");
        assert!(report.failed(check), "{defect:?} is not caught by {check:?}: {report}");
    }
}
