//! The loose floors of the short run: it works, its numbers are numbers, and nothing has become many times slower.

use crate::contest::Figures;
use crate::engines::Contestant;

/// Leasehold against etcd's Lock service at 64 clients. The goal is 20; a busy machine with debug assertions in its
/// neighbours still gives several times.
const TIMES_ETCD: f64 = 2.0;

/// Says what is wrong.
pub(crate) fn check(figures: &Figures) -> Vec<String> {
    let mut wrong = Vec::new();
    for (workload, clients, rounds) in &figures.contests {
        let rate = |who: Contestant| rounds.iter().find(|(other, _)| *other == who).map(|(_, r)| r.median());
        for (who, rounds) in rounds.iter().filter(|(_, rounds)| rounds.median() <= 0.0) {
            wrong.push(format!("{}: {} got nothing done: {}", workload.name(), who.name(), rounds.median()));
        }
        if let (Some(ours), Some(etcd)) = (rate(Contestant::Embedded), rate(Contestant::Etcd))
            && ours < TIMES_ETCD * etcd
        {
            wrong.push(format!(
                "{}, {clients} clients: {ours:.0} a second, less than {TIMES_ETCD} times etcd's {etcd:.0}",
                workload.name()
            ));
        }
    }
    if figures.contests.is_empty() {
        wrong.push("nothing was measured".to_owned());
    }
    wrong
}
