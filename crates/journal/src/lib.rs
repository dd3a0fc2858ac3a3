//! The journal contract: a durable, ordered record of batches of facts, to which exactly one node may append.
//!
//! A journal moves opaque bytes. It knows slots and epochs, never leases; replication, consensus and durability are
//! the engine's. [`Journal::open`] is the only way to a [`Writer`], and it fences every earlier one, so there is no
//! unfenced writer to misuse.
//!
//! This crate has the contract, [`MemoryJournal`] for tests, the [`Witness`] that notices a regressed engine, and
//! (feature `conformance`) the suite that every journal must pass. It has no engine and makes no decision about locks.
//!
//! # The rules
//!
//! Numbered as the conformance suite and the documentation name them. Callers may rely on each; every implementation
//! must establish each.
//!
//! - **J1** [`Writer::append`] succeeds at most once per slot, only while the writer's (epoch, nonce) is current at the
//!   linearization point, and only if the slot is the tail plus one.
//! - **J2** Outcomes are [`Outcome`]. A time-out, a reset, a server error, a cancelled call is `Unknown`.
//! - **J3** `Unknown` is resolved by appending *the same bytes at the same slot* again until the outcome is known. An
//!   empty slot proves nothing: the first attempt can still land.
//! - **J4** Opening is a compare-and-set of (epoch + 1, fresh random nonce). Once it has returned, no older append can
//!   ever succeed.
//! - **J5** The tail is read *after* the take-over has committed, linearizably.
//! - **J6** Committed means durable as the engine defines it. The journal checks the engine's settings when it opens
//!   and reports a [`Durability`].
//! - **J7** [`Writer::confirm`] says whether the epoch is still ours, linearizably, across the engine's own fail-over.
//! - **J8** Truncation is fenced too, advances a durable low-water mark *first*, and never passes the durable snapshot.
//!   A slot that was compacted away can never be created again.
//! - **J9** Slots are hash-chained ([`chain`]). A shorter tail than the witness has seen, or another hash, means that
//!   acknowledged writes were lost: [`OpenError::Regressed`].
//! - **J10** [`Writer::limits`] bounds a batch.
//! - **J11** Opening proves on a scratch key that the engine really refuses a stale append, where the engine is remote.
//! - **J12** Corruption is never mistaken for a torn tail: [`OpenError::Corrupt`] names the place.
//! - **J13** A snapshot is chunks, checked by a whole hash, made current by one fenced switch.
//! - **J14** [`Reader::slots`] yields committed slots in order, or says that they were compacted.
//! - **J15** [`Writer::beat`] writes a fenced sign of life beside the head; standbys watch head and beat.
//! - **J16** An active that shuts down in order appends a last batch saying so (its body is the node's affair); a
//!   standby that reads it opens at once.

pub mod archive;
mod chain;
#[cfg(feature = "conformance")]
pub mod conformance;
mod lines;
mod memory;
pub mod remote;
mod witness;

pub use chain::{Batch, BatchId, Chained, Hash, InvalidHash, chain};
pub use lines::{Lines, LinesError, seal};
pub use memory::{Defect, Fault, MemoryJournal};
pub use witness::{Directory, Sighting, Witness};

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use leasehold_types::{ClusterId, Durability, Epoch, Nonce, Slot};

/// What came of an append, a beat, a truncation or a snapshot switch (J2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It is durable. For an append also: it was found to be there already, from an earlier attempt with these bytes.
    Committed,
    /// A newer epoch has the journal. Nothing of ours can ever be committed again: stop answering.
    Fenced,
    /// Refused although our epoch is current, and nothing was written: a broken engine or a broken caller. The slot
    /// holds the batch named here; or, without a name, it is not the tail plus one, was compacted away, does not follow
    /// the chain, or the body is over the limit.
    Conflict(Option<BatchId>),
    /// It may or may not have happened. Append the same bytes at the same slot again (J3).
    Unknown(String),
    /// The journal itself broke: a write or an fsync failed. What is durable is no longer known, and asking again could
    /// give a false yes, so this writer answers nothing else any more. Stop the process; opening anew finds out.
    Failed(String),
    /// Our epoch is current, and yet the engine has forgotten acknowledged commits (J9). Nobody may serve this journal before an
    /// operator has looked; the text says what to do.
    Regressed(String),
}

/// What came of asking whether our epoch is still current (J7).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Confirmation {
    /// It was, at some moment after the question was asked.
    Current,
    /// A newer epoch has the journal.
    Fenced,
    /// No answer.
    Unknown(String),
}

/// How much may be written (J10) and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Largest body of one batch.
    pub body_bytes: usize,
    /// Largest snapshot chunk; a longer one is refused.
    pub chunk_bytes: usize,
    /// Whether [`Writer::confirm`] costs nothing, as behind an exclusive lock on a local directory.
    pub confirm_is_free: bool,
}

impl Limits {
    /// For bodies and chunks of every journal alike, so that each can be copied into every other (D12). ZooKeeper takes the
    /// least: a little less than 1 MiB a request, everything counted; etcd 1.5 MiB. Those that take more are asked for no more:
    /// whoever waits behind a batch waits for all of it.
    pub const PORTABLE_BYTES: usize = 900 << 10;

    /// Those of a journal on an engine.
    pub const REMOTE: Self =
        Self { body_bytes: Self::PORTABLE_BYTES, chunk_bytes: Self::PORTABLE_BYTES, confirm_is_free: false };

    /// Whether a snapshot may have this chunk.
    ///
    /// # Errors
    /// It is over the limit.
    pub fn admit(&self, chunk: &Bytes) -> Result<(), ReadError> {
        if chunk.len() <= self.chunk_bytes {
            return Ok(());
        }
        let (is, most) = (chunk.len(), self.chunk_bytes);
        Err(ReadError::Unavailable(format!("a chunk of {is} bytes is over the limit of {most}")))
    }
}

/// Whether the journal has room for more than endings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Anything may be appended.
    Plenty,
    /// Only the reserve is left: releases, expiries, force-releases and notes may be appended, grants may not.
    Reserve,
}

/// The chain's end: the last committed slot and its hash. Slot 0 with [`Hash::ZERO`] when there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tail {
    /// The last committed slot.
    pub slot: Slot,
    /// The chain's hash there.
    pub hash: Hash,
}

/// What a standby watches (N6): any change is a sign of life of the active node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Head {
    /// The id of the journal.
    pub cluster: ClusterId,
    /// The current epoch.
    pub epoch: Epoch,
    /// Its nonce.
    pub nonce: Nonce,
    /// The last committed slot.
    pub tail: Tail,
    /// Counts the beats of the current epoch (J15).
    pub beat: u64,
}

/// What a node brings when it takes a journal over.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Fresh and random for this claim (J4).
    pub nonce: Nonce,
    /// The id that an empty journal is founded with.
    pub new_cluster: ClusterId,
    /// Claim only if the head's epoch is still this; a duel is then lost cleanly instead of won twice. `None`: whatever
    /// it is.
    pub expected_epoch: Option<Epoch>,
    /// The new epoch is above this and above the journal's own: 0, except for `recover`.
    pub epoch_floor: Epoch,
    /// Open although the journal is damaged or a copy, keeping the longest whole prefix: for `recover` alone, which
    /// raises the generation. Until this claim or a later one of its kind has committed a batch, which says so, every
    /// claim that does not accept loss is still refused: a recovery that was interrupted must not look finished.
    pub accept_loss: bool,
}

/// A journal that was taken over: epoch, what was recorded, and the only writer of it, together (J4).
pub struct Opened {
    /// The id of the journal.
    pub cluster: ClusterId,
    /// Our epoch.
    pub epoch: Epoch,
    /// The tail, read after the take-over (J5).
    pub tail: Tail,
    /// What an acknowledged append survives (J6).
    pub durability: Durability,
    /// Reads back the snapshot and the slots after it.
    pub reader: Box<dyn Reader>,
    /// Appends.
    pub writer: Box<dyn Writer>,
    /// Stores snapshots, beside the writer and without stopping it.
    pub snapshots: Box<dyn SnapshotWriter>,
    /// What was lost, in words, when the claim accepted loss.
    pub loss: Option<String>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("cluster", &self.cluster)
            .field("epoch", &self.epoch)
            .field("tail", &self.tail)
            .field("durability", &self.durability)
            .finish_non_exhaustive()
    }
}

/// Where the state lives.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// The word for this kind in status and configuration: `embedded`, `postgres` …
    fn kind(&self) -> &'static str;

    /// Where it is, for people and the audit log: without user, password or parameters.
    fn place(&self) -> String {
        self.kind().to_owned()
    }

    /// Whether the engine is there and lets us in; nothing is read, claimed or changed. A directory always does.
    ///
    /// # Errors
    /// [`OpenError::Unavailable`] and [`OpenError::Refused`].
    async fn reach(&self) -> Result<(), OpenError> {
        Ok(())
    }

    /// Takes the journal over: founds it when it is empty, fences every earlier writer, then reads the tail (J4, J5).
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing was taken over, or a newer claim has already replaced this one.
    async fn open(&self, claim: Claim) -> Result<Opened, OpenError>;

    /// What an acknowledged append survives, asked without claiming (J6): what a standby tells of itself. A journal that
    /// is not meant to be shared need not say, and promises nothing.
    ///
    /// # Errors
    /// See [`OpenError`].
    async fn durability(&self) -> Result<Durability, OpenError> {
        Ok(Durability::Volatile)
    }

    /// Reads without claiming: for standbys, backups and snapshots. Sees committed slots only.
    ///
    /// # Errors
    /// See [`OpenError`].
    async fn reader(&self) -> Result<Box<dyn Reader>, OpenError>;

    /// Fills this journal, which must be empty, with what another one or an archive holds: the same cluster, epoch,
    /// snapshot, slots and hashes (slots that the snapshot covers are left out). Nobody has claimed it afterwards.
    ///
    /// A copy may be older than the original. So every claim is refused ([`OpenError::Regressed`]) until one that
    /// accepts loss has committed a batch: that of `recover`, which raises epoch and tokens.
    ///
    /// # Errors
    /// See [`ImportError`]. What was written until then is not a journal: opening it is refused.
    async fn import(&self, from: &mut dyn Reader) -> Result<Tail, ImportError> {
        let _ = from;
        Err(ImportError::Target(OpenError::Unsuitable(format!("a {} journal cannot be filled", self.kind()))))
    }
}

/// Appends to a journal. There is one per epoch.
#[async_trait]
pub trait Writer: Send {
    /// Commits a batch (J1–J3). `Committed` means durable. One that is chained in another epoch than this writer's is never
    /// written, only found: that is how what an earlier epoch has done is asked for again.
    ///
    /// Not cancel-safe: a dropped call is an unknown outcome, to be resolved by appending the same batch again.
    async fn append(&mut self, batch: &Chained) -> Outcome;

    /// Whether our epoch is still current (J7). The question must have been begun after the request that needs it.
    async fn confirm(&mut self) -> Confirmation;

    /// Writes a sign of life beside the head, fenced (J15); also a confirmation.
    async fn beat(&mut self) -> Outcome;

    /// Bounds of this journal (J10).
    fn limits(&self) -> Limits;

    /// Whether there is room for grants, or only for endings. Asked before deciding, so it must cost nothing.
    fn room(&self) -> Room;
}

/// A stored snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotInfo {
    /// The state right after this tail.
    pub at: Tail,
    /// How many chunks.
    pub chunks: u32,
    /// Hash over all chunks in order (J13).
    pub hash: Hash,
}

/// Hashes the chunks of a snapshot in order; the chunk borders count.
#[derive(Clone, Default)]
pub struct SnapshotHasher(blake3::Hasher);

impl SnapshotHasher {
    /// Takes the next chunk in.
    pub fn update(&mut self, chunk: &[u8]) {
        self.0.update(&(chunk.len() as u64).to_le_bytes());
        self.0.update(chunk);
    }

    /// The hash over all chunks until now.
    pub fn finish(&self) -> Hash {
        Hash(*self.0.finalize().as_bytes())
    }
}

/// Reads a journal.
#[async_trait]
pub trait Reader: Send {
    /// The current snapshot, if there is one.
    async fn snapshot(&mut self) -> Result<Option<SnapshotInfo>, ReadError>;

    /// One chunk of a snapshot. The last chunk is given only if the whole hash is right.
    async fn chunk(&mut self, snapshot: &SnapshotInfo, index: u32) -> Result<Bytes, ReadError>;

    /// Committed slots from `from` on, in order, as many as are there now up to a bound of the journal's choosing;
    /// empty when `from` is past the tail (J14).
    async fn slots(&mut self, from: Slot) -> Result<Slots, ReadError>;

    /// What standbys watch.
    async fn head(&mut self) -> Result<Head, ReadError>;
}

/// What [`Reader::slots`] found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Slots {
    /// Consecutive slots from the one asked for.
    Found(Vec<Chained>),
    /// The slot asked for was compacted away; the oldest kept is this.
    Compacted {
        /// The oldest slot that can still be read.
        oldest: Slot,
    },
}

/// Stores snapshots and truncates what they cover.
#[async_trait]
pub trait SnapshotWriter: Send {
    /// Begins a snapshot of the state right after `at`, dropping an unfinished one. Refused when `at` is past the tail
    /// or before the current snapshot.
    async fn begin(&mut self, at: Tail) -> Result<(), ReadError>;

    /// Stores the next chunk.
    async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReadError>;

    /// Makes the snapshot current by one fenced switch (J13), then truncates the slots it covers, except that
    /// everything from `keep_from` on stays readable (J8).
    async fn install(&mut self, keep_from: Slot) -> Outcome;
}

/// Why a journal could not be opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The engine does not answer; try again.
    #[error("journal unavailable: {0}")]
    Unavailable(String),
    /// The engine answers and does not let us in, or cannot be trusted: a password, a right, a database or a certificate is
    /// wrong. The operator's to mend at the first opening; a node that ran before goes on trying, for an engine may say so
    /// while it is being replaced.
    #[error("the engine answers, but cannot be used: {0}")]
    Refused(String),
    /// Another process has the directory.
    #[error("journal in use: {0}")]
    InUse(String),
    /// Another node claimed it first; become a standby again.
    #[error("another node took the journal over (epoch {0})")]
    LostDuel(Epoch),
    /// The record is damaged; never repaired silently (J12).
    #[error("journal corrupt: {place}: {detail}")]
    Corrupt {
        /// File and offset, or slot.
        place: String,
        /// What is wrong there.
        detail: String,
    },
    /// Acknowledged writes are missing, or this is a copy (J9).
    #[error("journal regressed: {0}")]
    Regressed(String),
    /// The engine, its settings or the file system cannot keep the contract.
    #[error("journal unsuitable: {0}")]
    Unsuitable(String),
    /// The record was written by a newer version.
    #[error("journal written by a newer version: {0}")]
    TooNew(String),
}

/// Why a journal could not be filled from another.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// There is a journal already; nothing was changed.
    #[error("the journal to be filled is not empty: {0}")]
    NotEmpty(String),
    /// What is copied could not be read.
    #[error("cannot read what is to be copied: {0}")]
    Source(#[from] ReadError),
    /// What is filled could not be written.
    #[error(transparent)]
    Target(#[from] OpenError),
}

/// Why a journal could not be read, or a snapshot not be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// The engine does not answer; try again.
    #[error("journal unavailable: {0}")]
    Unavailable(String),
    /// The engine answers, and holds no journal of this name.
    #[error("nobody has founded this journal yet")]
    NotFounded,
    /// The record is damaged.
    #[error("journal corrupt: {place}: {detail}")]
    Corrupt {
        /// File and offset, or slot.
        place: String,
        /// What is wrong there.
        detail: String,
    },
    /// The snapshot was replaced while it was being read; begin again.
    #[error("the snapshot was replaced meanwhile")]
    Replaced,
}
