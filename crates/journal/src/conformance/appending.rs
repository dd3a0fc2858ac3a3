//! J1–J3, J9, J10: what may be appended, and what is kept of it.

use bytes::Bytes;
use leasehold_types::Epoch;

use super::Fixture;
use super::kit::{Node, Seen, batch_after, ensure, read_all, same};
use crate::{BatchId, Chained, Hash, Outcome, Tail, chain};

pub(super) async fn in_order(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    same("tail of an empty journal", &node.tail, &Tail::default())?;
    let written = node.append_many(100).await?;
    let read = read_all(node.opened.reader.as_mut(), Tail::default().slot.next()).await?;
    same("read back", &read, &written)
}

pub(super) async fn gap_refused(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(3).await?;
    let mut ahead = node.next_batch("ahead");
    ahead.slot = ahead.slot.next();
    same("slot tail + 2", &node.try_append(&ahead).await, &Outcome::Conflict(None))?;
    let read = read_all(node.opened.reader.as_mut(), written[0].slot).await?;
    same("read back", &read, &written)?;
    node.append("after the refusal").await.map(drop)
}

pub(super) async fn stray_refused(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(2).await?;
    let mut stray = node.next_batch("stray");
    stray.prev_hash = Hash([7; 32]);
    same("wrong hash before", &node.try_append(&stray).await, &Outcome::Conflict(None))?;
    let read = read_all(node.opened.reader.as_mut(), written[0].slot).await?;
    same("read back", &read, &written)?;
    node.append("after the refusal").await.map(drop)
}

pub(super) async fn foreign_refused(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(2).await?;
    let (epoch, next) = (node.opened.epoch, node.next_batch("foreign"));
    for other in [Epoch(epoch.0 - 1), epoch.next()] {
        let foreign = Chained::new(next.clone(), other);
        let outcome = node.opened.writer.append(&foreign).await;
        same(&format!("epoch {other} instead of {epoch}"), &outcome, &Outcome::Conflict(None))?;
    }
    let read = read_all(node.opened.reader.as_mut(), written[0].slot).await?;
    same("read back", &read, &written)?;
    node.append("after the refusal").await.map(drop)
}

pub(super) async fn other_bytes_conflict(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    node.append("before").await?;
    let before = node.tail;
    let kept = node.append("kept").await?;
    let conflict = Outcome::Conflict(Some(kept.id));

    let other = batch_after(before, "other");
    same("another batch", &node.try_append(&other).await, &conflict)?;
    let mut forged = kept.batch().clone();
    forged.body = Bytes::from_static(b"kept, with other bytes");
    same("the same id, other bytes", &node.try_append(&forged).await, &conflict)?;
    let mut renamed = kept.batch().clone();
    renamed.id = BatchId(renamed.id.0 ^ 1);
    same("the same bytes, other id", &node.try_append(&renamed).await, &conflict)?;

    let read = read_all(node.opened.reader.as_mut(), kept.slot).await?;
    same("read back", &read, &vec![kept])
}

pub(super) async fn same_bytes_again(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let mut written = node.append_many(2).await?;
    for _ in 0..3 {
        let again = written[1].batch().clone();
        same("the same batch again", &node.try_append(&again).await, &Outcome::Committed)?;
    }
    written.push(node.append("after").await?);
    let read = read_all(node.opened.reader.as_mut(), written[0].slot).await?;
    same("read back", &read, &written)
}

pub(super) async fn hash_chain(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    for number in 1..=3 {
        Node::open(place.journal(), number).await?.append_many(4).await?;
    }
    let mut node = Node::open(place.journal(), 4).await?;
    let mut tail = Tail::default();
    for committed in read_all(node.opened.reader.as_mut(), tail.slot.next()).await? {
        same("hash before", &committed.prev_hash, &tail.hash)?;
        same("hash", &committed.hash(), &chain(committed.batch(), committed.epoch()))?;
        tail = committed.tail();
    }
    same("number of slots", &tail.slot.0, &12)?;
    same("tail at opening", &node.tail, &tail)
}

pub(super) async fn limits(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let most = node.opened.writer.limits().body_bytes;
    ensure(most >= 1024, || format!("a limit of {most} bytes is useless"))?;
    let mut written = Vec::new();
    for len in [0, 1, most - 1, most] {
        written.push(node.append(vec![0xA5; len]).await?);
    }
    let over = node.next_batch(vec![0xA5; most + 1]);
    same("one byte over", &node.try_append(&over).await, &Outcome::Conflict(None))?;
    written.push(node.append("after").await?);
    let read = read_all(node.opened.reader.as_mut(), written[0].slot).await?;
    ensure(read == written, || "bodies at the limit are not read back as written".to_owned())
}
