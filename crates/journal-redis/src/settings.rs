//! What the engine's settings mean for a journal (J6).

use std::collections::BTreeMap;

use leasehold_journal::OpenError;

use crate::claim::refuse;
use crate::client::Client;

/// Refuses a Redis that would throw the journal away or cannot take writes, and warns of what makes a loss likely.
///
/// Whatever the settings are, the class is lossy: Redis acknowledges before its replicas have a write.
pub(crate) async fn check(client: &Client) -> Result<(), OpenError> {
    let info: String = client.command("INFO", &["all"]).await.map_err(refuse)?;
    if value(&info, "role") == Some("slave") {
        return Err(OpenError::Unavailable(
            "this Redis is a replica; the journal needs its master".to_owned(),
        ));
    }
    if evicts(&info) {
        let advice = "this Redis evicts keys when it is full; set maxmemory-policy to noeviction";
        return Err(OpenError::Unsuitable(advice.to_owned()));
    }
    let appendfsync = appendfsync(client).await;
    if let Some(weakness) = weakness(&info, appendfsync.as_deref().map_err(String::as_str)) {
        tracing::warn!(weakness, "acknowledged grants can be lost");
    }
    Ok(())
}

/// When the append-only file is synced; or why that cannot be told, for many a user may not ask.
async fn appendfsync(client: &Client) -> Result<String, String> {
    let answer: Result<BTreeMap<String, String>, _> = client.command("CONFIG", &["GET", "appendfsync"]).await;
    let mut settings = answer.map_err(|trouble| trouble.to_string())?;
    settings.remove("appendfsync").ok_or_else(|| "the answer does not have it".to_owned())
}

/// Why a crash of this Redis alone can lose what it acknowledged; `None` if it cannot.
fn weakness(info: &str, appendfsync: Result<&str, &str>) -> Option<String> {
    if value(info, "aof_enabled") != Some("1") {
        return Some(
            "there is no append-only file, so that a crash loses grants; set appendonly to yes".into(),
        );
    }
    let lost = match appendfsync {
        Ok("always") => return None,
        Ok("everysec") => {
            "appendfsync is everysec, so that a power cut loses the last second or two".to_owned()
        }
        Ok(other) => format!("appendfsync is {other}, so that a power cut loses what was not synced yet"),
        Err(why) => {
            return Some(format!(
                "appendfsync could not be read, and unless it is always, a power cut loses grants ({why})"
            ));
        }
    };
    Some(format!("{lost}; set it to always"))
}

fn evicts(info: &str) -> bool {
    let bounded = value(info, "maxmemory").is_some_and(|bytes| bytes != "0");
    bounded && value(info, "maxmemory_policy").is_some_and(|policy| policy != "noeviction")
}

/// The value of a line `name:value`.
fn value<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_file_that_is_always_synced_is_no_weakness() {
        let (with_file, without) = ("aof_enabled:1\r\n", "aof_enabled:0\r\n");
        assert_eq!(weakness(with_file, Ok("always")), None);
        let told = |info, appendfsync| weakness(info, appendfsync).unwrap_or_default();
        assert!(told(with_file, Ok("everysec")).contains("appendfsync is everysec"));
        assert!(told(with_file, Ok("no")).contains("appendfsync is no"));
        assert!(told(with_file, Err("NOPERM")).contains("could not be read"));
        assert!(told(without, Ok("always")).contains("appendonly"));
    }

    #[test]
    fn a_redis_that_evicts_is_told_from_one_that_does_not() {
        let info =
            |memory: &str, policy: &str| format!("maxmemory:{memory}\r\nmaxmemory_policy:{policy}\r\n");
        assert!(evicts(&info("1000", "allkeys-lru")));
        assert!(!evicts(&info("0", "allkeys-lru")));
        assert!(!evicts(&info("1000", "noeviction")));
    }
}
