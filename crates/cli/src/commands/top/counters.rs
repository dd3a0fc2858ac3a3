//! The counters of `/metrics` that the view shows, by prefix.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

/// Counters and where they stand in a row.
const NAMES: [&str; 5] = [
    "lock_acquire_attempts_total",
    "lock_acquire_success_total",
    "lock_acquire_contended_total",
    "lock_renewals_total",
    "lock_expired_total",
];

/// What was counted so far, by prefix.
#[derive(Default, Debug, PartialEq)]
pub(super) struct Counters(BTreeMap<String, [f64; NAMES.len()]>);

/// What happens in one prefix each second.
#[derive(Serialize, Debug, PartialEq)]
#[serde(rename_all = "camelCase")]
pub(super) struct PrefixRates {
    pub(super) prefix: String,
    pub(super) acquires: f64,
    pub(super) grants: f64,
    pub(super) contended: f64,
    pub(super) renewals: f64,
    pub(super) expired: f64,
}

impl PrefixRates {
    /// Whether resources that begin with this may be in the prefix.
    pub(super) fn may_hold(&self, start: &str) -> bool {
        start.starts_with(&self.prefix) || self.prefix.starts_with(start) || self.prefix == "other"
    }
}

impl Counters {
    /// Reads the text format; what is not known is passed over. Modes and tenants of a prefix are added up.
    pub(super) fn read(text: &str) -> Self {
        let mut counters = Self::default();
        for line in text.lines() {
            let Some((name, labels, value)) = parts(line) else { continue };
            let Some(column) = NAMES.iter().position(|known| *known == name) else { continue };
            let (Some(prefix), Ok(value)) = (prefix(labels), value.parse::<f64>()) else { continue };
            counters.0.entry(prefix).or_default()[column] += value;
        }
        counters
    }

    /// Rates since an earlier look, the hottest prefix first. A server that began again counts from 0.
    pub(super) fn since(&self, before: &Self, took: Duration) -> Vec<PrefixRates> {
        let seconds = took.as_secs_f64().max(0.001);
        let rate = |(prefix, now): (&String, &[f64; NAMES.len()])| {
            let zero = [0.0; NAMES.len()];
            let then = before.0.get(prefix).filter(|then| then[0] <= now[0]).unwrap_or(&zero);
            let [acquires, grants, contended, renewals, expired] =
                std::array::from_fn(|column| ((now[column] - then[column]) / seconds).max(0.0));
            PrefixRates { prefix: prefix.clone(), acquires, grants, contended, renewals, expired }
        };
        let mut rates: Vec<PrefixRates> = self.0.iter().map(rate).collect();
        rates.sort_by(|a, b| {
            (b.contended, b.acquires).partial_cmp(&(a.contended, a.acquires)).expect("finite")
        });
        rates
    }
}

/// `name{labels} value`.
fn parts(line: &str) -> Option<(&str, &str, &str)> {
    let (series, value) = line.rsplit_once(' ')?;
    let (name, labels) = series.split_once('{')?;
    Some((name, labels.strip_suffix('}')?, value))
}

/// The value of the label `prefix`, with its escapes undone.
fn prefix(labels: &str) -> Option<String> {
    const LABEL: &str = "prefix=\"";
    let at = labels.find(LABEL)?;
    let mut value = String::new();
    let mut rest = labels[at + LABEL.len()..].chars();
    loop {
        match rest.next()? {
            '"' => return Some(value),
            '\\' => value.push(match rest.next()? {
                'n' => '\n',
                other => other,
            }),
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(billing: u32, contended: u32) -> String {
        format!(
            "# HELP lock_acquire_attempts_total x\n\
             lock_acquire_attempts_total{{tenant=\"default\",prefix=\"billing\",mode=\"exclusive\"}} {billing}\n\
             lock_acquire_attempts_total{{tenant=\"default\",prefix=\"billing\",mode=\"shared\"}} 10\n\
             lock_acquire_attempts_total{{tenant=\"default\",prefix=\"odd\\\"}}\",mode=\"shared\"}} 1\n\
             lock_acquire_contended_total{{tenant=\"default\",prefix=\"billing\",mode=\"exclusive\"}} {contended}\n\
             locks_held 7\n"
        )
    }

    #[test]
    fn rates_are_differences_by_prefix_the_hottest_first() {
        let (before, after) = (Counters::read(&text(100, 0)), Counters::read(&text(300, 50)));
        let rates = after.since(&before, Duration::from_secs(2));
        assert_eq!(rates.len(), 2);
        assert_eq!(
            (rates[0].prefix.as_str(), rates[0].acquires, rates[0].contended),
            ("billing", 100.0, 25.0)
        );
        assert_eq!((rates[1].prefix.as_str(), rates[1].acquires), ("odd\"}", 0.0));
    }

    #[test]
    fn a_server_that_began_again_counts_from_nothing() {
        let (before, after) = (Counters::read(&text(100, 90)), Counters::read(&text(20, 10)));
        let rates = after.since(&before, Duration::from_secs(1));
        assert_eq!((rates[0].acquires, rates[0].contended), (30.0, 10.0));
    }
}
