//! `top`: a live view of locks, waiters, hold times, rates and hot prefixes.

mod counters;
mod frame;
mod screen;

use std::time::Duration;

use leasehold_api::{LockRecord, LocksPage, StatusAnswer};
use serde::Serialize;
use tokio::time::Instant;

use crate::client::{Call, Client, with_query};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use counters::{Counters, PrefixRates};
use screen::{Key, Screen};

/// So many locks are looked at in each round; the view says when there are more.
const MOST_LOCKS: usize = 2_000;
/// What `--once` shows: as much as a person reads in a log.
const LINES_ONCE: usize = 40;
const COLUMNS_ONCE: usize = 120;

/// One look at the server.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct View {
    status: StatusAnswer,
    /// For each second since the look before.
    rates: Vec<PrefixRates>,
    /// The most waited for first, then the longest held.
    locks: Vec<LockRecord>,
    /// Whether there are more locks than were looked at.
    more: bool,
}

/// Shows it: once, or until `q` or Ctrl-C.
pub(crate) async fn top(
    client: &Client,
    out: &mut Out,
    prefix: Option<String>,
    every: Duration,
    once: bool,
) -> Result<Exit, Failure> {
    let mut looks = Looks { client, prefix, last: None };
    if once || out.format() == Format::Json {
        looks.look().await?;
        tokio::time::sleep(every).await;
        let view = looks.look().await?;
        match out.format() {
            Format::Json => out.json(&view)?,
            Format::Table => {
                for line in frame::lines(&view, COLUMNS_ONCE, LINES_ONCE) {
                    out.line(&line)?;
                }
            }
        }
        return Ok(Exit::Done);
    }
    live(&mut looks, every).await
}

async fn live(looks: &mut Looks<'_>, every: Duration) -> Result<Exit, Failure> {
    // The first look comes before the screen is taken, so that its failure is told as that of any command.
    let mut view = looks.look().await?;
    let mut screen = Screen::open()?;
    let mut trouble = None;
    loop {
        screen.show(|columns, lines| frame::live(&view, trouble.as_ref(), columns, lines))?;
        match screen.key(every).await {
            Some(Key::Quit) => return Ok(Exit::Done),
            Some(Key::Other) => {}
            None => match looks.look().await {
                Ok(next) => (view, trouble) = (next, None),
                // The last view stays, marked as old; the server may come back.
                Err(failure) => trouble = Some(failure),
            },
        }
    }
}

/// Looks again and again, remembering the counters of the last time.
struct Looks<'a> {
    client: &'a Client,
    prefix: Option<String>,
    last: Option<(Instant, Counters)>,
}

impl Looks<'_> {
    async fn look(&mut self) -> Result<View, Failure> {
        let status = self.client.call(&Call::get("/v1/status")).await?.read()?;
        let counters = Counters::read(&self.client.text(&Call::get("/metrics")).await?);
        let (mut locks, more) = self.locks().await?;
        locks.sort_by_key(|lock| std::cmp::Reverse((lock.waiters, lock.held_ms)));
        let now = Instant::now();
        let rates = match &self.last {
            Some((then, before)) => counters.since(before, now - *then),
            None => Vec::new(),
        };
        self.last = Some((now, counters));
        let wanted = |rates: &PrefixRates| self.prefix.as_ref().is_none_or(|p| rates.may_hold(p));
        Ok(View { status, rates: rates.into_iter().filter(wanted).collect(), locks, more })
    }

    async fn locks(&self) -> Result<(Vec<LockRecord>, bool), Failure> {
        let (mut locks, mut cursor) = (Vec::new(), None);
        loop {
            let path = with_query("/v1/locks", &[("prefix", self.prefix.clone()), ("cursor", cursor)]);
            let page: LocksPage = self.client.call(&Call::get(path)).await?.read()?;
            locks.extend(page.locks);
            cursor = page.next_cursor;
            if cursor.is_none() || locks.len() >= MOST_LOCKS {
                return Ok((locks, cursor.is_some()));
            }
        }
    }
}
