//! Every interleaving of a tiny world, to a bounded depth: two sessions, two resources, duplicates of every command, time,
//! a pause of the node, a crash. Breadth first, so that the first failure found is a shortest one; states that were seen
//! before are not gone into again. Every invariant is checked after every step (`support`); here beside it: one grant an
//! id for ever (S7), and two clients never both believe to hold what excludes the other (S10).

#![allow(clippy::unwrap_used, reason = "a test may stop where it stands")]

mod support;

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use leasehold_core::{
    Acquire, Command, Decision, Fact, OpenSession, Renew, RenewSession, RenewalReport, Reply, Request,
    SessionRenewed, Sharing, Ticket,
};
use leasehold_types::{Durability, Labels, LeaseId, OwnerId, ResourceName, SessionId, TenantName, Ttl};

use support::{World, ids};

/// About a hundred thousand transitions: eight seconds of an unoptimised build. `LEASEHOLD_DEPTH=6` has half a million.
const DEPTH: usize = 5;
const TTL_MS: u64 = 10_000;
const WAIT_MS: u64 = 8_000;

/// What can happen next. Clients repeat anything at any time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Action {
    Open(Client),
    Keep(Client),
    Close(Client),
    /// Of the page: the ledger is kept with the session.
    Renew(Client),
    Acquire(Client, Thing),
    Release(Client, Thing),
    /// Time passes, and the table ticks when it wants to.
    Pass,
    /// Longer than a ttl, and the table ticks only then.
    Pause,
    Crash,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Client {
    One,
    Two,
}

/// `Ledger` is taken exclusively, in the client's session. `Page` is taken without one and has a lock delay; the first
/// client wants to read it, the other to write.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Thing {
    Ledger,
    Page,
}

const CLIENTS: [Client; 2] = [Client::One, Client::Two];
const THINGS: [Thing; 2] = [Thing::Ledger, Thing::Page];

fn actions() -> Vec<Action> {
    let mut actions = vec![Action::Pass, Action::Pause, Action::Crash];
    for client in CLIENTS {
        actions.extend([Action::Open(client), Action::Keep(client), Action::Close(client)]);
        actions.push(Action::Renew(client));
        actions.extend(THINGS.map(|thing| Action::Acquire(client, thing)));
        actions.extend(THINGS.map(|thing| Action::Release(client, thing)));
    }
    actions
}

fn session(client: Client) -> SessionId {
    ids::session(&format!("S{client:?}"))
}

fn lease(client: Client, thing: Thing) -> LeaseId {
    ids::lease(&format!("{client:?}{thing:?}"))
}

fn owner(client: Client) -> OwnerId {
    OwnerId::new(&format!("{client:?}")).unwrap()
}

fn ttl() -> Ttl {
    Ttl::from_journal(TTL_MS).unwrap()
}

fn request(ticket: u64, command: Command) -> Request {
    let tenant = TenantName::default_tenant();
    Request { ticket: Ticket(ticket), tenant, identity: None, key: None, command }
}

fn acquire(client: Client, thing: Thing) -> Command {
    let shared = client == Client::One && thing == Thing::Page;
    let alone = thing == Thing::Page;
    Command::Acquire(Acquire {
        owner: alone.then(|| owner(client)),
        ttl: alone.then(ttl),
        wait_ms: WAIT_MS,
        sharing: if shared { Sharing::Shared } else { Sharing::Exclusive },
        session: (!alone).then(|| session(client)),
        lock_delay_ms: if alone { 3_000 } else { 0 },
        ..Acquire::plain(ResourceName::new(&format!("{thing:?}")).unwrap(), lease(client, thing))
    })
}

/// A state of the world and what the clients believe of it.
#[derive(Clone)]
struct State {
    world: World,
    steps: u64,
    granted: BTreeSet<LeaseId>,
    opened: BTreeSet<Client>,
    /// Until when a client counts on holding a thing, from when it last asked.
    believes: BTreeMap<(Client, Thing), u64>,
    path: Vec<Action>,
}

impl State {
    fn new() -> Self {
        Self {
            world: World::new(Durability::Durable),
            steps: 0,
            granted: BTreeSet::new(),
            opened: BTreeSet::new(),
            believes: BTreeMap::new(),
            path: Vec::new(),
        }
    }

    /// The table, volatile part and all, and the beliefs; the way here does not count.
    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{:?} {:?} {}", self.world.table, self.believes, self.world.clock_ms).hash(&mut hasher);
        hasher.finish()
    }

    fn after(&self, action: Action) -> Option<Self> {
        let mut next = self.clone();
        next.path.push(action);
        next.steps += 1;
        let decision = match action {
            Action::Pass => {
                next.pass(4_000);
                return Some(next);
            }
            Action::Pause => {
                next.world.clock_ms += TTL_MS + 2_000;
                next.pass(0);
                return Some(next);
            }
            Action::Crash => {
                next.world.restart(64);
                return Some(next);
            }
            // The server draws session ids: no two openings have the same.
            Action::Open(client) if !next.opened.insert(client) => return None,
            Action::Open(client) => next.ask(open(client)),
            Action::Keep(client) => next.ask(keep(client)),
            Action::Close(client) => {
                next.believes.remove(&(client, Thing::Ledger));
                next.ask(Command::CloseSession { session_id: session(client), by_operator: None })
            }
            Action::Renew(client) => {
                let (lease_id, report) = (lease(client, Thing::Page), RenewalReport::default());
                next.ask(Command::Renew(Renew { lease_id, ttl: None, report, lists_locks: true }))
            }
            Action::Acquire(client, thing) => next.ask(acquire(client, thing)),
            Action::Release(client, thing) => {
                next.believes.remove(&(client, thing));
                next.ask(Command::Release { lease_id: lease(client, thing) })
            }
        };
        next.absorb(&decision);
        Some(next)
    }

    fn ask(&mut self, command: Command) -> Decision {
        self.world.decide(request(self.steps, command))
    }

    fn pass(&mut self, ms: u64) {
        let until = self.world.clock_ms + ms;
        while let Some(at) = self.world.next_deadline_ms().filter(|at| *at <= until) {
            self.world.clock_ms = self.world.clock_ms.max(at);
            let decision = self.world.tick();
            self.absorb(&decision);
        }
        self.world.clock_ms = until;
    }

    fn absorb(&mut self, decision: &Decision) {
        for fact in &decision.facts {
            if let Fact::Granted(granted) = fact {
                assert!(self.granted.insert(granted.lease_id), "S7: granted twice by {:?}", self.path);
            }
        }
        for (_, reply) in &decision.replies {
            match reply {
                Reply::Granted(grant) => self.believe_in(grant.lease_id, grant.ttl_ms),
                Reply::Renewed(renewed) => self.believe_in(renewed.lease_id, renewed.ttl_ms),
                Reply::SessionRenewed(kept) => self.kept(kept),
                _ => {}
            }
        }
    }

    fn believe_in(&mut self, id: LeaseId, ttl_ms: u64) {
        let pairs = CLIENTS.into_iter().flat_map(|client| THINGS.map(|thing| (client, thing)));
        for (client, thing) in pairs.filter(|(client, thing)| lease(*client, *thing) == id) {
            self.believe(client, thing, ttl_ms);
        }
    }

    fn kept(&mut self, kept: &SessionRenewed) {
        for client in CLIENTS.into_iter().filter(|client| session(*client) == kept.session_id) {
            let ended = kept.ended.iter().any(|ended| ended.lease_id == lease(client, Thing::Ledger));
            if self.believes.contains_key(&(client, Thing::Ledger)) && !ended {
                self.believe(client, Thing::Ledger, kept.ttl_ms);
            }
        }
    }

    /// Every pair of these excludes each other: a reader and a writer, or two writers.
    fn believe(&mut self, client: Client, thing: Thing, ttl_ms: u64) {
        let now = self.world.clock_ms;
        let other = if client == Client::One { Client::Two } else { Client::One };
        let theirs = self.believes.get(&(other, thing)).copied().unwrap_or(0);
        assert!(theirs <= now, "S10: both believe in {thing:?} by {:?}", self.path);
        self.believes.insert((client, thing), now + ttl_ms);
    }
}

fn open(client: Client) -> Command {
    Command::OpenSession(OpenSession {
        session_id: session(client),
        owner: owner(client),
        ttl: ttl(),
        labels: Labels::default(),
    })
}

fn keep(client: Client) -> Command {
    let (session_id, report) = (session(client), RenewalReport::default());
    Command::RenewSession(RenewSession { session_id, ttl: None, seen_ended: Vec::new(), report })
}

#[test]
fn every_interleaving_of_a_tiny_world_keeps_the_promises() {
    let depth = std::env::var("LEASEHOLD_DEPTH").map_or(DEPTH, |depth| depth.parse().expect("a depth"));
    // Both have opened their session and asked for the ledger: the shortest interesting beginning.
    let beginning =
        [Action::Open(Client::One), Action::Open(Client::Two), Action::Acquire(Client::One, Thing::Ledger)];
    let begin = beginning.into_iter().fold(State::new(), |state, action| state.after(action).unwrap());
    let mut seen = HashSet::from([begin.fingerprint()]);
    let mut edge = VecDeque::from([begin]);
    let mut transitions = 0_u64;
    while let Some(state) = edge.pop_front() {
        for action in actions() {
            let Some(next) = state.after(action) else { continue };
            transitions += 1;
            if next.path.len() < beginning.len() + depth && seen.insert(next.fingerprint()) {
                edge.push_back(next);
            }
        }
    }
    println!("{transitions} transitions, {} states gone into", seen.len());
    assert!(transitions > 10_000, "the world is too small to show anything");
}
