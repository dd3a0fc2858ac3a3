//! What the engine's settings mean for a journal (J6).

use leasehold_journal::OpenError;

use crate::client::Client;

/// Refuses a Redis that would throw the journal away or cannot take writes, and warns of what makes a loss likely.
///
/// Whatever the settings are, the class is lossy: Redis acknowledges before its replicas have a write.
pub(crate) async fn check(client: &Client) -> Result<(), OpenError> {
    let unavailable = |trouble: crate::client::Trouble| OpenError::Unavailable(trouble.to_string());
    let info: String = client.command("INFO", &["all"]).await.map_err(unavailable)?;
    if value(&info, "role") == Some("slave") {
        return Err(OpenError::Unavailable(
            "this Redis is a replica; the journal needs its master".to_owned(),
        ));
    }
    if evicts(&info) {
        let advice = "this Redis evicts keys when it is full; set maxmemory-policy to noeviction";
        return Err(OpenError::Unsuitable(advice.to_owned()));
    }
    if value(&info, "aof_enabled") != Some("1") {
        tracing::warn!("this Redis has no append-only file: a crash loses grants; set appendonly to yes");
    }
    Ok(())
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
    fn a_redis_that_evicts_is_told_from_one_that_does_not() {
        let info =
            |memory: &str, policy: &str| format!("maxmemory:{memory}\r\nmaxmemory_policy:{policy}\r\n");
        assert!(evicts(&info("1000", "allkeys-lru")));
        assert!(!evicts(&info("0", "allkeys-lru")));
        assert!(!evicts(&info("1000", "noeviction")));
    }
}
