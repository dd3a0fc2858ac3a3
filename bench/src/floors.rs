//! The loose floors of the short run: it works, its numbers are numbers, and nothing has become many times slower.

use crate::contestant::Contestant;
use crate::figures::Figures;
use crate::summary::Summary;

/// Leasehold against etcd's Lock service at 64 clients. The goal is 20; a busy machine with debug assertions in its
/// neighbours still gives several times.
const TIMES_ETCD: f64 = 2.0;

/// Says what is wrong.
pub(crate) fn check(figures: &Figures) -> Vec<String> {
    let mut wrong = Vec::new();
    for contest in figures.contests() {
        let (workload, rate) = (contest.workload.name(), |who| contest.of(who).map(Summary::median));
        for (who, summary) in contest.results.iter().filter(|(_, summary)| summary.median() <= 0.0) {
            wrong.push(format!("{workload}: {} got nothing done: {}", who.name(), summary.median()));
        }
        if let (Some(ours), Some(etcd)) = (rate(Contestant::Embedded), rate(Contestant::Etcd))
            && ours < TIMES_ETCD * etcd
        {
            let clients = contest.clients;
            wrong.push(format!(
                "{workload}, {clients} clients: {ours:.0} a second, less than {TIMES_ETCD} times etcd's {etcd:.0}"
            ));
        }
    }
    if figures.contests().next().is_none() {
        wrong.push("nothing was measured".to_owned());
    }
    wrong
}
