//! Fencing tokens and permits.

use std::fmt;
use std::num::NonZeroU64;

use crate::limits;

/// A number that grows with every grant, for ever. A protected resource that refuses every number smaller than the
/// largest it has seen cannot be written by a holder whose lease has ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(NonZeroU64);

/// The number cannot be a fencing token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a fencing token: a whole number from 1 to 2^53 - 1")]
pub struct InvalidToken(pub u64);

impl FencingToken {
    /// The token of this number.
    ///
    /// # Errors
    /// 0, or 2^53 and more.
    pub fn new(number: u64) -> Result<Self, InvalidToken> {
        match NonZeroU64::new(number) {
            Some(n) if number <= limits::TOKEN_MAX => Ok(Self(n)),
            _ => Err(InvalidToken(number)),
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Which of a semaphore's places a lease has, counted from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Permit(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_fit_into_json_numbers() {
        assert_eq!(FencingToken::new(0), Err(InvalidToken(0)));
        assert_eq!(FencingToken::new(limits::TOKEN_MAX).map(FencingToken::get), Ok((1 << 53) - 1));
        assert!(FencingToken::new(limits::TOKEN_MAX + 1).is_err());
    }
}
