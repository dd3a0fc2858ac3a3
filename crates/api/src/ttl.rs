//! Durations of requests.

/// A request has both `ttlMs` and `ttlSeconds`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give ttlMs or ttlSeconds, not both")]
pub struct BothTtls;

/// The ttl that a request asks for, in milliseconds; `None` when it asks for none.
///
/// # Errors
/// Both fields are there.
pub fn asked_ttl_ms(ttl_ms: Option<u64>, ttl_seconds: Option<u64>) -> Result<Option<u64>, BothTtls> {
    match (ttl_ms, ttl_seconds) {
        (Some(_), Some(_)) => Err(BothTtls),
        (Some(ms), None) => Ok(Some(ms)),
        (None, Some(seconds)) => Ok(Some(seconds.saturating_mul(1_000))),
        (None, None) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ttl_is_asked_for_in_one_unit() {
        assert_eq!(asked_ttl_ms(None, None), Ok(None));
        assert_eq!(asked_ttl_ms(Some(1_500), None), Ok(Some(1_500)));
        assert_eq!(asked_ttl_ms(None, Some(15)), Ok(Some(15_000)));
        assert_eq!(asked_ttl_ms(None, Some(u64::MAX)), Ok(Some(u64::MAX)));
        assert_eq!(asked_ttl_ms(Some(1), Some(1)), Err(BothTtls));
    }
}
