//! J8, J13: snapshots, and what may be forgotten once there is one.

use bytes::Bytes;
use leasehold_types::Slot;

use super::Fixture;
use super::kit::{Node, Seen, batch_after, ensure, read_all, same, take_over};
use crate::{Chained, Outcome, ReadError, Slots, SnapshotHasher, Tail};

fn tail_of(committed: &Chained) -> Tail {
    committed.tail()
}

/// Reads the whole current snapshot: where it is, and its chunks.
async fn read_snapshot(node: &mut Node) -> Result<Option<(Tail, Vec<Bytes>)>, Seen> {
    let Some(info) = node.opened.reader.snapshot().await? else {
        return Ok(None);
    };
    let mut hasher = SnapshotHasher::default();
    let mut chunks = Vec::new();
    for index in 0..info.chunks {
        let chunk = node.opened.reader.chunk(&info, index).await?;
        hasher.update(&chunk);
        chunks.push(chunk);
    }
    same("whole hash of the snapshot", &hasher.finish(), &info.hash)?;
    Ok(Some((info.at, chunks)))
}

fn bytes(chunks: &[&'static str]) -> Vec<Bytes> {
    chunks.iter().map(|chunk| Bytes::from_static(chunk.as_bytes())).collect()
}

pub(super) async fn read_back(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    same("snapshot of an empty journal", &read_snapshot(&mut node).await?, &None)?;
    let written = node.append_many(5).await?;
    let at = tail_of(&written[2]);
    node.install(at, &["one", "", "three"], Slot(1)).await?;
    let wanted = Some((at, bytes(&["one", "", "three"])));
    same("snapshot", &read_snapshot(&mut node).await?, &wanted)?;

    let (_older, mut node) = take_over(fixture, place.as_ref(), node, 2).await?;
    same("snapshot after a take-over", &read_snapshot(&mut node).await?, &wanted)?;
    same("slots kept", &read_all(node.opened.reader.as_mut(), Slot(1)).await?, &written)
}

pub(super) async fn chunk_limit(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    node.append_many(3).await?;
    let most = node.opened.writer.limits().chunk_bytes;
    let large = "x".repeat(most);
    let at = node.tail;
    node.install(at, &[&large, &large], Slot(1)).await?;
    let lens: Vec<usize> =
        read_snapshot(&mut node).await?.into_iter().flat_map(|(_, chunks)| chunks).map(|c| c.len()).collect();
    same("chunks at the limit", &lens, &vec![most, most])?;

    node.opened.snapshots.begin(at).await?;
    let over = node.opened.snapshots.chunk(Bytes::from(vec![b'x'; most + 1])).await;
    ensure(over.is_err(), || "a chunk one byte over the limit is taken".to_owned())
}

pub(super) async fn unfinished(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    node.append_many(3).await?;
    node.opened.snapshots.begin(node.tail).await?;
    node.opened.snapshots.chunk(Bytes::from_static(b"left behind")).await?;
    same("snapshot before the switch", &read_snapshot(&mut node).await?, &None)?;
    let at = node.tail;
    node.install(at, &["whole"], Slot(1)).await?;
    let wanted = Some((at, bytes(&["whole"])));
    same("a new beginning drops the unfinished one", &read_snapshot(&mut node).await?, &wanted)?;

    node.opened.snapshots.begin(node.tail).await?;
    node.opened.snapshots.chunk(Bytes::from_static(b"left behind again")).await?;
    let (_older, mut node) = take_over(fixture, place.as_ref(), node, 2).await?;
    same("snapshot after a take-over", &read_snapshot(&mut node).await?, &wanted)
}

pub(super) async fn replaced(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(4).await?;
    node.install(tail_of(&written[1]), &["old 0", "old 1"], Slot(1)).await?;
    let mut reader = place.journal().reader().await?;
    let old = reader.snapshot().await?.ok_or_else(|| Seen("no snapshot".to_owned()))?;
    same("first chunk", &reader.chunk(&old, 0).await?, &Bytes::from_static(b"old 0"))?;
    node.install(tail_of(&written[3]), &["new 0", "new 1"], Slot(1)).await?;
    match reader.chunk(&old, 1).await {
        Ok(chunk) => same("second chunk", &chunk, &Bytes::from_static(b"old 1"))?,
        Err(error) => same("second chunk", &error, &ReadError::Replaced)?,
    }
    let new = reader.snapshot().await?.ok_or_else(|| Seen("no snapshot".to_owned()))?;
    same("where the new one is", &new.at, &tail_of(&written[3]))?;
    same("chunk of the new one", &reader.chunk(&new, 1).await?, &Bytes::from_static(b"new 1"))
}

pub(super) async fn neither_back_nor_ahead(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(5).await?;
    let at = tail_of(&written[3]);
    node.install(at, &["current"], Slot(5)).await?;
    let ahead = Tail { slot: Slot(6), hash: at.hash };
    for (what, wrong) in [("older", tail_of(&written[1])), ("past the tail", ahead)] {
        let outcome = node.snapshot(wrong, &["wrong"], Slot(1)).await;
        ensure(!matches!(outcome, Ok(Outcome::Committed)), || format!("a snapshot {what} was installed"))?;
        let now = read_snapshot(&mut node).await?;
        same("snapshot", &now, &Some((at, bytes(&["current"]))))?;
    }
    Ok(())
}

pub(super) async fn older_writer(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut first = Node::open(place.journal(), 1).await?;
    let written = first.append_many(4).await?;
    first.install(tail_of(&written[0]), &["kept"], Slot(1)).await?;
    first.opened.snapshots.begin(first.tail).await?;
    first.opened.snapshots.chunk(Bytes::from_static(b"stale")).await?;
    let (older, mut newer) = take_over(fixture, place.as_ref(), first, 2).await?;
    if let Some(mut older) = older {
        same("install by the older", &older.opened.snapshots.install(Slot(5)).await, &Outcome::Fenced)?;
        let again = older.snapshot(older.tail, &["stale"], Slot(5)).await;
        ensure(!matches!(again, Ok(Outcome::Committed)), || "the older installed a snapshot".to_owned())?;
    }
    let wanted = Some((tail_of(&written[0]), bytes(&["kept"])));
    same("snapshot", &read_snapshot(&mut newer).await?, &wanted)?;
    same("slots", &read_all(newer.opened.reader.as_mut(), Slot(1)).await?, &written)
}

pub(super) async fn compacted(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(10).await?;
    node.install(tail_of(&written[7]), &["state"], Slot(5)).await?;
    for number in [2, 3] {
        for from in [1, 4] {
            let gone = node.opened.reader.slots(Slot(from)).await?;
            same("below the mark", &gone, &Slots::Compacted { oldest: Slot(5) })?;
        }
        let kept = read_all(node.opened.reader.as_mut(), Slot(5)).await?;
        same("from the mark on", &kept, &written[4..].to_vec())?;
        node = take_over(fixture, place.as_ref(), node, number).await?.1;
    }
    Ok(())
}

pub(super) async fn never_past_snapshot(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(10).await?;
    node.install(tail_of(&written[5]), &["state"], Slot(1_000)).await?;
    let kept = read_all(node.opened.reader.as_mut(), Slot(7)).await?;
    same("slots after the snapshot", &kept, &written[6..].to_vec())?;
    let (_older, mut node) = take_over(fixture, place.as_ref(), node, 2).await?;
    same("tail", &node.tail, &tail_of(&written[9]))?;
    let kept = read_all(node.opened.reader.as_mut(), Slot(7)).await?;
    same("slots after a take-over", &kept, &written[6..].to_vec())
}

pub(super) async fn never_created_again(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(6).await?;
    node.install(tail_of(&written[5]), &["state"], Slot(5)).await?;
    for number in [2, 3] {
        let forged = batch_after(tail_of(&written[2]), "forged");
        let mut again = written[3].batch().clone();
        again.body = Bytes::from_static(b"again");
        for batch in [forged, again, batch_after(Tail::default(), "first")] {
            let outcome = node.try_append(&batch).await;
            ensure(matches!(outcome, Outcome::Conflict(_)), || {
                format!("slot {} was compacted away, appending to it: {outcome:?}", batch.slot)
            })?;
        }
        let gone = node.opened.reader.slots(Slot(4)).await?;
        same("below the mark", &gone, &Slots::Compacted { oldest: Slot(5) })?;
        let kept = read_all(node.opened.reader.as_mut(), Slot(5)).await?;
        same("from the mark on", &kept, &written[4..].to_vec())?;
        node = take_over(fixture, place.as_ref(), node, number).await?.1;
    }
    Ok(())
}

pub(super) async fn all_truncated(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    node.append_many(7).await?;
    let tail = node.tail;
    node.install(tail, &["everything"], Slot(8)).await?;
    let gone = node.opened.reader.slots(Slot(7)).await?;
    same("the last slot", &gone, &Slots::Compacted { oldest: Slot(8) })?;
    let (_older, mut node) = take_over(fixture, place.as_ref(), node, 2).await?;
    same("tail", &node.tail, &tail)?;
    let next = node.append("after").await?;
    same("slot after", &next.slot, &Slot(8))?;
    let (_older, mut node) = take_over(fixture, place.as_ref(), node, 3).await?;
    same("read back", &read_all(node.opened.reader.as_mut(), Slot(8)).await?, &vec![next])
}
