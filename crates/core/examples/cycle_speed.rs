//! How long the table takes to decide an acquire and its release, as a busy server asks it: a batch of acquires by many
//! callers, then their releases, under random ids and beside as many remembered outcomes as a tenant may have. Between two batches
//! a few megabytes are read, since on a server the caches are not the loop's alone.
//!
//! `cargo run --release -p leasehold-core --example cycle_speed`
#![allow(clippy::print_stdout, reason = "this is what it is for")]
#![expect(clippy::disallowed_methods, reason = "it measures real time")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use leasehold_core::{Acquire, Command, Decision, Journaled, LockTable, Request, Settings, Ticket};
use leasehold_types::ids::random;
use leasehold_types::{Durability, LeaseId, Now, OwnerId, ResourceName, TenantName, Time, Ttl, WallTime};

/// Batches that are not counted: after them as much is remembered as ever is.
const WARM_UP: usize = 120_000;
/// Batches that are.
const COUNTED: usize = 200_000;
/// What others use of the caches between two batches.
const OTHERS: usize = 4 << 20;

fn main() {
    println!("µs for an acquire and its release");
    for (callers, names) in [(64, 64), (64, 1_000), (256, 64), (256, 1_000)] {
        let mut table = Table::new();
        let mut others = vec![1u8; OTHERS];
        let mut spent = Duration::ZERO;
        for batch in 0..(WARM_UP + COUNTED) / callers {
            let took = table.batch(callers, batch % names);
            if batch >= WARM_UP / callers {
                spent += took;
            }
            others.iter_mut().step_by(64).for_each(|byte| *byte = byte.wrapping_add(1));
            black_box(&others);
        }
        let each = spent.as_secs_f64() * 1e6 / COUNTED as f64;
        println!("{callers:>5} callers, {names:>5} names each: {each:.2}");
    }
}

struct Table {
    table: LockTable,
    owner: OwnerId,
    decision: Decision,
    asked: u64,
}

impl Table {
    fn new() -> Self {
        let settings = Settings::on(Durability::Durable);
        let table = LockTable::restore(Journaled::new(), settings, Now::default());
        let owner = OwnerId::new("worker").expect("a short name is valid");
        Self { table, owner, decision: Decision::default(), asked: 0 }
    }

    /// Everybody acquires its name of this number, then everybody releases it; how long the deciding took.
    fn batch(&mut self, callers: usize, name: usize) -> Duration {
        let ids: Vec<_> = (0..callers).map(|_| LeaseId::from_bytes(random())).collect();
        let acquires = ids.iter().enumerate().map(|(caller, id)| self.acquire(caller, name, *id)).collect();
        let releases = ids.iter().map(|id| Command::Release { lease_id: *id }).collect();
        self.ask(acquires) + self.ask(releases)
    }

    fn acquire(&self, caller: usize, name: usize, lease_id: LeaseId) -> Command {
        let resource = ResourceName::new(&format!("cycle/{caller}/{name}")).expect("a short name is valid");
        Command::Acquire(Acquire {
            owner: Some(self.owner.clone()),
            ttl: Some(Ttl::from_journal(30_000).expect("more than nothing")),
            ..Acquire::plain(resource, lease_id)
        })
    }

    fn ask(&mut self, commands: Vec<Command>) -> Duration {
        let began = Instant::now();
        for command in commands {
            self.asked += 1;
            let now =
                Now { time: Time(self.asked / 100), wall: WallTime(1_800_000_000_000 + self.asked / 100) };
            let tenant = TenantName::default_tenant();
            let request = Request { ticket: Ticket(self.asked), tenant, identity: None, key: None, command };
            self.table.decide_into(request, now, &mut self.decision);
            assert_eq!(self.decision.facts.len(), 1, "a grant, or a release");
            black_box(&self.decision);
            self.decision.facts.clear();
            self.decision.replies.clear();
            self.decision.events.clear();
        }
        began.elapsed()
    }
}
