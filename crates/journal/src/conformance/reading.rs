//! J14: committed slots, in order, from anywhere.

use leasehold_types::Slot;

use super::Fixture;
use super::kit::{Node, Seen, read_all, same};
use crate::Slots;

pub(super) async fn from_anywhere(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    let written = node.append_many(20).await?;
    for from in [20, 1, 11, 2, 19, 7] {
        let read = read_all(node.opened.reader.as_mut(), Slot(from)).await?;
        let index = usize::try_from(from - 1).expect("small");
        same("read from the middle", &read, &written[index..].to_vec())?;
    }
    for from in [21, 22, 1_000_000] {
        let past = node.opened.reader.slots(Slot(from)).await?;
        same("read past the tail", &past, &Slots::Found(Vec::new()))?;
    }
    Ok(())
}

pub(super) async fn follows(fixture: &dyn Fixture) -> Result<(), Seen> {
    let place = fixture.place().await;
    let mut node = Node::open(place.journal(), 1).await?;
    node.append_many(3).await?;
    let mut reader = place.journal().reader().await?;
    same("slots so far", &read_all(reader.as_mut(), Slot(1)).await?.len(), &3)?;
    for _ in 0..5 {
        let committed = node.append("seen at once").await?;
        let read = read_all(reader.as_mut(), committed.slot).await?;
        same("what the reader sees", &read, &vec![committed])?;
        same("tail it sees", &reader.head().await?.tail, &node.tail)?;
    }
    Ok(())
}
