//! The other kind of world: one node on the embedded journal, on a disk that loses power in the middle of writes and
//! whose bits flip. Torn writes must leave a prefix with everything acknowledged; damage must be refused aloud (S22).

use std::sync::Arc;

use leasehold_core::{
    Acquire, Command, Journaled, LockTable, Renew, RenewalReport, Reply, Settings, Ticket, codec, invariants,
};
use leasehold_history::{Answer, Call as Shown, Change, Checker, Hash, Id, Mode, Promises, Record};
use leasehold_journal::{Chained, Claim, Journal as _, OpenError, Opened, Outcome, Tail};
use leasehold_journal_wal::disk::{Disk as _, Fault, MemoryDisk};
use leasehold_journal_wal::{Background, WalConfig, WalJournal};
use leasehold_node::Call;
use leasehold_node::parts::Warm;
use leasehold_node::state::{Delivery, Next, State, Work};
use leasehold_types::{
    ClusterId, Durability, Epoch, LeaseId, Nonce, Now, OwnerId, ResourceName, TenantName, Time, Ttl, WallTime,
};

use crate::chance::Chance;
use crate::engine::now;
use crate::options::Options;
use crate::trace::Trace;
use crate::world::{Failure, load};

/// Lives of the node in one run.
const LIVES: u64 = 30;
/// Commands in one life at most; power is usually cut before.
const COMMANDS: u64 = 120;

/// One run of this kind.
pub(crate) struct DiskWorld {
    chance: Chance,
    disk: MemoryDisk,
    checker: Option<Checker>,
    pub(crate) trace: Trace,
    pub(crate) failure: Option<Failure>,
    pub(crate) records: Option<Vec<Record>>,
    pub(crate) faults: u64,
    pub(crate) commands: u64,
    /// What was committed, and the batch of which it is not known.
    shadow: Journaled,
    tail: Tail,
    doubt: Option<Chained>,
    leases: Vec<LeaseId>,
    now: u64,
    last_op: u64,
}

impl DiskWorld {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            chance: Chance::new(options.seed),
            disk: MemoryDisk::new(),
            checker: Some(Checker::new(Promises::ALL)),
            trace: Trace::default(),
            failure: None,
            records: options.keep.then(Vec::new),
            faults: 0,
            commands: 0,
            shadow: Journaled::new(),
            tail: Tail::default(),
            doubt: None,
            leases: Vec::new(),
            now: 1,
            last_op: 0,
        }
    }

    /// Lives until a promise breaks, the damage is noticed, or all lives are lived.
    pub(crate) fn run(&mut self) {
        let mut flipped = false;
        for life in 0..LIVES {
            // What flipped may lie where nobody looks for a while.
            flipped |= life > 2 && self.chance.per_mille(60) && self.flip();
            let stop_at = self.disk.ops().len() + self.chance.index(400);
            if !flipped {
                self.disk.fail(stop_at, Fault::Stop);
            }
            match self.open() {
                Ok(opened) => self.live(opened),
                // Refused aloud: an operator's affair from here on.
                Err(OpenError::Corrupt { .. } | OpenError::TooNew(_) | OpenError::Regressed(_))
                    if flipped =>
                {
                    return;
                }
                Err(_) if self.disk.ops().len() > stop_at => {}
                Err(error) => self.fail("S22", &format!("a power cut looks like damage: {error}")),
            }
            if self.failure.is_some() {
                return;
            }
            self.cut_power();
        }
        let verdict = self.checker.take().map(Checker::finish);
        if let Some(Err(violation)) = verdict {
            self.fail(&violation.promise.to_string(), &violation.detail);
        }
    }

    fn open(&mut self) -> Result<Opened, OpenError> {
        let config = WalConfig {
            segment_bytes: 64 << 9,
            first_segment_bytes: 32 << 9,
            reserve_bytes: 8 << 9,
            body_bytes: 8 << 10,
            background: Background::Inline,
            ..WalConfig::new("simulated")
        };
        let claim = Claim {
            nonce: Nonce::from_bytes(self.chance.id()),
            new_cluster: ClusterId::from_bytes([1; 16]),
            expected_epoch: None,
            epoch_floor: Epoch(0),
            accept_loss: false,
        };
        now(WalJournal::on(Arc::new(self.disk.clone()), config).open(claim))
    }

    /// Some bit of some file changes while nobody looks.
    fn flip(&mut self) -> bool {
        let names = self.disk.names().unwrap_or_default();
        let Some(name) = names.get(self.chance.index(names.len())) else { return false };
        let bytes = self.disk.contents(name).map_or(0, |contents| contents.len());
        if bytes == 0 {
            return false;
        }
        self.faults += 1;
        let (at, bit) = (self.chance.index(bytes), self.chance.below(8));
        self.disk.flip(name, at, 1 << bit);
        true
    }

    fn cut_power(&mut self) {
        self.faults += 1;
        let survivors = self.chance.below(5);
        let (disk, chance) = (self.disk.clone(), &mut self.chance);
        self.disk = disk.power_cut(&mut || match survivors {
            0 => false,
            1 => true,
            _ => chance.below(4) < survivors,
        });
    }

    /// What is there is what was acknowledged, and perhaps the batch in doubt.
    fn live(&mut self, mut opened: Opened) {
        if let Some(batch) = self.doubt.take()
            && opened.tail.slot == batch.slot
        {
            self.committed(&batch);
        }
        if opened.tail != self.tail {
            let detail = format!(
                "the journal ends at slot {}, slot {} was acknowledged",
                opened.tail.slot, self.tail.slot
            );
            return self.fail("S22", &detail);
        }
        let Some(warm) = self.replayed(&mut opened) else { return };
        let settings = Settings::on(Durability::Durable);
        let epoch = opened.epoch;
        let table = LockTable::restore(warm.into_state(), settings, self.stamp());
        let state =
            State::new(table, epoch, Nonce::from_bytes(self.chance.id()), self.tail, opened.writer.limits());
        self.serve(opened, state);
    }

    fn replayed(&mut self, opened: &mut Opened) -> Option<Warm> {
        let (cluster, tail) = (opened.cluster, opened.tail);
        let replayed = load(&mut *opened.reader)
            .and_then(|mut warm| now(warm.follow(cluster, tail, &mut *opened.reader)).map(|()| warm));
        match replayed {
            Ok(warm) => {
                if let Err(broken) = invariants::states_are_equal(warm.state(), &self.shadow) {
                    self.fail("S15", &broken.detail);
                }
                Some(warm)
            }
            // A stopped disk is not damage; a bit that flipped in what is read back is, and was refused.
            Err(_) => None,
        }
    }

    fn serve(&mut self, mut opened: Opened, mut state: State) {
        let mut told = Vec::new();
        for ticket in 1..=COMMANDS {
            if self.failure.is_some() {
                return;
            }
            self.now += self.chance.within(1, 400) * 1_000;
            state.tick(self.stamp(), 100);
            let (op, call) = self.ask();
            self.commands += 1;
            state.take(Ticket(ticket), call, self.stamp());
            told.push((Ticket(ticket), op));
            while let Some(work) = state.next_work() {
                let next = match work {
                    Work::Append(batch) => {
                        self.doubt = Some(batch.clone());
                        let outcome = now(opened.writer.append(&batch));
                        if outcome == Outcome::Committed {
                            self.doubt = None;
                            self.committed(&batch);
                        }
                        state.appended(outcome)
                    }
                    Work::Confirm => state.confirmed(now(opened.writer.confirm())),
                };
                if let Next::Stop(_) | Next::Again(_) = next {
                    return;
                }
            }
            self.tell(std::iter::from_fn(|| state.delivery()), &mut told);
            if self.chance.per_mille(30) {
                self.snapshot(&mut opened);
            }
        }
    }

    fn snapshot(&mut self, opened: &mut Opened) {
        let snapshots = &mut opened.snapshots;
        if now(snapshots.begin(self.tail)).is_err() {
            return;
        }
        let stored = codec::encode_snapshot(&self.shadow, 2_048, &mut |chunk| now(snapshots.chunk(chunk)));
        if stored.is_ok() {
            now(snapshots.install(self.tail.slot));
        }
    }

    fn stamp(&self) -> Now {
        Now { time: Time(self.now / 1_000), wall: WallTime(1_700_000_000_000 + self.now / 1_000) }
    }

    fn ask(&mut self) -> (u64, Call) {
        self.last_op += 1;
        let known = self.leases.get(self.chance.index(self.leases.len().max(1))).copied();
        let (command, shown) = match (self.chance.below(3), known) {
            (0, Some(lease_id)) => {
                (Command::Release { lease_id }, Shown::Release { lease: Id(*lease_id.as_bytes()) })
            }
            (1, Some(lease_id)) => {
                let report = RenewalReport::default();
                let renew = Renew { lease_id, ttl: None, report, lists_locks: true };
                (Command::Renew(renew), Shown::Renew { life: Id(*lease_id.as_bytes()) })
            }
            _ => self.acquire(),
        };
        self.record(Record::Invoke { at: self.now, op: self.last_op, client: "c".into(), call: shown });
        let call = Call { tenant: TenantName::default_tenant(), identity: None, key: None, command };
        (self.last_op, call)
    }

    fn acquire(&mut self) -> (Command, Shown) {
        let resource: Arc<str> = format!("r{}", self.chance.below(8)).into();
        let lease_id = LeaseId::from_bytes(self.chance.id());
        self.leases.push(lease_id);
        if self.leases.len() > 12 {
            self.leases.remove(0);
        }
        let command = Command::Acquire(Acquire {
            owner: Some(OwnerId::new("someone").expect("a word is a name")),
            ttl: Ttl::from_journal(self.chance.within(1_000, 9_000)),
            ..Acquire::plain(ResourceName::new(&resource).expect("r and a number is a name"), lease_id)
        });
        (command, Shown::Acquire { resource, lease: Id(*lease_id.as_bytes()), session: None })
    }

    fn tell(&mut self, deliveries: impl Iterator<Item = Delivery>, told: &mut Vec<(Ticket, u64)>) {
        for delivery in deliveries {
            let Delivery::Reply(ticket, reply) = delivery else { continue };
            let Some(place) = told.iter().position(|(asked, _)| *asked == ticket) else { continue };
            let (_, op) = told.swap_remove(place);
            let answer = match reply.get() {
                Reply::Granted(grant) => Answer::Granted { token: grant.token.get(), ttl_ms: grant.ttl_ms },
                Reply::Renewed(renewed) => Answer::Renewed { ttl_ms: renewed.ttl_ms },
                Reply::Released { token, .. } => Answer::Released { token: token.get() },
                Reply::NotGranted(_) => Answer::NotGranted,
                _ => Answer::Refused,
            };
            let epoch = Some(reply.epoch().0);
            self.record(Record::Answer { at: self.now, op, epoch, answer });
        }
    }

    fn committed(&mut self, batch: &Chained) {
        let facts = codec::decode_body(&batch.body).expect("what a node writes can be read");
        let changes = facts.iter().filter_map(change).collect();
        let (slot, prev) = (batch.slot.0, Hash(batch.prev_hash.0));
        self.record(Record::Commit {
            at: self.now,
            slot,
            epoch: batch.epoch().0,
            prev,
            hash: Hash(batch.hash().0),
            changes,
            events: None,
        });
        for fact in &facts {
            self.shadow.replay(fact, &mut Vec::new());
        }
        self.tail = batch.tail();
    }

    fn record(&mut self, record: Record) {
        self.trace.record(&record);
        let taken = self.checker.as_mut().map(|checker| checker.take(&record));
        if let Some(records) = &mut self.records {
            records.push(record);
        }
        if let Some(Err(violation)) = taken {
            let leasehold_history::Violation { promise, detail, records } = violation;
            self.failure.get_or_insert(Failure { promise: promise.to_string(), detail, records });
        }
    }

    fn fail(&mut self, promise: &str, detail: &str) {
        let (promise, detail) = (promise.to_owned(), detail.to_owned());
        self.failure.get_or_insert(Failure { promise, detail, records: Vec::new() });
    }
}

fn change(fact: &leasehold_core::Fact) -> Option<Change> {
    use leasehold_core::Fact;
    Some(match fact {
        Fact::Granted(granted) => Change::Granted {
            lease: Id(*granted.lease_id.as_bytes()),
            life: Id(*granted.lease_id.as_bytes()),
            resource: granted.resource.name().into(),
            token: granted.token.get(),
            mode: Mode::Exclusive,
            permit: None,
        },
        Fact::Released { lease_id, .. } => Change::Released { lease: Id(*lease_id.as_bytes()) },
        Fact::Expired { lease_id, .. } => {
            Change::Expired { lease: Id(*lease_id.as_bytes()), max_hold: false }
        }
        _ => return None,
    })
}
