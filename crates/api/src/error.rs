//! The closed list of error codes.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)?) => {
        /// Why a call failed. The list is closed, alphabetical and stable: clients match on it.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant),+
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The code as it stands on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The code with this spelling.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

codes! {
    /// The request is not one that the service understands.
    BadRequest = "bad_request",
    /// A correctness lock on a journal that can lose tokens.
    ClassNotSupported = "class_not_supported",
    /// The caller may not do this, or a web page of another origin tried to.
    Forbidden = "forbidden",
    /// The same lease id or key with another command.
    IdempotencyMismatch = "idempotency_mismatch",
    /// The lease or session has ended, or nobody knows it.
    LeaseNotHeld = "lease_not_held",
    /// The path has no such method; `Allow` lists those it has.
    MethodNotAllowed = "method_not_allowed",
    /// This node may not decide, and cannot reach the one that may.
    NotActive = "not_active",
    /// No such path, lease or session.
    NotFound = "not_found",
    /// It may or may not have happened: ask again with the same lease id or key.
    OutcomeUnknown = "outcome_unknown",
    /// Too much is asked of the node at once.
    Overloaded = "overloaded",
    /// A quota of the tenant is used up.
    QuotaExceeded = "quota_exceeded",
    /// The tenant asks too often.
    RateLimited = "rate_limited",
    /// The token is not that of a present holder.
    StaleToken = "stale_token",
    /// The journal is out of reach or full; nothing has happened.
    StoreUnavailable = "store_unavailable",
    /// The body is larger than the server reads.
    TooLarge = "too_large",
    /// No credential, or not a valid one.
    Unauthenticated = "unauthenticated",
    /// The body is not `application/json`.
    UnsupportedMediaType = "unsupported_media_type",
}

impl ErrorCode {
    /// The HTTP status.
    pub const fn http_status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::StaleToken => 409,
            Self::LeaseNotHeld => 410,
            Self::ClassNotSupported => 412,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::IdempotencyMismatch => 422,
            Self::QuotaExceeded | Self::RateLimited => 429,
            Self::NotActive | Self::OutcomeUnknown | Self::Overloaded | Self::StoreUnavailable => 503,
        }
    }

    /// The number of the gRPC status.
    pub const fn grpc_status(self) -> u32 {
        const UNKNOWN: u32 = 2;
        const INVALID_ARGUMENT: u32 = 3;
        const NOT_FOUND: u32 = 5;
        const ALREADY_EXISTS: u32 = 6;
        const PERMISSION_DENIED: u32 = 7;
        const RESOURCE_EXHAUSTED: u32 = 8;
        const FAILED_PRECONDITION: u32 = 9;
        const UNIMPLEMENTED: u32 = 12;
        const UNAVAILABLE: u32 = 14;
        const UNAUTHENTICATED: u32 = 16;
        match self {
            Self::BadRequest | Self::UnsupportedMediaType => INVALID_ARGUMENT,
            Self::ClassNotSupported | Self::LeaseNotHeld | Self::StaleToken => FAILED_PRECONDITION,
            Self::Forbidden => PERMISSION_DENIED,
            Self::IdempotencyMismatch => ALREADY_EXISTS,
            Self::MethodNotAllowed => UNIMPLEMENTED,
            Self::NotActive | Self::Overloaded | Self::StoreUnavailable => UNAVAILABLE,
            Self::NotFound => NOT_FOUND,
            Self::OutcomeUnknown => UNKNOWN,
            Self::QuotaExceeded | Self::RateLimited | Self::TooLarge => RESOURCE_EXHAUSTED,
            Self::Unauthenticated => UNAUTHENTICATED,
        }
    }

    /// Whether the same request, with the same lease id or key, may succeed later.
    pub const fn is_retryable(self) -> bool {
        match self {
            Self::NotActive
            | Self::OutcomeUnknown
            | Self::Overloaded
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::StoreUnavailable => true,
            Self::BadRequest
            | Self::ClassNotSupported
            | Self::Forbidden
            | Self::IdempotencyMismatch
            | Self::LeaseNotHeld
            | Self::MethodNotAllowed
            | Self::NotFound
            | Self::StaleToken
            | Self::TooLarge
            | Self::Unauthenticated
            | Self::UnsupportedMediaType => false,
        }
    }

    /// Whether nothing has happened for sure.
    pub const fn has_no_side_effects(self) -> bool {
        match self {
            Self::OutcomeUnknown => false,
            Self::BadRequest
            | Self::ClassNotSupported
            | Self::Forbidden
            | Self::IdempotencyMismatch
            | Self::LeaseNotHeld
            | Self::MethodNotAllowed
            | Self::NotActive
            | Self::NotFound
            | Self::Overloaded
            | Self::QuotaExceeded
            | Self::RateLimited
            | Self::StaleToken
            | Self::StoreUnavailable
            | Self::TooLarge
            | Self::Unauthenticated
            | Self::UnsupportedMediaType => true,
        }
    }

    /// The same few words for every problem with this code.
    pub const fn title(self) -> &'static str {
        match self {
            Self::BadRequest => "the request is not understood",
            Self::ClassNotSupported => "the journal cannot keep what a correctness lock needs",
            Self::Forbidden => "not allowed",
            Self::IdempotencyMismatch => "the same id or key was used for another request",
            Self::LeaseNotHeld => "the lease is not held",
            Self::MethodNotAllowed => "the path has no such method",
            Self::NotActive => "this node is not the active one",
            Self::NotFound => "not found",
            Self::OutcomeUnknown => "it may or may not have happened",
            Self::Overloaded => "the node is overloaded",
            Self::QuotaExceeded => "a quota is used up",
            Self::RateLimited => "asked too often",
            Self::StaleToken => "not the token of a present holder",
            Self::StoreUnavailable => "the journal does not take writes",
            Self::TooLarge => "the body is too large",
            Self::Unauthenticated => "no valid credential",
            Self::UnsupportedMediaType => "the body is not application/json",
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl serde::Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> serde::Deserialize<'de> for ErrorCode {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom(format!("unknown error code `{text}`")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_alphabetical_and_read_as_it_is_written() {
        assert!(ErrorCode::ALL.windows(2).all(|two| two[0].as_str() < two[1].as_str()));
        assert!(ErrorCode::ALL.iter().all(|code| ErrorCode::parse(code.as_str()) == Some(*code)));
    }

    #[test]
    fn only_an_unknown_outcome_can_have_happened_and_it_may_be_asked_again() {
        for &code in ErrorCode::ALL {
            assert_eq!(code.has_no_side_effects(), code != ErrorCode::OutcomeUnknown, "{code}");
            assert_eq!(code.is_retryable(), matches!(code.http_status(), 429 | 503), "{code}");
        }
    }
}
