//! D12: an archive or another journal fills an empty one.

use leasehold_types::Slot;

use super::Fixture;
use super::kit::{Node, Seen, claim, ensure, read_all, same};
use crate::{ImportError, MemoryJournal, OpenError, Tail};

/// Whether this kind of journal cannot be filled at all, which is lawful.
fn unsupported(outcome: &Result<Tail, ImportError>) -> bool {
    matches!(outcome, Err(ImportError::Target(OpenError::Unsuitable(_))))
}

pub(super) async fn copy(fixture: &dyn Fixture) -> Result<(), Seen> {
    for keep_from in [Slot(1), Slot(4), Slot(100)] {
        let source = MemoryJournal::new();
        let mut old = Node::open(&source, 1).await?;
        let mut written = old.append_many(6).await?;
        let at = old.tail;
        old.install(at, &["state", "of it"], keep_from).await?;
        let mut old = Node::open(&source, 2).await?;
        written.extend(old.append_many(150).await?);

        let place = fixture.place().await;
        let filled = place.journal().import(old.opened.reader.as_mut()).await;
        if unsupported(&filled) {
            return Ok(());
        }
        same("import", &filled, &Ok(old.tail))?;
        let mut new = Node::recover(place.journal(), 3).await?;
        same("cluster", &new.opened.cluster, &old.opened.cluster)?;
        same("tail", &new.tail, &old.tail)?;
        ensure(new.opened.epoch > old.opened.epoch, || format!("epoch {}", new.opened.epoch))?;
        let info = new.opened.reader.snapshot().await?;
        same("snapshot", &info, &old.opened.reader.snapshot().await?)?;
        let read = read_all(new.opened.reader.as_mut(), Slot(7)).await?;
        same("slots", &read, &written[6..].to_vec())?;
        new.append("goes on").await?;
    }
    Ok(())
}

pub(super) async fn unrecovered(fixture: &dyn Fixture) -> Result<(), Seen> {
    let source = MemoryJournal::new();
    let mut old = Node::open(&source, 1).await?;
    old.append_many(3).await?;
    let place = fixture.place().await;
    let filled = place.journal().import(old.opened.reader.as_mut()).await;
    if unsupported(&filled) {
        return Ok(());
    }
    let refused = |outcome: Result<crate::Opened, OpenError>, when: &str| {
        ensure(matches!(outcome, Err(OpenError::Regressed(_))), || format!("a claim {when}: {outcome:?}"))
    };
    refused(place.journal().open(claim(2)).await, "before it is recovered")?;
    drop(Node::recover(place.journal(), 3).await?);
    refused(place.journal().open(claim(4)).await, "after a recovery that was interrupted")?;
    Node::recover(place.journal(), 5).await?.append("recovered").await?;
    Node::open(place.journal(), 6).await.map(drop)
}

pub(super) async fn only_empty(fixture: &dyn Fixture) -> Result<(), Seen> {
    let source = MemoryJournal::new();
    let mut old = Node::open(&source, 1).await?;
    old.append_many(2).await?;
    let place = fixture.place().await;
    let written = Node::open(place.journal(), 2).await?.append_many(3).await?;
    let filled = place.journal().import(old.opened.reader.as_mut()).await;
    if unsupported(&filled) {
        return Ok(());
    }
    ensure(matches!(filled, Err(ImportError::NotEmpty(_))), || format!("import: {filled:?}"))?;
    let mut node = Node::open(place.journal(), 3).await?;
    same("what was there", &read_all(node.opened.reader.as_mut(), Slot(1)).await?, &written)
}
