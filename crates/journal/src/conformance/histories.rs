//! Random histories, step by step beside a model so simple that it is plainly right.

use bytes::Bytes;
use leasehold_types::Slot;

use super::kit::{Node, Random, Seen, batch_after, read_all, same, take_over};
use super::{Fixture, Place};
use crate::{Chained, Outcome, Slots, Tail};

const STEPS: u64 = 80;

/// What a journal must hold.
#[derive(Default)]
struct Model {
    /// All slots ever committed.
    slots: Vec<Chained>,
    /// The oldest that must be readable.
    keep_from: u64,
    snapshot: Option<(Tail, Bytes)>,
}

impl Model {
    fn tail_at(&self, slot: u64) -> Tail {
        let index = usize::try_from(slot).expect("small");
        self.slots[..index].last().map_or(Tail::default(), |c| c.tail())
    }

    fn len(&self) -> u64 {
        self.slots.len() as u64
    }
}

pub(super) async fn random(fixture: &dyn Fixture) -> Result<(), Seen> {
    for seed in 0..fixture.histories() {
        let place = fixture.place().await;
        history(fixture, place.as_ref(), seed).await.map_err(|Seen(seen)| {
            Seen(format!("history {seed} (repeat: it depends on this number alone): {seen}"))
        })?;
    }
    Ok(())
}

async fn history(fixture: &dyn Fixture, place: &dyn Place, seed: u64) -> Result<(), Seen> {
    let mut random = Random::new(seed);
    let mut model = Model { keep_from: 1, ..Model::default() };
    let mut node = Node::open(place.journal(), 0).await?;
    for number in 0..STEPS {
        match random.below(12) {
            0..=4 => append(&mut node, &mut model, &mut random).await?,
            5 => append_wrongly(&mut node, &model, &mut random).await?,
            6 => retry(&mut node, &model).await?,
            7 => snapshot(&mut node, &mut model, &mut random).await?,
            8 | 9 => read(&mut node, &model, &mut random).await?,
            _ => {
                node = take_over(fixture, place, node, u8::try_from(number % 100).expect("small")).await?.1;
                same("tail at a take-over", &node.tail, &model.tail_at(model.len()))?;
            }
        }
    }
    let kept = usize::try_from(model.keep_from - 1).expect("small");
    let read = read_all(node.opened.reader.as_mut(), Slot(model.keep_from)).await?;
    same("everything at the end", &read, &model.slots[kept..].to_vec())
}

async fn append(node: &mut Node, model: &mut Model, random: &mut Random) -> Result<(), Seen> {
    let most = node.opened.writer.limits().body_bytes.min(3_000) as u64;
    let len = usize::try_from(random.below(most)).expect("small");
    let body = random.bytes(len);
    model.slots.push(node.append(body).await?);
    Ok(())
}

/// Appends to some slot that is not the next one, with bytes that are not there.
async fn append_wrongly(node: &mut Node, model: &Model, random: &mut Random) -> Result<(), Seen> {
    let after = random.below(model.len() + 1);
    let mut batch = batch_after(model.tail_at(after), random.bytes(9));
    if after == model.len() {
        batch.slot = batch.slot.next();
    }
    match node.try_append(&batch).await {
        Outcome::Conflict(_) => Ok(()),
        other => Err(Seen(format!("slot {} with a tail of {}: {other:?}", batch.slot, model.len()))),
    }
}

async fn retry(node: &mut Node, model: &Model) -> Result<(), Seen> {
    let Some(last) = model.slots.last() else { return Ok(()) };
    if last.slot.0 < model.keep_from {
        return Ok(());
    }
    same("the last batch again", &node.try_append(last.batch()).await, &Outcome::Committed)
}

async fn snapshot(node: &mut Node, model: &mut Model, random: &mut Random) -> Result<(), Seen> {
    let current = model.snapshot.as_ref().map_or(0, |(at, _)| at.slot.0);
    let at = current + random.below(model.len() - current + 1);
    let keep_from = model.keep_from + random.below(at + 2);
    let text = format!("state after {at}");
    node.install(model.tail_at(at), &[&text], Slot(keep_from)).await?;
    model.keep_from = model.keep_from.max(keep_from.min(at + 1));
    model.snapshot = Some((model.tail_at(at), Bytes::from(text)));
    Ok(())
}

async fn read(node: &mut Node, model: &Model, random: &mut Random) -> Result<(), Seen> {
    let from = 1 + random.below(model.len() + 2);
    if from < model.keep_from {
        let oldest = Slot(model.keep_from);
        let seen = node.opened.reader.slots(Slot(from)).await?;
        return same("compacted slots", &seen, &Slots::Compacted { oldest });
    }
    let index = usize::try_from(from - 1).expect("small").min(model.slots.len());
    let read = read_all(node.opened.reader.as_mut(), Slot(from)).await?;
    same("slots", &read, &model.slots[index..].to_vec())?;
    let seen = match node.opened.reader.snapshot().await? {
        Some(info) => Some((info.at, node.opened.reader.chunk(&info, 0).await?)),
        None => None,
    };
    same("snapshot", &seen, &model.snapshot)
}
