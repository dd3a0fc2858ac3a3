//! Idempotency keys.

use leasehold_types::{RequestKey, ResourceName};

/// The key under which another service is asked to do this operation on this resource: always the same, whichever grant
/// asks. Send the token beside it, in a header of its own.
///
/// ```
/// use leasehold_fence::effects::idempotency_key;
/// use leasehold_types::{RequestKey, ResourceName};
///
/// let (books, invoice) = (ResourceName::new("books/2026")?, RequestKey::new("invoice 17")?);
/// assert_eq!(idempotency_key(&books, &invoice), idempotency_key(&books, &invoice));
/// assert_ne!(idempotency_key(&books, &invoice), idempotency_key(&books, &RequestKey::new("invoice 18")?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn idempotency_key(resource: &ResourceName, operation: &RequestKey) -> RequestKey {
    // Neither part has a NUL, so that no two pairs are the same bytes.
    let hash =
        blake3::derive_key("leasehold idempotency key 1", format!("{resource}\0{operation}").as_bytes());
    let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    RequestKey::new(&format!("lh-{text}")).expect("67 printable characters")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are remembered by others: they must never change.
    #[test]
    fn a_key_is_the_same_for_ever() {
        let (resource, operation) = (ResourceName::new("r").unwrap(), RequestKey::new("o").unwrap());
        let key = idempotency_key(&resource, &operation);
        assert_eq!(key.as_str(), "lh-ca63a13f1017a63c5acc2fa19f54df62e671d2afec39fc6146f3413dd2a84712");
    }
}
