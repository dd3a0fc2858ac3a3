//! Mistakes that can be made on purpose, as wrappers of journal, clock, fence and client. A harness that cannot fail
//! proves nothing: each must be caught.

/// A deliberate mistake.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Mistake {
    /// A node trusts itself: the confirmation that renewals wait for is not asked of the engine.
    RenewalsUnconfirmed,
    /// After an unknown outcome the batch is proposed again as whatever slot is next.
    ReproposedAfterUnknown,
    /// The engine checks the epoch first and writes a little later, so that a take-over fits in between.
    EpochCheckApart,
    /// A slot that was compacted away can be filled again.
    CompactionReopens,
    /// Nobody compares the journal with what was seen of it before.
    RegressionIgnored,
    /// A node that was replaced goes on answering reads from its memory.
    ReadsFromMemory,
    /// A client calls a lock held as soon as the answer to a long wait is there, and counts from then.
    DeadOnArrival,
    /// A renewal that changes the ttl is answered, and the change is not journaled.
    TtlUnjournaled,
    /// The first renewal after a note is not journaled: after a take-over the old note counts.
    NotesExpireEarly,
    /// Beyond the nine: a fence that does not compare.
    FenceAdmitsAll,
    /// Beyond the nine: answers leave before their commit.
    ToldBeforeDurable,
    /// Beyond the nine: what is in doubt is answered as failed.
    DoubtCalledFailure,
    /// Beyond the nine: a watcher misses an event now and then.
    EventDropped,
    /// Beyond the nine: expiries are decided and not journaled.
    ExpiryUnjournaled,
    /// Beyond the nine: a client trusts answers of an epoch older than it has seen.
    OldEpochsTrusted,
    /// Beyond the nine: a client gives back leases that are not its own.
    OthersReleased,
    /// Beyond the nine: a release is answered with another token than the lease had.
    WrongTokenReleased,
    /// Beyond the nine: a client counts its deadline from the answer, not from sending.
    CountedFromAnswer,
    /// Beyond the nine: a snapshot leaves everything out.
    SnapshotForgets,
    /// Beyond the nine: a standby never thinks that it is its turn.
    NobodyTakesOver,
    /// Beyond the nine: an answer is forgotten now and then.
    AnswersForgotten,
    /// Beyond the nine: deadlines never come.
    NothingExpires,
    /// Beyond the nine: every audit entry is told as number 1.
    AuditNumberRepeats,
    /// Beyond the nine: after a take-over nobody tells the watchers anything.
    WatchersForgotten,
    /// Beyond the nine: a snapshot has a remembered outcome more than was committed.
    SnapshotAdds,
    /// Beyond the nine: somebody renews the leases of clients that are dead.
    DeadRenewed,
}

impl Mistake {
    /// All of them, with the names that commands use.
    pub const ALL: [(Self, &'static str); 26] = [
        (Self::RenewalsUnconfirmed, "renewals-unconfirmed"),
        (Self::ReproposedAfterUnknown, "reproposed-after-unknown"),
        (Self::EpochCheckApart, "epoch-check-apart"),
        (Self::CompactionReopens, "compaction-reopens"),
        (Self::RegressionIgnored, "regression-ignored"),
        (Self::ReadsFromMemory, "reads-from-memory"),
        (Self::DeadOnArrival, "dead-on-arrival"),
        (Self::TtlUnjournaled, "ttl-unjournaled"),
        (Self::NotesExpireEarly, "notes-expire-early"),
        (Self::FenceAdmitsAll, "fence-admits-all"),
        (Self::ToldBeforeDurable, "told-before-durable"),
        (Self::DoubtCalledFailure, "doubt-called-failure"),
        (Self::EventDropped, "event-dropped"),
        (Self::ExpiryUnjournaled, "expiry-unjournaled"),
        (Self::OldEpochsTrusted, "old-epochs-trusted"),
        (Self::OthersReleased, "others-released"),
        (Self::WrongTokenReleased, "wrong-token-released"),
        (Self::CountedFromAnswer, "counted-from-answer"),
        (Self::SnapshotForgets, "snapshot-forgets"),
        (Self::NobodyTakesOver, "nobody-takes-over"),
        (Self::AnswersForgotten, "answers-forgotten"),
        (Self::NothingExpires, "nothing-expires"),
        (Self::AuditNumberRepeats, "audit-number-repeats"),
        (Self::WatchersForgotten, "watchers-forgotten"),
        (Self::SnapshotAdds, "snapshot-adds"),
        (Self::DeadRenewed, "dead-renewed"),
    ];

    /// How many of them, at the front, are the classic ones.
    pub const CLASSIC: usize = 9;

    /// The mistake of this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(mistake, _)| *mistake)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(mistake, _)| *mistake == self).map_or("?", |(_, name)| name)
    }
}
