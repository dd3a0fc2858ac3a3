//! What a standby has seen of its journal before, and holds the journal to (J9).
//!
//! A node that claims is held to its witness by the claim. One that only follows is no less of a witness: while another
//! node, which knows nothing of what was lost, serves a journal that went back, it must neither pass requests on to there nor
//! write over what it remembers.

use std::time::Duration;

use leasehold_journal::{Head, OpenError, Reader, Sighting, Witness};
use leasehold_types::FencingToken;

use crate::StartError;
use crate::warm::Warm;

/// A journal that shows less than was seen has lost it, or is read from a member of the engine that lags: no member that is
/// alive lags for this long.
pub(crate) const LAG: Duration = Duration::from_secs(10);

/// See the module.
pub(crate) struct Past {
    witness: Option<Witness>,
    /// The journal was found to hold what the witness has seen. From then on the chain of what is followed proves it.
    is_found: bool,
    /// Since when the journal has shown less than that.
    less_since: Option<Duration>,
}

/// How much of the past a journal shows.
pub(crate) enum Shown {
    /// All of it.
    All,
    /// Less, as it would be regressed; but the rest may still come.
    Less(OpenError),
}

impl Shown {
    /// Why it is less, as it would be told of a regressed journal.
    pub(crate) fn less(&self) -> Option<&OpenError> {
        match self {
            Self::All => None,
            Self::Less(error) => Some(error),
        }
    }
}

impl Past {
    pub(crate) fn new(witness: Option<Witness>) -> Self {
        Self { witness, is_found: false, less_since: None }
    }

    /// Compares a journal that was followed up to its head with the past.
    ///
    /// # Errors
    /// [`OpenError::Regressed`]: it is another journal, or it has shown less for too long.
    pub(crate) async fn hold(
        &mut self,
        head: &Head,
        warm: &mut Warm,
        reader: &mut dyn Reader,
        now: Duration,
    ) -> Result<Shown, StartError> {
        let shown = self.compare(head, warm, reader).await?;
        let Shown::Less(error) = &shown else {
            (self.is_found, self.less_since) = (true, None);
            return Ok(shown);
        };
        if let Err(error) = self.wait(error.clone(), now) {
            // What was followed may have been given up by a recovery that this node has not come to yet.
            warm.follow_anew(head.cluster, head.tail, reader, error).await?;
            self.less_since = None;
        }
        Ok(shown)
    }

    /// The engine answers and holds no journal of this name.
    ///
    /// # Errors
    /// [`OpenError::Regressed`]: it did, and has not for too long.
    pub(crate) fn hold_to_nothing(&mut self, now: Duration) -> Result<(), OpenError> {
        match self.gone() {
            Some(error) => self.wait(error, now),
            None => Ok(()),
        }
    }

    /// The journal was not seen at all: what comes next may lag anew, as members of an engine do that was away.
    pub(crate) fn lost_sight(&mut self) {
        self.less_since = None;
    }

    /// Why a journal that is not there may not be founded: this node has seen it.
    pub(crate) fn gone(&self) -> Option<OpenError> {
        self.witness.as_ref().map(Witness::misses_everything)
    }

    /// What there is to be remembered now, if it is more than what is. Only for a journal that shows all of the past.
    pub(crate) fn grown(&self, head: &Head, warm: &Warm) -> Option<Witness> {
        let known = self.witness.as_ref();
        if known.is_some_and(|known| known.tail.slot >= warm.tail().slot && !warm.gives_up(known)) {
            return None;
        }
        let token = FencingToken::new(warm.state().last_token()).ok();
        Some(Witness {
            cluster: head.cluster,
            tail: warm.tail(),
            epoch: known.map_or(head.epoch, |known| known.epoch.max(head.epoch)),
            token: token.max(known.and_then(|known| known.token)),
            directory: None,
            generation: Some(warm.state().generation()),
            claimed: None,
        })
    }

    /// This was stored.
    pub(crate) fn remember(&mut self, witness: Witness) {
        self.witness = Some(witness);
    }

    /// Bears with it, as it may pass, but not for ever.
    fn wait(&mut self, error: OpenError, now: Duration) -> Result<(), OpenError> {
        let since = *self.less_since.get_or_insert(now);
        if now.saturating_sub(since) >= LAG { Err(error) } else { Ok(()) }
    }

    async fn compare(&self, head: &Head, warm: &Warm, reader: &mut dyn Reader) -> Result<Shown, StartError> {
        if let Err(error) = warm.must_not_be_ahead(head.cluster, head.tail) {
            return Ok(Shown::Less(error));
        }
        let Some(witness) = self.witness.as_ref().filter(|witness| !warm.gives_up(witness)) else {
            return Ok(Shown::All);
        };
        let Head { cluster, epoch, tail, .. } = *head;
        let hash_there = match self.is_found {
            true => None,
            false => Sighting::hash_at(witness.tail.slot, tail, reader).await?,
        };
        let now = Sighting { cluster, epoch, tail, hash_there, directory: None };
        let fits = witness.check(&now).and_then(|()| witness.check_token(warm.state().last_token()));
        match fits {
            Ok(()) => Ok(Shown::All),
            Err(error) if witness.may_still_come(&now) => Ok(Shown::Less(error)),
            Err(error) => Err(error.into()),
        }
    }
}
