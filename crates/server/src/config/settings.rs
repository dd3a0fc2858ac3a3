//! Every setting as documentation: the table of docs/reference/configuration.md is made from this list.

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// In the file.
    pub key: &'static str,
    /// In the environment.
    pub env: &'static str,
    /// When nothing is written.
    pub default: &'static str,
    /// What it does, and why the default is what it is.
    pub what: &'static str,
}

macro_rules! settings {
    ($($key:literal, $env:literal, $default:literal, $what:literal;)+) => {
        /// Every setting, in the order of the file.
        pub const SETTINGS: &[Setting] =
            &[$(Setting { key: $key, env: $env, default: $default, what: $what }),+];
    };
}

settings! {
    "listen", "LEASEHOLD_LISTEN", "127.0.0.1:7420",
        "Address and port. Another than a loopback address is refused without `insecure`: callers are not authenticated.";
    "data", "LEASEHOLD_DATA", "./leasehold-data",
        "The data directory: the embedded journal, and the witness that notices a journal that went back.";
    "insecure", "LEASEHOLD_INSECURE", "false",
        "Serve an address that others can reach although everybody who reaches it may do everything.";
    "node", "LEASEHOLD_NODE", "the host name",
        "The node's name in status and logs.";
    "advertise", "LEASEHOLD_ADVERTISE", "`http://` and the address listened on",
        "The URL under which others reach this node; shown in status.";
    "allowed_hosts", "LEASEHOLD_ALLOWED_HOSTS", "none",
        "Names that the `Host` header may have besides loopback names. Anything else is refused, so that a web page cannot reach the server under a name of its own.";
    "log", "LEASEHOLD_LOG", "info",
        "Which log lines are written: `error`, `warn`, `info`, `debug`, or directives such as `warn,leasehold=debug`.";
    "cluster", "LEASEHOLD_CLUSTER", "main",
        "The name that tells clusters on one engine apart: 1 to 48 of a-z, 0-9, `-`, `_`, `.`. The embedded journal needs none.";
    "accept_correctness_locks_on_lossy_journal", "LEASEHOLD_ACCEPT_CORRECTNESS_LOCKS_ON_LOSSY_JOURNAL", "false",
        "Grant correctness locks on a journal that can lose acknowledged grants, instead of refusing them with `class_not_supported`. They answer `guarantee: best_effort`: after a loss a token may be given twice.";
    "journal.kind", "LEASEHOLD_JOURNAL", "embedded",
        "Where the state lives: `embedded` in the data directory, or on `postgres`, `etcd`, `zookeeper`, `redis`. The variable and `--journal` have the URL, which names the kind.";
    "journal.url", "LEASEHOLD_JOURNAL", "none",
        "Where the engine is: `postgres://user@host/database`, `etcd://host1,host2`, `zookeeper://host1,host2`, `redis://host`. A password is better in the file that its parameter `password_file` names, or in `LEASEHOLD_JOURNAL_PASSWORD`, than in the URL; it is never logged.";
    "limits.ttl_min", "LEASEHOLD_TTL_MIN", "1s",
        "Shortest ttl. Below a second, ordinary scheduling pauses end leases.";
    "limits.ttl_max", "LEASEHOLD_TTL_MAX", "1h",
        "Longest ttl: a dead holder blocks everybody for this long. At most 24h.";
    "limits.wait_max", "LEASEHOLD_WAIT_MAX", "10m",
        "Longest wait of one acquire. At most 24h.";
    "limits.body_bytes", "LEASEHOLD_BODY_BYTES", "65536",
        "Largest body of a request: many times what the largest lawful request needs. At most 1 MiB.";
    "limits.connections", "LEASEHOLD_CONNECTIONS", "10000",
        "Connections at the same time; one more is answered with `overloaded` and closed.";
    "limits.watchers", "LEASEHOLD_WATCHERS", "1000",
        "Event streams at the same time; each is told every event, so they are what a busy server can least afford.";
}

/// The settings as a table in Markdown.
pub fn settings_table() -> String {
    let mut table = String::from("| key | environment | default | what |\n|---|---|---|---|\n");
    for Setting { key, env, default, what } in SETTINGS {
        table.push_str(&format!("| `{key}` | `{env}` | {default} | {what} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{JournalUrl, RawConfig, RawJournal, RawLimits, WrittenDuration};

    /// Every field is named here without `..`, so that a new setting does not compile before it is in this test.
    fn everything() -> RawConfig {
        let duration = Some(WrittenDuration(std::time::Duration::from_secs(1)));
        RawConfig {
            listen: Some(String::new()),
            data: Some("d".into()),
            insecure: Some(true),
            node: Some(String::new()),
            advertise: Some(String::new()),
            allowed_hosts: Some(Vec::new()),
            log: Some(String::new()),
            cluster: Some(String::new()),
            accept_correctness_locks_on_lossy_journal: Some(true),
            journal: Some(RawJournal::Etcd { url: JournalUrl(String::new()) }),
            limits: RawLimits {
                ttl_min: duration,
                ttl_max: duration,
                wait_max: duration,
                body_bytes: Some(1),
                connections: Some(1),
                watchers: Some(1),
            },
        }
    }

    fn keys(table: &toml::Table, prefix: &str, into: &mut BTreeSet<String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => keys(inner, &format!("{prefix}{key}."), into),
                _ => drop(into.insert(format!("{prefix}{key}"))),
            }
        }
    }

    #[test]
    fn every_setting_is_documented_and_every_documented_one_exists() {
        let mut written = BTreeSet::new();
        keys(&toml::Table::try_from(everything()).unwrap(), "", &mut written);
        let documented: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect();
        assert_eq!(written, documented);
    }

    #[test]
    fn every_variable_is_read() {
        for setting in SETTINGS {
            let value = match setting.key {
                "insecure" | "accept_correctness_locks_on_lossy_journal" => "true",
                "journal.kind" | "journal.url" => "embedded",
                key if key.starts_with("limits.t")
                    || key.starts_with("limits.wait") && !key.contains("watchers") =>
                {
                    "1s"
                }
                _ => "1",
            };
            let env = |name: &str| (name == setting.env).then(|| value.to_owned());
            assert_ne!(RawConfig::from_env(env).unwrap(), RawConfig::default(), "{}", setting.env);
        }
    }

    #[test]
    fn the_reference_page_has_the_table() {
        let page = include_str!("../../../../docs/reference/configuration.md");
        assert!(
            page.contains(&settings_table()),
            "put this into docs/reference/configuration.md:\n{}",
            settings_table()
        );
    }
}
