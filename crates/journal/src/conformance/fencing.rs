//! J4–J7, J15: claims, and what becomes of those before.

use leasehold_types::{ClusterId, Epoch};

use super::kit::{Node, Seen, claim, ensure, read_all, same, take_over};
use super::{Fixture, Openers};
use crate::{Confirmation, OpenError, Outcome, Slots};

pub(super) async fn founding(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let first = Node::open(place.journal(), 1).await?;
    let founded = ClusterId::from_bytes([101; 16]);
    same("cluster of the founder", &first.opened.cluster, &founded)?;
    let (_first, mut second) = take_over(fixture, place.as_ref(), first, 2).await?;
    same("cluster at the second claim", &second.opened.cluster, &founded)?;
    same("cluster of the head", &second.opened.reader.head().await?.cluster, &founded)
}

pub(super) async fn epochs_grow(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    ensure(node.opened.epoch >= Epoch(1), || "the first epoch is 0".to_owned())?;
    for number in 2..6 {
        let before = node.opened.epoch;
        node = take_over(fixture, place.as_ref(), node, number).await?.1;
        ensure(node.opened.epoch > before, || format!("epoch {} after {before}", node.opened.epoch))?;
    }
    drop(node);
    let floor = Epoch(1 << 40);
    let raised = place.journal().open(crate::Claim { epoch_floor: floor, ..claim(9) }).await?.epoch;
    ensure(raised > floor, || format!("epoch {raised} although the floor is {floor}"))?;
    let next = place.journal().open(claim(10)).await?.epoch;
    ensure(next > raised, || format!("epoch {next} after {raised}"))
}

pub(super) async fn older_writer(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut older = Node::open(place.journal(), 1).await?;
    let mut written = older.append_many(2).await?;
    if fixture.openers() == Openers::One {
        let second = place.journal().open(claim(2)).await;
        ensure(matches!(second, Err(OpenError::InUse(_))), || format!("a second claim: {second:?}"))?;
        return older.append("the first goes on").await.map(drop);
    }
    let mut newer = Node::open(place.journal(), 2).await?;
    let stale = older.next_batch("from the older");
    same("before the newer appends", &older.try_append(&stale).await, &Outcome::Fenced)?;
    written.push(newer.append("from the newer").await?);
    same("after the newer appended", &older.try_append(&stale).await, &Outcome::Fenced)?;
    let mut next = newer.next_batch("from the older, in the right place");
    next.id.0 ^= 1;
    same("at the newest slot", &older.try_append(&next).await, &Outcome::Fenced)?;
    written.push(newer.append("again from the newer").await?);
    let read = read_all(newer.opened.reader.as_mut(), written[0].slot).await?;
    same("read back", &read, &written)
}

pub(super) async fn lost_duel(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let first = Node::open(place.journal(), 1).await?;
    let seen = first.opened.epoch;
    let (_first, second) = take_over(fixture, place.as_ref(), first, 2).await?;
    let current = second.opened.epoch;
    let mut holder = Some(second);
    if fixture.openers() == Openers::One {
        holder = None;
    }
    let late = place.journal().open(crate::Claim { expected_epoch: Some(seen), ..claim(3) }).await;
    ensure(matches!(late, Err(OpenError::LostDuel(epoch)) if epoch == current), || {
        format!("a claim that expects epoch {seen} while it is {current}: {late:?}")
    })?;
    if let Some(mut winner) = holder {
        winner.append("the winner goes on").await?;
    }
    let right = place.journal().open(crate::Claim { expected_epoch: Some(current), ..claim(4) }).await?;
    ensure(right.epoch > current, || format!("epoch {} after {current}", right.epoch))
}

pub(super) async fn tail_after_take_over(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    for number in 2..6 {
        node.append_many(u64::from(number)).await?;
        let tail = node.tail;
        node = take_over(fixture, place.as_ref(), node, number).await?.1;
        same("tail", &node.tail, &tail)?;
        same("tail of the head", &node.opened.reader.head().await?.tail, &tail)?;
    }
    Ok(())
}

pub(super) async fn durability(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let first = Node::open(place.journal(), 1).await?;
    let said = first.opened.durability;
    let (_first, second) = take_over(fixture, place.as_ref(), first, 2).await?;
    same("durability", &second.opened.durability, &said)
}

pub(super) async fn confirmation(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut first = Node::open(place.journal(), 1).await?;
    same("the only claim", &first.opened.writer.confirm().await, &Confirmation::Current)?;
    let (older, mut newer) = take_over(fixture, place.as_ref(), first, 2).await?;
    if let Some(mut older) = older {
        same("the older claim", &older.opened.writer.confirm().await, &Confirmation::Fenced)?;
    }
    same("the newer claim", &newer.opened.writer.confirm().await, &Confirmation::Current)
}

pub(super) async fn beats(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut first = Node::open(place.journal(), 1).await?;
    let before = first.opened.reader.head().await?;
    same("beat", &first.opened.writer.beat().await, &Outcome::Committed)?;
    let after = first.opened.reader.head().await?;
    ensure(after.beat != before.beat, || "a beat does not show in the head".to_owned())?;
    same("tail after a beat", &after.tail, &before.tail)?;

    let (older, mut newer) = take_over(fixture, place.as_ref(), first, 2).await?;
    let taken = newer.opened.reader.head().await?;
    ensure(taken.epoch > after.epoch && taken.nonce != after.nonce, || {
        format!("head {taken:?} after a claim")
    })?;
    if let Some(mut older) = older {
        same("beat of the older", &older.opened.writer.beat().await, &Outcome::Fenced)?;
        same("head after it", &newer.opened.reader.head().await?, &taken)?;
    }
    let slots = newer.opened.reader.slots(taken.tail.slot.next()).await?;
    same("slots after beats", &slots, &Slots::Found(Vec::new()))
}
