//! The language of the transcripts.
//!
//! ```text
//! # a comment
//! > acquire a/x owner=w1 ttl=15s lease=L1      a command: its word, what it is about, then name=value in any order
//! = granted a/x to w1: L1 #1 ttl=15s           its answer
//! + granted L1 a/x #1                          a fact that was journaled
//! > acquire a/x owner=w2 ttl=15s wait=30s lease=L2
//! = waits as 2                                 its ticket: number of the command
//! > +16s                                       time passes; the table ticks whenever it wants to
//! + 15.15s expired L1                          what happened meanwhile, and when
//! 2 = granted a/x to w2: L2 #2 ttl=15s         the answer to the command with this ticket
//! ```
//!
//! Commands: `acquire` `renew` `release` `withdraw` `resign` `proclaim` `open` `keep` `close` `force` `recover` · questions: `show` `ls`
//! `explain` `validate` `session` `audit` `verify` · the world: `+DURATION`, `+DURATION late` (ticks at the end
//! only), `+DURATION unnoticed` (no tick),
//! `restart` (snapshot, decode, restore), `snapshot` (S15 is followed from here), `room on|off`, `journal durable|lossy`
//! (from the next restart on). `tenant=` and `key=` go with every command.

mod parse;
mod print;

use crate::support::World;
use leasehold_core::Decision;
use leasehold_types::Durability;
use parse::Line;

/// Runs a transcript and gives it back with the outcomes that really came.
pub(crate) fn tell(name: &str, written: &str) -> String {
    let mut teller = Teller { world: World::new(Durability::Durable), ticket: 0, told: String::new() };
    for (number, line) in written.lines().enumerate() {
        if let Some(command) = line.strip_prefix("> ") {
            teller.line(line);
            teller
                .run(&Line::parse(command).unwrap_or_else(|wrong| panic!("{name}:{}: {wrong}", number + 1)));
        } else if line.is_empty() || line.starts_with('#') {
            teller.line(line);
        }
    }
    teller.told
}

struct Teller {
    world: World,
    ticket: u64,
    told: String,
}

impl Teller {
    fn line(&mut self, line: &str) {
        self.told.push_str(line);
        self.told.push('\n');
    }

    fn run(&mut self, line: &Line<'_>) {
        match line.word {
            "restart" => self.world.restart(100),
            "snapshot" => self.world.take_snapshot(),
            "room" => self.world.table.set_room(line.about() == "on"),
            "journal" => {
                let durability = Durability::parse(line.about()).expect("durable, lossy or volatile");
                self.world.set_durability(durability);
            }
            word if word.starts_with('+') => {
                let ms = parse::duration(&word[1..]).expect("a duration after +");
                match line {
                    line if line.has("late") => self.pass_late(ms),
                    line if line.has("unnoticed") => self.world.clock_ms += ms,
                    _ => self.pass(ms),
                }
            }
            _ => {
                self.ticket += 1;
                let decision = self.world.decide(line.request(self.ticket));
                let waits =
                    line.word == "acquire" && decision.replies.iter().all(|(to, _)| to.0 != self.ticket);
                self.outcome(&decision, None);
                if waits {
                    self.line(&format!("= waits as {}", self.ticket));
                }
            }
        }
    }

    /// Time passes, and the table ticks when it wants to.
    fn pass(&mut self, ms: u64) {
        let until = self.world.clock_ms + ms;
        while let Some(at) = self.world.next_deadline_ms().filter(|at| *at <= until) {
            self.world.clock_ms = self.world.clock_ms.max(at);
            let decision = self.world.tick();
            self.outcome(&decision, Some(self.world.clock_ms));
        }
        self.world.clock_ms = until;
    }

    /// Time passes while the node stands still.
    fn pass_late(&mut self, ms: u64) {
        self.world.clock_ms += ms;
        while self.world.next_deadline_ms().is_some_and(|at| at <= self.world.clock_ms) {
            let decision = self.world.tick();
            self.outcome(&decision, Some(self.world.clock_ms));
        }
    }

    fn outcome(&mut self, decision: &Decision, at_ms: Option<u64>) {
        for (ticket, reply) in &decision.replies {
            let own = ticket.0 == self.ticket && at_ms.is_none();
            let whose = if own { String::new() } else { format!("{} ", ticket.0) };
            for (row, text) in print::reply(reply).into_iter().enumerate() {
                self.line(&if row == 0 { format!("{whose}= {text}") } else { format!("  {text}") });
            }
        }
        for fact in &decision.facts {
            let at = at_ms.map_or(String::new(), |ms| format!("{} ", print::duration(ms)));
            self.line(&format!("+ {at}{}", print::fact(fact)));
        }
    }
}
