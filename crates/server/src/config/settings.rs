//! Every setting as documentation: the table of docs/reference/configuration.md is made from this list.

use super::ConfigError;

/// What the variables of all settings begin with.
const PREFIX: &str = "LEASEHOLD_";

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// In the file.
    pub key: &'static str,
    /// In the environment; empty where it has no variable.
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
        "Address and port. One that others can reach wants `auth` and `tls`, or `insecure`.";
    "data", "LEASEHOLD_DATA", "./leasehold-data",
        "The data directory: the embedded journal, and the witness that notices a journal that went back.";
    "insecure", "LEASEHOLD_INSECURE", "false",
        "Serve an address that others can reach without authentication or without TLS: whoever reaches it may listen in, or do everything.";
    "auth", "LEASEHOLD_AUTH", "true, but false on a loopback address and with `insecure`",
        "Callers must show who they are: a credential, or a client certificate. The first credential is written to `admin-credential` in the data directory.";
    "node", "LEASEHOLD_NODE", "the host name",
        "The node's name in status and logs.";
    "advertise", "LEASEHOLD_ADVERTISE", "`http://` and the address listened on",
        "The URL under which others reach this node; shown in status.";
    "allowed_hosts", "LEASEHOLD_ALLOWED_HOSTS", "none",
        "Names that the `Host` header may have besides loopback names. Anything else is refused, so that a web page cannot reach the server under a name of its own.";
    "log", "LEASEHOLD_LOG", "info",
        "Which log lines are written: `error`, `warn`, `info`, `debug`, or directives such as `warn,leasehold=debug`.";
    "metrics", "LEASEHOLD_METRICS", "true",
        "Count what happens to locks, for `/metrics`. `false` leaves the counters of locks and commits at 0; it is there to measure what counting costs (`cargo xtask figures metrics`).";
    "cluster", "LEASEHOLD_CLUSTER", "main",
        "The name that tells clusters on one engine apart: 1 to 48 of a-z, 0-9, `-`, `_`, `.`. The embedded journal needs none.";
    "accept_correctness_locks_on_lossy_journal", "LEASEHOLD_ACCEPT_CORRECTNESS_LOCKS_ON_LOSSY_JOURNAL", "false",
        "Grant correctness locks on a journal that can lose acknowledged grants, instead of refusing them with `class_not_supported`. They answer `guarantee: best_effort`: after a loss a token may be given twice.";
    "journal.kind", "LEASEHOLD_JOURNAL", "embedded",
        "Where the state lives: `embedded` in the data directory, or on `postgres`, `etcd`, `zookeeper`, `redis`. The variable and `--journal` have the URL, which names the kind.";
    "journal.url", "LEASEHOLD_JOURNAL", "none",
        "Where the engine is: `postgres://user@host/database`, `etcd://host1,host2`, `zookeeper://host1,host2`, `redis://host`. A password is better in the file that its parameter `password_file` names, or in `LEASEHOLD_JOURNAL_PASSWORD`, than in the URL; it is never logged.";
    "undeclared", "LEASEHOLD_UNDECLARED", "allow",
        "What becomes of acquires of names that no policy declares: `allow`, `warn` (the grant carries a warning), `refuse`.";
    "signing_keys", "LEASEHOLD_SIGNING_KEYS", "none",
        "A file of keys that grants are signed with, for fences that do not trust a plain number: one key a line, `ID` and 64 hexadecimal digits; the first one signs. Read again on SIGHUP. All nodes have the same.";
    "tls.cert", "LEASEHOLD_TLS_CERT", "none",
        "The server's certificate chain, as PEM. Certificate and key are read again on SIGHUP and when the files change; connections stay.";
    "tls.key", "LEASEHOLD_TLS_KEY", "none",
        "Its private key, as PEM.";
    "tls.client_ca", "LEASEHOLD_TLS_CLIENT_CA", "none",
        "Authorities, as PEM, whose client certificates are accepted: callers are then known by an alternative name of their certificate, where a credential was created for it.";
    "tls.peer_ca", "LEASEHOLD_TLS_PEER_CA", "`tls.client_ca`, else the server's own chain",
        "Authorities, as PEM, of the other nodes' certificates, for requests that are passed on to the active node.";
    "traces.endpoint", "LEASEHOLD_TRACES_ENDPOINT", "none: no traces",
        "A collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`: requests are then traced through the node to the journal's commit. See [traces](../operating/traces.md).";
    "traces.ratio", "LEASEHOLD_TRACES_RATIO", "1",
        "The part of the requests without a trace of their own for which one is begun, from 0 to 1. A request that comes with a `traceparent` is recorded if that one is.";
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
    "tenants.NAME.locks", "", "none",
        "Live leases of the tenant NAME; one more is refused with `quota_exceeded`. Write `tenants.\"*\"` for every tenant that is not named.";
    "tenants.NAME.sessions", "", "none",
        "Live sessions.";
    "tenants.NAME.waiters", "", "none",
        "Waiting acquires.";
    "tenants.NAME.watchers", "", "none",
        "Event streams.";
    "tenants.NAME.bytes", "", "none",
        "Bytes of names, labels and values of live leases and sessions.";
    "tenants.NAME.rate", "", "none",
        "Acquires, session openings and questions in a second, above which they are refused with `rate_limited`; as many may come at once. Renewals and releases are never held up.";
    "policies", "", "none",
        "A list of tables with `prefix`, and any of `description`, `ttl` (of acquires that ask for none), `class` (of acquires that ask for none; others are refused), `fence` (the kind of fence that guards what these locks protect; grants then say `fenced`). The longest prefix counts.";
}

/// Refuses a variable that is no setting and is nearly the name of one: left alone, a setting would silently not be made.
/// Others that begin with `LEASEHOLD_` are those of clients and of tests.
///
/// # Errors
/// Names the variable, and the one that was probably meant.
pub fn check_variables(names: impl IntoIterator<Item = String>) -> Result<(), ConfigError> {
    for name in names {
        let Some(written) = name.strip_prefix(PREFIX) else { continue };
        let known = SETTINGS.iter().filter_map(|setting| setting.env.strip_prefix(PREFIX));
        let nearest = known.map(|known| (strsim::osa_distance(written, known), known)).min();
        if let Some((distance @ 1..=2, meant)) = nearest
            && 2 * distance < meant.len()
        {
            let detail = format!("is not a setting; {PREFIX}{meant} is, and probably meant");
            return Err(ConfigError::new(name, detail));
        }
    }
    Ok(())
}

/// The settings as a table in Markdown.
pub fn settings_table() -> String {
    let mut table = String::from("| key | environment | default | what |\n|---|---|---|---|\n");
    for Setting { key, env, default, what } in SETTINGS {
        let env = if env.is_empty() { "in the file alone".to_owned() } else { format!("`{env}`") };
        table.push_str(&format!("| `{key}` | {env} | {default} | {what} |\n"));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{
        JournalUrl, RawConfig, RawJournal, RawLimits, RawPolicy, RawTenant, RawTls, RawTraces, Undeclared,
        WrittenDuration,
    };

    /// Every field is named here without `..`, so that a new setting does not compile before it is in this test.
    fn everything() -> RawConfig {
        let duration = Some(WrittenDuration(std::time::Duration::from_secs(1)));
        RawConfig {
            listen: Some(String::new()),
            data: Some("d".into()),
            insecure: Some(true),
            auth: Some(true),
            undeclared: Some(Undeclared::Warn),
            signing_keys: Some("s".into()),
            tls: RawTls {
                cert: Some("c".into()),
                key: Some("k".into()),
                client_ca: Some("a".into()),
                peer_ca: Some("p".into()),
            },
            traces: RawTraces { endpoint: Some("e".into()), ratio: Some(1.0) },
            tenants: [("NAME".to_owned(), tenant())].into(),
            policies: vec![RawPolicy::default()],
            node: Some(String::new()),
            advertise: Some(String::new()),
            allowed_hosts: Some(Vec::new()),
            log: Some(String::new()),
            metrics: Some(true),
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

    fn tenant() -> RawTenant {
        RawTenant {
            locks: Some(1),
            sessions: Some(1),
            waiters: Some(1),
            watchers: Some(1),
            bytes: Some(1),
            rate: Some(1),
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
        for setting in SETTINGS.iter().filter(|setting| !setting.env.is_empty()) {
            let value = match setting.key {
                "undeclared" => "warn",
                "insecure" | "auth" | "metrics" | "accept_correctness_locks_on_lossy_journal" => "true",
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
    fn a_variable_that_is_nearly_a_setting_is_refused_and_others_are_left_alone() {
        let check = |name: &str| check_variables([name.to_owned()]);
        for (written, meant) in [
            ("LEASEHOLD_LISTN", "LEASEHOLD_LISTEN"),
            ("LEASEHOLD_LITSEN", "LEASEHOLD_LISTEN"),
            ("LEASEHOLD_TLS_CRT", "LEASEHOLD_TLS_CERT"),
            ("LEASEHOLD_JOURNALS", "LEASEHOLD_JOURNAL"),
            ("LEASEHOLD_LOGS", "LEASEHOLD_LOG"),
        ] {
            let error = check(written).unwrap_err();
            assert!(error.setting == written && error.detail.contains(&format!("{meant} is")), "{error}");
        }
        // What clients, commands under a lease and tests use.
        for other in [
            "SERVER",
            "CREDENTIAL",
            "CREDENTIAL_FILE",
            "CA",
            "CERT",
            "KEY",
            "LEASE_ID",
            "RESOURCE",
            "OWNER_ID",
            "EXPIRES_AT",
            "FENCING_TOKEN",
            "SIGNED_TOKEN",
            "LOST",
            "DRILL",
            "FENCE_ROLLOUT",
            "FENCE_STATE",
            "JOURNAL_PASSWORD",
            "SEED",
            "STRICT",
            "SECONDS",
            "BIN",
            "TTL",
            "PORT",
            "EVENTS",
            "CALLS",
            "ROUNDS",
        ] {
            check(&format!("{PREFIX}{other}")).unwrap();
        }
        for setting in SETTINGS {
            check(setting.env).unwrap();
        }
        check("PATH").unwrap();
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

    #[test]
    fn the_files_of_the_reference_page_are_lawful_and_the_first_names_every_key() {
        let page = include_str!("../../../../docs/reference/configuration.md");
        let files = page.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```"));
        let files: Vec<_> = files.map(|(file, _)| file).collect();
        for file in &files {
            RawConfig::from_toml(file).unwrap();
        }
        let first = files[0];
        RawConfig::from_toml(first).unwrap().resolve().unwrap();
        let named: Vec<_> = first.lines().map(|line| line.trim_start_matches("# ")).collect();
        for Setting { key, .. } in SETTINGS {
            let (table, key) = key.rsplit_once('.').unwrap_or(("", key));
            let is_below = table.starts_with("tenants") || key == "policies";
            let is_named = named.iter().any(|line| line.starts_with(&format!("{key} = ")));
            assert!(is_named || is_below, "{key} is not in the file");
        }
    }
}
