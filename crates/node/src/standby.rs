//! A standby's wait: it follows the journal, watches head and beat, and says when it is its turn (N6, J15, J16).

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use leasehold_journal::{Claim, Head, OpenError, Opened, ReadError, Reader};
use leasehold_types::ids::random;
use leasehold_types::{Durability, Epoch, Nonce};

use crate::config::{LOOK, STALL, SharedJournal, WITNESS_EVERY};
use crate::keepers::{load_witness, store_witness};
use crate::node::Node;
use crate::open::claim;
use crate::past::{Past, Shown};
use crate::shared::Shared;
use crate::vigil::Vigil;
use crate::warm::Warm;
use crate::{Active, StartError};

/// What became of waiting.
pub(crate) enum Turn {
    /// The journal is ours.
    Opened(Box<Claimed>),
    /// The node is to end.
    Shutdown,
}

/// A journal that was claimed, and what was replayed of it before.
pub(crate) struct Claimed {
    pub(crate) opened: Opened,
    pub(crate) nonce: Nonce,
    pub(crate) warm: Option<Warm>,
}

/// See the module.
pub(crate) struct Standby<'a> {
    node: &'a Node,
    vigil: Vigil,
    /// What handles see of this life, once the journal has been read.
    shared: Option<Arc<Shared>>,
    reader: Option<Box<dyn Reader>>,
    warm: Option<Warm>,
    past: Past,
    next_witness: Duration,
    /// What the journal keeps, once it has said so.
    durability: Option<Durability>,
}

impl<'a> Standby<'a> {
    /// A standby that has seen nothing yet; `own` is the nonce of its last claim, if it was active before.
    pub(crate) fn new(
        node: &'a Node,
        settings: &'a SharedJournal,
        own: Option<Nonce>,
    ) -> Result<Self, StartError> {
        let past = Past::new(load_witness(&node.config.data_dir)?);
        Ok(Self {
            node,
            vigil: Vigil::new(settings.patience, own, chance()),
            shared: None,
            reader: None,
            warm: None,
            past,
            next_witness: Duration::ZERO,
            durability: None,
        })
    }

    /// The first look of a node that has just started; founds the journal if nobody has, and this node has never seen it.
    ///
    /// # Errors
    /// The journal can neither be read nor founded, or it is gone.
    pub(crate) async fn begin(&mut self) -> Result<Option<Turn>, StartError> {
        match self.look().await {
            // After a resignation it is its turn already: a node that is started again alone serves at once.
            Ok(()) => self.take_turn(passes_at_start).await,
            Err(StartError::Read(error @ (ReadError::NotFounded | ReadError::Unavailable(_)))) => {
                self.begin_unread(error).await
            }
            Err(error) => Err(error),
        }
    }

    /// Founds a journal that could not be read, unless this node has seen it. Of an engine that is there and does not let us in
    /// the claim says so, which makes a difference to whoever starts a node.
    async fn begin_unread(&mut self, why: ReadError) -> Result<Option<Turn>, StartError> {
        match self.past.gone() {
            None => self.found().await,
            Some(gone) if why == ReadError::NotFounded => Err(gone.into()),
            Some(_) => {
                self.node.journal.reach().await?;
                Err(why.into())
            }
        }
    }

    /// Claiming epoch 0 founds a journal, and does nothing else.
    async fn found(&mut self) -> Result<Option<Turn>, StartError> {
        match self.claim(Epoch(0)).await {
            Ok(turn) => Ok(Some(turn)),
            Err(OpenError::LostDuel(_)) => self.look().await.map(|()| None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes its turn, if it has one.
    async fn take_turn(&mut self, passes: fn(&OpenError) -> bool) -> Result<Option<Turn>, StartError> {
        let Some(expected) = self.turn() else { return Ok(None) };
        match self.claim(expected).await {
            Ok(turn) => Ok(Some(turn)),
            Err(error) if passes(&error) => {
                self.back_off(&error);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Waits for its turn and takes it.
    ///
    /// # Errors
    /// Those after which waiting longer is of no use: the journal is damaged, or not the one that was followed.
    pub(crate) async fn wait(&mut self) -> Result<Turn, StartError> {
        loop {
            if let Some(turn) = self.take_turn(passes).await? {
                return Ok(turn);
            }
            let pause = self.node.clock.sleep_until(self.now() + LOOK);
            tokio::select! {
                biased;
                () = self.node.seat.closing() => return Ok(Turn::Shutdown),
                () = pause => {}
            }
            match self.look().await {
                Ok(()) => {}
                Err(error) if error.passes() => self.saw_nothing(&error),
                Err(error) => return Err(error),
            }
        }
    }

    fn turn(&self) -> Option<Epoch> {
        let replay = &self.warm.as_ref()?.replay;
        let caught_up = self.vigil.head().is_some_and(|head| head.tail == replay.tail);
        self.vigil.turn(self.now(), replay.resigned.filter(|_| caught_up))
    }

    async fn claim(&mut self, expected: Epoch) -> Result<Turn, OpenError> {
        let nonce = Nonce::from_bytes(random());
        let claim = Claim { expected_epoch: Some(expected), ..claim(nonce) };
        let opened = self.node.journal.open(claim).await?;
        Ok(Turn::Opened(Box::new(Claimed { opened, nonce, warm: self.warm.take() })))
    }

    /// Looks once: head, what was committed since, and what handles are to know of it.
    async fn look(&mut self) -> Result<(), StartError> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.within(self.node.journal.reader()).await.ok_or_else(no_answer)??,
        };
        let head = self.within(reader.head()).await.ok_or_else(no_answer)?;
        if head == Err(ReadError::NotFounded) {
            self.past.hold_to_nothing(self.now())?;
        }
        let head = head?;
        let mut warm = match self.warm.take() {
            Some(warm) => warm,
            None => Warm::load(&self.node.config, &mut *reader).await?,
        };
        let shown = match warm.follow_recovered(head.cluster, head.tail, &mut *reader).await {
            Ok(()) => self.past.hold(&head, &mut warm, &mut *reader, self.now()).await,
            Err(error) => Err(error),
        };
        let passes = shown.as_ref().err().is_none_or(StartError::passes);
        // Another member of the engine may show what this one does not.
        (self.warm, self.reader) = (Some(warm), matches!(shown, Ok(Shown::All)).then_some(reader));
        if passes {
            if self.durability.is_none() {
                let durability = self.within(self.node.journal.durability()).await;
                self.durability = Some(durability.ok_or_else(no_answer)??);
            }
            self.saw(head, shown.as_ref().ok())?;
        }
        shown.map(drop)
    }

    /// Notes a head that was seen, and how much of the past it shows, if that was found out. Only a changed head is a sign of
    /// life.
    fn saw(&mut self, head: Head, shown: Option<&Shown>) -> Result<(), StartError> {
        let now = self.now();
        self.vigil.saw(head, now, chance());
        let Some(warm) = &self.warm else { return Ok(()) };
        let resigned = warm.replay.resigned == Some(head.epoch);
        // Nothing is passed on to a node that serves less than was seen here: it may give tokens a second time.
        let less = shown.and_then(Shown::less);
        let active = warm.active_of(&head).filter(|_| !resigned && less.is_none()).map(|took_over| Active {
            epoch: took_over.epoch,
            node: took_over.node.as_ref().into(),
            url: took_over.url.as_ref().into(),
            here: false,
        });
        let is_new = self.shared.is_none();
        let durability = self.durability.unwrap_or(Durability::Volatile);
        let shared = self.shared.get_or_insert_with(|| self.node.standing_by(head.cluster, durability));
        shared.set_format(warm.state());
        shared.follow_credentials(warm.state().credentials());
        shared.follow(head.epoch, head.tail.slot, warm.tail().slot, &warm.replay.state.counts());
        if is_new {
            self.node.seat.enter(Arc::clone(shared));
        }
        shared.set_trouble(less.map(ToString::to_string));
        self.node.seat.set_active(active);
        if now >= self.next_witness && matches!(shown, Some(Shown::All)) {
            self.next_witness = now + WITNESS_EVERY;
            self.bear_witness(&head)?;
        }
        Ok(())
    }

    /// What a standby has seen counts as much as what an active node has (J9).
    fn bear_witness(&mut self, head: &Head) -> Result<(), StartError> {
        let grown = self.warm.as_ref().and_then(|warm| self.past.grown(head, warm));
        if let Some(witness) = grown {
            store_witness(&self.node.config.data_dir, &witness)?;
            self.past.remember(witness);
        }
        Ok(())
    }

    fn saw_nothing(&mut self, why: &StartError) {
        self.reader = None;
        self.vigil.saw_nothing(chance());
        if !matches!(why, StartError::Read(ReadError::NotFounded)) {
            self.past.lost_sight();
        }
        self.node.seat.shared().set_trouble(Some(why.to_string()));
    }

    fn back_off(&mut self, why: &OpenError) {
        self.node.observer.trouble("the journal was not taken over", &why.to_string());
        self.vigil.back_off(self.now(), chance());
    }

    fn now(&self) -> Duration {
        self.node.clock.monotonic()
    }

    /// `None` if there was no answer in time.
    async fn within<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        // Made when it is first polled, so only if the answer is not there at once.
        let too_late = async { self.node.clock.sleep_until(self.now() + STALL).await };
        tokio::select! {
            biased;
            done = work => Some(done),
            () = too_late => None,
        }
    }
}

fn no_answer() -> StartError {
    ReadError::Unavailable("no answer in time".to_owned()).into()
}

/// Whether a claim may succeed later. An engine that let us in before may refuse us while it is being replaced or restored.
fn passes(error: &OpenError) -> bool {
    passes_at_start(error) || matches!(error, OpenError::Refused(_))
}

/// As [`passes`], of a node that is just starting: whoever starts it wants to know of a wrong password.
fn passes_at_start(error: &OpenError) -> bool {
    matches!(error, OpenError::Unavailable(_) | OpenError::LostDuel(_))
}

/// A number from 0 to 1.
fn chance() -> f64 {
    f64::from(random()[0]) / f64::from(u8::MAX)
}
