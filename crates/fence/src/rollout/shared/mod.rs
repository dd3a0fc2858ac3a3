//! One roll-out for many processes.
//!
//! Stages, overrides, counters and drills of all prefixes lie in one document, in a store that every process reaches:
//! the database of the fence itself, or a shared file. [`SharedRollout::keep`] brings a process's
//! [`Rollout`] in line with it twice a second, and adds what the process has counted. So a stage is
//! switched once, for all, within a second, and [`SharedRollout::report`] speaks for all.
//!
//! When the store is out of reach, processes stay at the stages they know.

mod document;
mod stores;

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use document::{Change, Drill};
use document::{Document, InForce};
use leasehold_types::WallTime;
use leasehold_types::ids::random;
pub use stores::{Documents, Failure, Version};

use super::{Counters, Override, Rollout, Stage, Status};
use crate::cas::{CasError, CompareAndSet};

/// The name of the document in its store.
const KEY: &str = "leasehold-rollout";
/// Twice a second: a switch is everywhere within a second.
const LOOK: Duration = Duration::from_millis(500);
/// Attempts to get a change in among other processes.
const ATTEMPTS: usize = 100;

/// What can go wrong.
pub type Error<E> = CasError<E>;

/// The state of one prefix over all processes.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Stage, counters and override.
    pub status: Status,
    /// The last drill on this prefix.
    pub last_drill: Option<Drill>,
}

impl Report {
    /// Whether nothing has been seen that the next stage would stop, and the last drill, if there was one, passed.
    pub fn next_stage_is_safe(&self) -> bool {
        self.status.next_stage_is_safe() && self.last_drill.is_none_or(|drill| drill.passed)
    }
}

/// Stages, overrides and counters in a store.
#[derive(Debug)]
pub struct SharedRollout<S> {
    store: S,
    known: Mutex<BTreeMap<String, Known>>,
}

/// What this process has taken over and handed in, for one prefix.
#[derive(Debug, Clone, Copy, Default)]
struct Known {
    switched: u64,
    counted: Counters,
}

impl<S: CompareAndSet<Error: From<&'static str>>> SharedRollout<S> {
    /// Over this store.
    pub fn new(store: S) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Every prefix that was declared or seen, in order.
    ///
    /// # Errors
    /// The store's.
    pub async fn report(&self, now: WallTime) -> Result<Vec<Report>, Error<S::Error>> {
        let (document, _) = self.read().await?;
        let one = |(prefix, seen): (&String, &document::Prefix)| Report {
            status: Status {
                prefix: prefix.clone(),
                stage: seen.stage(),
                counters: seen.counters.counters(),
                in_force: seen.in_force(now),
            },
            last_drill: seen.drill,
        };
        Ok(document.prefixes.iter().map(one).collect())
    }

    /// The newest changes, oldest first.
    ///
    /// # Errors
    /// The store's.
    pub async fn changes(&self) -> Result<Vec<Change>, Error<S::Error>> {
        Ok(self.read().await?.0.changes)
    }

    /// Switches a prefix to a stage, everywhere. Its counters start anew.
    ///
    /// # Errors
    /// The store's.
    pub async fn switch(
        &self,
        prefix: &str,
        stage: Stage,
        actor: &str,
        now: WallTime,
    ) -> Result<(), Error<S::Error>> {
        self.change(|document| {
            let entry = document.prefix(prefix, stage);
            let detail = format!("{} -> {stage}", entry.stage);
            entry.stage = stage.to_string();
            entry.switched += 1;
            entry.counters = document::Counts::default();
            document.note(now, "stage", prefix, actor, detail);
        })
        .await
    }

    /// Lets everything under a prefix through until the override ends, everywhere. A prefix that was not declared
    /// stays at `stage`.
    ///
    /// # Errors
    /// The store's.
    pub async fn set_override(
        &self,
        prefix: &str,
        stage: Stage,
        made: &Override,
        now: WallTime,
    ) -> Result<(), Error<S::Error>> {
        let (actor, reason, ends_at_ms) =
            (made.actor().to_owned(), made.reason().to_owned(), made.ends_at().0);
        self.change(|document| {
            let entry = document.prefix(prefix, stage);
            entry.in_force = Some(InForce { actor: actor.clone(), reason: reason.clone(), ends_at_ms });
            document.note(now, "override", prefix, &actor, reason.clone());
        })
        .await
    }

    /// Ends an override before its time, everywhere.
    ///
    /// # Errors
    /// The store's.
    pub async fn end_override(
        &self,
        prefix: &str,
        actor: &str,
        now: WallTime,
    ) -> Result<(), Error<S::Error>> {
        self.change(|document| {
            let ended = document.prefixes.get_mut(prefix).and_then(|entry| entry.in_force.take());
            if let Some(ended) = ended {
                document.note(now, "override_end", prefix, actor, ended.reason);
            }
        })
        .await
    }

    /// Notes a drill. A prefix that was not declared stays at `stage`.
    ///
    /// # Errors
    /// The store's.
    pub async fn note_drill(
        &self,
        prefix: &str,
        stage: Stage,
        passed: bool,
        actor: &str,
        now: WallTime,
    ) -> Result<(), Error<S::Error>> {
        self.change(|document| {
            document.prefix(prefix, stage).drill = Some(Drill { passed, at_ms: now.0 });
            let detail = if passed { "passed" } else { "failed" };
            document.note(now, "drill", prefix, actor, detail.to_owned());
        })
        .await
    }

    /// Brings the process's roll-out in line with the document, and hands in what it has counted since. Call it
    /// from one task of the process at a time, as [`SharedRollout::keep`] does.
    ///
    /// # Errors
    /// The store's: the roll-out stays as it is.
    pub async fn sync(&self, rollout: &Rollout, now: WallTime) -> Result<(), Error<S::Error>> {
        let (document, _) = self.read().await?;
        let fresh = self.fresh(&document, rollout);
        if !fresh.is_empty() {
            self.change(|document| {
                for (prefix, (status, more, switched)) in &fresh {
                    let entry = document.prefix(prefix, status.stage);
                    if entry.switched == 0 {
                        // Nobody has switched it: it is where the processes began.
                        entry.stage = status.stage.to_string();
                    }
                    // What was counted under the stage before is of no use to anybody now.
                    if entry.switched == *switched {
                        entry.counters.add(*more);
                    }
                }
            })
            .await?;
            self.handed_in(fresh);
        }
        self.apply(&document, rollout, now);
        Ok(())
    }

    /// Syncs twice a second, for ever. Errors are left to `failed`; it goes on after them.
    pub async fn keep(&self, rollout: &Rollout, now: fn() -> WallTime, failed: impl Fn(&Error<S::Error>)) {
        let mut looks = tokio::time::interval(LOOK);
        looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            looks.tick().await;
            if let Err(error) = self.sync(rollout, now()).await {
                failed(&error);
            }
        }
    }

    /// What has been counted since it was last handed in, with the number of switches it was counted under.
    fn fresh(&self, document: &Document, rollout: &Rollout) -> BTreeMap<String, (Status, Counters, u64)> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let statuses = rollout.status().into_iter().filter_map(|status| {
            let before = known.get(&status.prefix).copied().unwrap_or_default();
            let more = status.counters.since(before.counted);
            let new = more != Counters::default() || !document.prefixes.contains_key(&status.prefix);
            new.then(|| (status.prefix.clone(), (status, more, before.switched)))
        });
        statuses.collect()
    }

    fn handed_in(&self, fresh: BTreeMap<String, (Status, Counters, u64)>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (prefix, (status, _, _)) in fresh {
            known.entry(prefix).or_default().counted = status.counters;
        }
    }

    /// Takes over what was changed.
    fn apply(&self, document: &Document, rollout: &Rollout, now: WallTime) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let here: BTreeMap<_, _> =
            rollout.status().into_iter().map(|status| (status.prefix.clone(), status)).collect();
        for (prefix, wanted) in &document.prefixes {
            let entry = known.entry(prefix.clone()).or_default();
            if entry.switched != wanted.switched {
                rollout.switch(prefix, wanted.stage());
                *entry = Known { switched: wanted.switched, counted: Counters::default() };
            }
            let (wanted, found) =
                (wanted.in_force(now), here.get(prefix).and_then(|here| here.in_force.as_ref()));
            match wanted {
                Some(wanted) if found != Some(&wanted) => rollout.set_override(prefix, wanted),
                None if found.is_some() => rollout.end_override(prefix),
                _ => {}
            }
        }
    }

    async fn read(&self) -> Result<(Document, Option<S::Version>), Error<S::Error>> {
        let Some((bytes, version)) = self.store.read(KEY).await.map_err(CasError::Store)? else {
            return Ok((Document::default(), None));
        };
        let document = Document::decode(&bytes);
        let document =
            document.map_err(|_| CasError::Store("the document of the roll-out is damaged".into()))?;
        Ok((document, Some(version)))
    }

    async fn change(&self, change: impl Fn(&mut Document)) -> Result<(), Error<S::Error>> {
        for _ in 0..ATTEMPTS {
            let (mut document, version) = self.read().await?;
            change(&mut document);
            let bytes = document.encode(random());
            match self.store.put_if(KEY, &bytes, version.as_ref()).await {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                // The document says whether it is there: it has the number of this put.
                Err(error) => match self.read().await {
                    Ok((found, _)) if found.put == document.put => return Ok(()),
                    _ => return Err(CasError::Unknown(error)),
                },
            }
        }
        Err(CasError::Contended)
    }
}
