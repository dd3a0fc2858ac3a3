//! What one acquire and release costs in the table alone, and how much memory a held lock takes.
//!
//! `cargo run --release -p leasehold-core --example cycle`

#![expect(clippy::print_stdout, reason = "a benchmark prints its figures")]

use std::time::Instant;

use leasehold_core::{Acquire, Command, Journaled, LockTable, OpenSession, Reply, Request, Settings, Ticket};
use leasehold_types::{
    Durability, Labels, LeaseId, Now, OwnerId, ResourceName, SessionId, TenantName, Time, Ttl, WallTime,
};

const CYCLES: u64 = 200_000;
const LOCKS_PER_SESSION: u64 = 1_000;

fn main() {
    let before = resident_bytes();
    let (table, _) = held(200_000);
    let bytes = resident_bytes() - before;
    println!(
        "memory: {} B for each of 200,000 held locks, a session per {LOCKS_PER_SESSION}",
        bytes / 200_000
    );
    drop(table);
    for locks in [1_000, 100_000, 1_000_000] {
        let (mut table, mut driver) = held(locks);
        let (fresh, again) = (driver.cycles(&mut table, true), driver.cycles(&mut table, false));
        println!(
            "beside {locks:>9} held: acquire + release {fresh:>6.0} ns on ever new names, {again:>6.0} ns on one, renew {:>5.0} ns",
            driver.renewals(&mut table, locks)
        );
    }
}

/// Asks one command after the other, each a little later.
struct Driver {
    asked: u64,
    tenant: TenantName,
}

/// A table with so many held locks.
fn held(locks: u64) -> (LockTable, Driver) {
    let settings = Settings::on(Durability::Durable);
    let mut table = LockTable::restore(Journaled::new(), settings, Now::default());
    let mut driver = Driver { asked: 0, tenant: TenantName::default_tenant() };
    for number in 0..locks {
        let session = number / LOCKS_PER_SESSION;
        if number % LOCKS_PER_SESSION == 0 {
            driver.ask(&mut table, Command::OpenSession(open(session)));
        }
        let reply = driver.ask(&mut table, acquire(&format!("orders/{number:08}"), number, Some(session)));
        assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    }
    (table, driver)
}

impl Driver {
    fn ask(&mut self, table: &mut LockTable, command: Command) -> Reply {
        self.asked += 1;
        let now =
            Now { time: Time(self.asked / 1_000), wall: WallTime(1_800_000_000_000 + self.asked / 1_000) };
        let (ticket, tenant) = (Ticket(self.asked), self.tenant.clone());
        let mut decision = table.decide(Request { ticket, tenant, identity: None, key: None, command }, now);
        decision.replies.pop().expect("every command here is answered at once").1
    }

    /// Nanoseconds for an acquire and its release.
    fn cycles(&mut self, table: &mut LockTable, ever_new: bool) -> f64 {
        let began = started();
        for cycle in 0..CYCLES {
            let name = format!("jobs/{}", if ever_new { cycle } else { 0 });
            let number = (1 << 40) + self.asked;
            self.ask(table, acquire(&name, number, None));
            let reply = self.ask(table, Command::Release { lease_id: lease(number) });
            assert!(matches!(reply, Reply::Released { .. }), "{reply:?}");
        }
        ns_each(began)
    }

    /// Nanoseconds for the renewal of a session with all its locks.
    fn renewals(&mut self, table: &mut LockTable, locks: u64) -> f64 {
        let began = started();
        for cycle in 0..CYCLES {
            let session_id = session(cycle % (locks / LOCKS_PER_SESSION));
            let renew = leasehold_core::RenewSession {
                session_id,
                ttl: None,
                seen_ended: Vec::new(),
                report: leasehold_core::RenewalReport::default(),
            };
            self.ask(table, Command::RenewSession(renew));
        }
        ns_each(began)
    }
}

fn open(number: u64) -> OpenSession {
    let owner = OwnerId::new(&format!("worker-{number}")).expect("a short name");
    let ttl = Ttl::from_journal(30_000).expect("more than nothing");
    OpenSession { session_id: session(number), owner, ttl, labels: Labels::default() }
}

fn acquire(name: &str, number: u64, in_session: Option<u64>) -> Command {
    let own = in_session.is_none();
    Command::Acquire(Acquire {
        owner: own.then(|| OwnerId::new("worker").expect("a short name")),
        ttl: own.then(|| Ttl::from_journal(15_000).expect("more than nothing")),
        session: in_session.map(session),
        lease_id_chosen: false,
        ..Acquire::plain(ResourceName::new(name).expect("a short name"), lease(number))
    })
}

/// Ids as far from any order as random ones are.
fn scattered(number: u64) -> [u8; 16] {
    let high = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (u128::from(high) << 64 | u128::from(number)).to_be_bytes()
}

fn lease(number: u64) -> LeaseId {
    LeaseId::from_bytes(scattered(number))
}

fn session(number: u64) -> SessionId {
    SessionId::from_bytes(scattered(number))
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
fn started() -> Instant {
    Instant::now()
}

fn ns_each(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e9 / CYCLES as f64
}

/// Resident memory of this process, from the kernel; pages are of 4 KiB.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells its processes' memory");
    let pages = statm.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("the second number is of resident pages") * 4096
}
