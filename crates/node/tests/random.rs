//! Random runs of the state against a journal that loses answers, with crashes in between.
//!
//! A failing run names its seed: `SEED=7 cargo test -p leasehold-node --test random`.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking too")]

use std::collections::BTreeMap;

use leasehold_core::{
    Acquire, Command, Journaled, LockTable, Query, Renew, RenewalReport, Reply, Settings, Sharing, Ticket,
    codec, invariants,
};
use leasehold_journal::{Chained, Confirmation, Limits, Outcome, Tail};
use leasehold_node::Call;
use leasehold_node::state::{Delivery, Next, State, Work};
use leasehold_types::{
    Durability, Epoch, LeaseId, Nonce, Now, OwnerId, ResourceName, TenantName, Time, Ttl, TtlBounds, WallTime,
};

/// Numbers from a seed; the same on every machine (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A world of one node after another on one journal.
struct World {
    random: Random,
    state: State,
    /// What the journal holds: the state that a restart would find.
    durable: Journaled,
    /// An append that the journal has taken although its answer was lost.
    landed: Option<Chained>,
    tail: Tail,
    epoch: u64,
    now_ms: u64,
    last_ticket: u64,
    /// Grants that were told and not ended since, as far as anybody was told: lease and token.
    told: BTreeMap<LeaseId, u64>,
    largest_told: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        let durable = Journaled::new();
        let mut random = Random(seed);
        let state = state(&mut random, &durable, Tail::default(), 1, 0);
        Self {
            random,
            state,
            durable,
            landed: None,
            tail: Tail::default(),
            epoch: 1,
            now_ms: 0,
            last_ticket: 0,
            told: BTreeMap::new(),
            largest_told: 0,
        }
    }

    fn now(&self) -> Now {
        Now { time: Time(self.now_ms), wall: WallTime(self.now_ms) }
    }

    fn step(&mut self) {
        match self.random.below(20) {
            0..=9 => self.take(),
            10..=16 => self.work(),
            17..=18 => {
                self.now_ms += self.random.below(2_000);
                self.state.tick(self.now(), 3);
            }
            _ if self.random.below(10) == 0 => self.crash(),
            _ => self.state.distrust(),
        }
        self.hear();
        invariants::check(self.state.table()).unwrap();
    }

    fn take(&mut self) {
        self.last_ticket += 1;
        let call = call(&mut self.random);
        self.state.take(Ticket(self.last_ticket), call, self.now());
    }

    fn work(&mut self) {
        let Some(work) = self.state.next_work() else { return };
        loop {
            let next = match &work {
                Work::Append(batch) => {
                    let outcome = self.append(batch);
                    self.state.appended(outcome)
                }
                Work::Confirm if self.random.below(4) == 0 => {
                    self.state.confirmed(Confirmation::Unknown("lost".to_owned()))
                }
                Work::Confirm => self.state.confirmed(Confirmation::Current),
            };
            match next {
                Next::Committed(_) | Next::Confirmed => return,
                // What is decided meanwhile goes into the next batch.
                Next::Again(_) => self.take(),
                Next::Stop(reason) => panic!("nobody else is here: {reason}"),
            }
            self.hear();
        }
    }

    fn append(&mut self, batch: &Chained) -> Outcome {
        let lost = || Outcome::Unknown("lost".to_owned());
        if self.random.below(5) == 0 {
            return lost();
        }
        if self.landed.as_ref().is_some_and(|landed| landed == batch) {
            return Outcome::Committed;
        }
        assert_eq!((batch.slot, batch.prev_hash), (self.tail.slot.next(), self.tail.hash));
        for fact in codec::decode_body(&batch.body).unwrap() {
            self.durable.replay(&fact, &mut Vec::new());
        }
        assert_eq!(batch.epoch(), Epoch(self.epoch));
        self.tail = batch.tail();
        self.landed = Some(batch.clone());
        if self.random.below(5) == 0 { lost() } else { Outcome::Committed }
    }

    /// Hears what is told, and checks that it is durable.
    fn hear(&mut self) {
        while let Some(delivery) = self.state.delivery() {
            let Delivery::Reply(_, reply) = delivery else { continue };
            let durable = self.durable.last_token();
            match reply.into_inner() {
                Reply::Granted(grant) => {
                    let token = grant.token.get();
                    assert!(token <= durable, "token {token} was told, {durable} is durable");
                    self.told.insert(grant.lease_id, token);
                    self.largest_told = self.largest_told.max(token);
                }
                Reply::NotGranted(refusal) => {
                    let seen = refusal.holders.iter().map(|holder| holder.token.get()).max();
                    assert!(
                        seen.is_none_or(|seen| seen <= durable),
                        "a refusal told of {seen:?}, {durable} is durable"
                    );
                }
                Reply::Lease(lease) => assert!(lease.token.get() <= durable, "a read told too much"),
                _ => {}
            }
        }
    }

    /// Another node takes over with what is durable; nothing else survives.
    fn crash(&mut self) {
        self.epoch += 1;
        self.landed = None;
        self.state = state(&mut self.random, &self.durable, self.tail, self.epoch, self.now_ms);
        assert!(self.durable.last_token() >= self.largest_told, "tokens do not go back");
        // Whoever was told of a grant finds it, or hears that and how it ended.
        for (lease_id, token) in std::mem::take(&mut self.told) {
            self.last_ticket += 1;
            let ask = Command::Query(Query::Lease(lease_id));
            self.state.take(Ticket(self.last_ticket), with(ask), self.now());
            assert_eq!(self.state.next_work(), Some(Work::Confirm));
            self.state.confirmed(Confirmation::Current);
            let Some(Delivery::Reply(_, reply)) = self.state.delivery() else { panic!("a read is answered") };
            match reply.into_inner() {
                Reply::Lease(lease) => assert_eq!(lease.token.get(), token),
                Reply::Refused(leasehold_core::Refusal::LeaseNotHeld { token: ended, .. }) => {
                    assert_eq!(ended.map(|ended| ended.get()), Some(token));
                }
                other => panic!("{lease_id:?} with token {token} was told and is lost: {other:?}"),
            }
        }
    }

    /// With no more faults everything decided becomes durable, and the two agree.
    fn finish(mut self) {
        while let Some(work) = self.state.next_work() {
            match work {
                Work::Append(batch) => {
                    while !matches!(self.append(&batch), Outcome::Committed) {}
                    self.state.appended(Outcome::Committed);
                }
                Work::Confirm => {
                    self.state.confirmed(Confirmation::Current);
                }
            }
        }
        self.hear();
        assert!(self.state.is_idle());
        invariants::states_are_equal(self.state.table().journaled(), &self.durable).unwrap();
    }
}

fn state(random: &mut Random, durable: &Journaled, tail: Tail, epoch: u64, now_ms: u64) -> State {
    let settings = Settings::on(Durability::Durable);
    let now = Now { time: Time(now_ms), wall: WallTime(now_ms) };
    let table = LockTable::restore(durable.clone(), settings, now);
    // From one fact a batch to many.
    let body_bytes = 1 << random.below(12);
    let limits = Limits {
        body_bytes: usize::try_from(body_bytes).unwrap(),
        chunk_bytes: 1 << 16,
        confirm_is_free: false,
    };
    let nonce = Nonce::from_bytes(u128::from(epoch).to_be_bytes());
    State::new(table, Epoch(epoch), nonce, tail, limits)
}

fn with(command: Command) -> Call {
    Call { tenant: TenantName::default_tenant(), identity: None, key: None, command }
}

fn call(random: &mut Random) -> Call {
    let mut id = [0x40; 16];
    (id[0], id[8]) = (u8::try_from(random.below(24)).unwrap(), 0x80);
    let lease_id = LeaseId::from_bytes(id);
    with(match random.below(10) {
        0..=4 => {
            // An id names one grant of one resource, so the resource follows from the id.
            let resource = ResourceName::new(["a", "b", "c"][usize::from(id[0] % 3)]).unwrap();
            Command::Acquire(Acquire {
                owner: Some(OwnerId::new("someone").unwrap()),
                ttl: Some(Ttl::new(3_000, TtlBounds::default()).unwrap()),
                wait_ms: random.below(2) * 5_000,
                sharing: if id[0] % 2 == 0 { Sharing::Exclusive } else { Sharing::Shared },
                ..Acquire::plain(resource, lease_id)
            })
        }
        5..=6 => {
            let report = RenewalReport::default();
            Command::Renew(Renew { lease_id, ttl: None, report, lists_locks: false })
        }
        7..=8 => Command::Release { lease_id },
        _ => Command::Query(Query::Lease(lease_id)),
    })
}

#[test]
fn whatever_is_told_is_durable_and_survives() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().expect("SEED is a number")],
        Err(_) => (0..150).collect::<Vec<u64>>(),
    };
    for seed in seeds {
        let run = std::panic::catch_unwind(|| {
            let mut world = World::new(seed);
            for _ in 0..400 {
                world.step();
            }
            world.finish();
        });
        assert!(run.is_ok(), "repeat with: SEED={seed} cargo test -p leasehold-node --test random");
    }
}
