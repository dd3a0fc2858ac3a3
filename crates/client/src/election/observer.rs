//! Following an election: who leads, and in which term.

use std::time::Duration;

use leasehold_proto::v1 as pb;
use leasehold_types::FencingToken;
use tokio::time::timeout;
use tonic::Streaming;

use super::Leader;
use crate::calls::CallError;
use crate::client::Client;
use crate::clock;
use crate::connections::Locks;
use crate::retry::Backoff;

/// A server gives a sign of life every fifteen seconds; after twice that it is taken for gone.
const SILENCE: Duration = Duration::from_secs(30);

/// What an observer learns.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum LeaderChange {
    /// Somebody leads, or proclaims something else.
    Leads(Leader),
    /// Nobody leads.
    Vacant {
        /// The term of the last leader, where known.
        last_term: Option<FencingToken>,
    },
    /// The service cannot be reached: whoever led may lead or not. Told once; what is true then is told when it can be
    /// reached again.
    OutOfReach {
        /// For people.
        why: String,
    },
}

/// Follows one election until it is dropped. Terms never go back.
#[derive(Debug)]
pub struct Observer {
    client: Client,
    name: String,
    stream: Option<Streaming<pb::LeaderChange>>,
    told: Option<LeaderChange>,
    newest: Option<FencingToken>,
    backoff: Backoff,
}

impl Observer {
    pub(super) fn new(client: Client, name: String) -> Self {
        Self { client, name, stream: None, told: None, newest: None, backoff: Backoff::default() }
    }

    /// The next change; the first is the present state. A broken stream is opened again, at any of the endpoints.
    /// Cancel-safe.
    pub async fn next(&mut self) -> LeaderChange {
        loop {
            let change = match self.heard().await {
                Ok(change) => change,
                Err(why) => {
                    self.stream = None;
                    let pause = self.backoff.pause(clock::random());
                    // The first retry is immediate: an ordinary restart or change of node is not worth telling.
                    if pause.is_zero() {
                        continue;
                    }
                    tokio::time::sleep(pause).await;
                    Some(LeaderChange::OutOfReach { why })
                }
            };
            if let Some(change) = change.filter(|change| self.is_new(change)) {
                self.told = Some(change.clone());
                return change;
            }
        }
    }

    /// What the service says next; `None` is a sign of life.
    async fn heard(&mut self) -> Result<Option<LeaderChange>, String> {
        if self.stream.is_none() {
            self.stream = Some(self.begin().await?);
        }
        let stream = self.stream.as_mut().expect("just begun");
        let change = match timeout(SILENCE, stream.message()).await {
            Ok(Ok(Some(change))) => change,
            Ok(Ok(None)) => return Err("the server ended the stream".to_owned()),
            Ok(Err(status)) => return Err(status.message().to_owned()),
            Err(_) => return Err("no sign of life".to_owned()),
        };
        self.backoff.reset();
        Ok(from_wire(change))
    }

    async fn begin(&self) -> Result<Streaming<pb::LeaderChange>, String> {
        let observe = |mut locks: Locks| {
            let question = pb::ObserveRequest { name: self.name.clone() };
            async move { locks.observe(question).await }
        };
        self.client.settings().call(observe).await.map_err(|error| match error {
            CallError::Refused(refused) => refused.to_string(),
            CallError::Unavailable(why) => why,
        })
    }

    /// Whether the observer did not know it yet. A leader of an older term than one already told is none.
    fn is_new(&mut self, change: &LeaderChange) -> bool {
        match change {
            LeaderChange::Leads(leader) => {
                let is_older = self.newest.is_some_and(|newest| leader.term < newest);
                self.newest = self.newest.max(Some(leader.term));
                !is_older && self.told.as_ref() != Some(change)
            }
            LeaderChange::OutOfReach { .. } => !matches!(self.told, Some(LeaderChange::OutOfReach { .. })),
            LeaderChange::Vacant { .. } => self.told.as_ref() != Some(change),
        }
    }
}

fn from_wire(change: pb::LeaderChange) -> Option<LeaderChange> {
    match change.leader {
        Some(leader) => Leader::from_wire(leader).map(LeaderChange::Leads),
        None if change.unchanged => None,
        None => Some(LeaderChange::Vacant {
            last_term: change.last_token.and_then(|token| FencingToken::new(token).ok()),
        }),
    }
}
