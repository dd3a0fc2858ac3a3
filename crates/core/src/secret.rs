//! What the nodes of one journal know and nobody else does.

use std::fmt;

/// The secret that the nodes of a journal share (N7): what one of them passes on is proved with it. Whoever can read the
/// journal, or a backup of it, knows it.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterSecret([u8; 32]);

impl ClusterSecret {
    /// Takes bytes that must have been drawn at random.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Facts are printed when something is wrong with them; this one must not be told even then.
impl fmt::Debug for ClusterSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_not_shown() {
        assert_eq!(format!("{:?}", ClusterSecret::from_bytes([7; 32])), "ClusterSecret(…)");
    }
}
