//! What the core costs in instructions, counted by valgrind: the same on a busy machine as on a quiet one, so that a test
//! can watch it.
//!
//! This program runs itself under `valgrind --tool=callgrind` with and without some work; the difference is what the work
//! costs. Bounds are about a third above what was counted when they were set (9,290, 1,110 and 4,230, with the allocator of the binary): the compiler is pinned,
//! and with the C library kept from AVX2 and AVX-512 the counts differed by less than one in a hundred.

use std::process::Command;

use anyhow::Context as _;
use leasehold_core::{
    Acquire, Command as Ask, Decision, Journaled, LockTable, OpenSession, RenewSession, RenewalReport,
    Request, Settings, Sharing, Ticket, codec,
};
use leasehold_types::{
    Class, Durability, Labels, LeaseId, Now, OwnerId, ResourceName, SessionId, TenantName, Time, Ttl,
    WallTime,
};

/// Locks that are held beside the work.
const BESIDE: u64 = 1_000;
/// Repetitions of the work.
const TIMES: u64 = 1_000;

/// A piece of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Piece {
    /// Nothing: what the rest is compared with
    Nothing,
    /// Decide an acquire and its release, facts applied
    Cycle,
    /// Renew a session
    Renew,
    /// Write down the facts of a cycle and read them back
    Codec,
}

impl Piece {
    /// Instructions for one repetition, at most.
    const fn bound(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Cycle => 12_400,
            Self::Renew => 1_500,
            Self::Codec => 5_600,
        }
    }
}

/// Counts every piece and says what is beyond its bound.
pub(crate) fn check() -> anyhow::Result<Vec<String>> {
    let base = count(Piece::Nothing)?;
    let mut wrong = Vec::new();
    for piece in [Piece::Cycle, Piece::Renew, Piece::Codec] {
        let each = count(piece)?.saturating_sub(base) / TIMES;
        println!("{piece:?}: {each} instructions, at most {}", piece.bound());
        if each == 0 || each > piece.bound() {
            wrong.push(format!("{piece:?} takes {each} instructions, more than {}", piece.bound()));
        }
    }
    Ok(wrong)
}

/// Instructions of this program when it does a piece of work.
fn count(piece: Piece) -> anyhow::Result<u64> {
    let name = format!("{piece:?}").to_lowercase();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe()?)
        .args(["--instructions", &name])
        .output()
        .context("cannot run valgrind, of the Debian package of that name")?;
    let told = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "valgrind: {told}");
    let line =
        told.lines().find_map(|line| line.split_once("Collected :")).context("valgrind tells a count")?;
    line.1.trim().parse().context("a count is a number")
}

/// Does a piece of work.
pub(crate) fn work(piece: Piece) {
    let mut driver = Driver::new();
    let times = if piece == Piece::Nothing { 0 } else { TIMES };
    for number in 0..times {
        match piece {
            Piece::Nothing => {}
            Piece::Cycle => drop(driver.cycle(number)),
            Piece::Renew => driver.renew(),
            Piece::Codec if number == 0 => driver.codec(TIMES),
            Piece::Codec => {}
        }
    }
}

/// A table and what is asked of it.
struct Driver {
    table: LockTable,
    tenant: TenantName,
    asked: u64,
}

impl Driver {
    fn new() -> Self {
        let settings = Settings::on(Durability::Durable);
        let table = LockTable::restore(Journaled::new(), settings, Now::default());
        let mut driver = Self { table, tenant: TenantName::default_tenant(), asked: 0 };
        let owner = OwnerId::new("worker").expect("a short name is valid");
        let ttl = Ttl::from_journal(30_000).expect("more than nothing");
        driver.ask(Ask::OpenSession(OpenSession {
            session_id: session(),
            owner,
            ttl,
            labels: Labels::default(),
        }));
        for number in 0..BESIDE {
            driver.ask(acquire(&format!("held/{number}"), 1 << 32 | number));
        }
        driver
    }

    fn ask(&mut self, command: Ask) -> Decision {
        self.asked += 1;
        let now = Now { time: Time(self.asked / 100), wall: WallTime(1_800_000_000_000 + self.asked / 100) };
        let tenant = self.tenant.clone();
        let request = Request { ticket: Ticket(self.asked), tenant, identity: None, key: None, command };
        self.table.decide(request, now)
    }

    fn cycle(&mut self, number: u64) -> (Decision, Decision) {
        let granted = self.ask(acquire(&format!("cycle/{}", number % 64), number));
        let released = self.ask(Ask::Release { lease_id: lease(number) });
        (granted, released)
    }

    fn renew(&mut self) {
        let report = RenewalReport::default();
        let renew = RenewSession { session_id: session(), ttl: None, seen_ended: Vec::new(), report };
        self.ask(Ask::RenewSession(renew));
    }

    /// The facts of one cycle, again and again.
    fn codec(&mut self, times: u64) {
        let (granted, released) = self.cycle(0);
        for _ in 0..times {
            let mut body = Vec::new();
            codec::begin_body(codec::FORMAT, &mut body);
            for fact in granted.facts.iter().chain(&released.facts) {
                codec::encode_fact(fact, &mut body);
            }
            let read = codec::decode_body(&body).expect("what was just written can be read");
            assert_eq!(read.len(), 2, "a grant and a release");
        }
    }
}

fn acquire(name: &str, number: u64) -> Ask {
    Ask::Acquire(Acquire {
        resource: ResourceName::new(name).expect("a short name is valid"),
        owner: None,
        ttl: None,
        wait_ms: 0,
        sharing: Sharing::Exclusive,
        class: Class::Correctness,
        session: Some(session()),
        renews_session: false,
        lease_id: lease(number),
        lease_id_chosen: true,
        lock_delay_ms: 0,
        max_hold_ms: None,
        labels: Labels::default(),
        value: None,
    })
}

fn session() -> SessionId {
    SessionId::from_bytes([7; 16])
}

/// Ids as far from any order as random ones are.
fn lease(number: u64) -> LeaseId {
    let high = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    LeaseId::from_bytes((u128::from(high) << 64 | u128::from(number)).to_be_bytes())
}
