//! Numbers as people write them, and words for what is not one.

use std::str::FromStr;

use leasehold_types::FencingToken;

/// Reads digits alone.
pub(crate) fn whole<N: FromStr>(text: &str) -> Result<N, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(number) if is_number => Ok(number),
        _ if is_number => Err(format!("`{text}` is too large")),
        _ => Err(format!("`{text}` is not a whole number")),
    }
}

/// Reads a fencing token.
pub(crate) fn token(text: &str) -> Result<FencingToken, String> {
    FencingToken::new(whole(text)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_told_in_words() {
        assert_eq!(whole::<u32>("7"), Ok(7));
        for text in ["", "x", "-1", "+1", "1.0", "7 "] {
            assert_eq!(whole::<u32>(text), Err(format!("`{text}` is not a whole number")));
        }
        assert_eq!(whole::<u32>("4294967296"), Err("`4294967296` is too large".into()));
        assert!(token("1").is_ok());
        assert!(token("0").unwrap_err().contains("from 1 to 2^53 - 1"));
    }
}
