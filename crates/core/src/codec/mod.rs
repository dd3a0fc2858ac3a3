//! Versioned bytes of facts and snapshots. Numbers are LEB128, texts are length-prefixed, options and variants begin
//! with one byte. A format once released is read for ever: golden files hold it.

mod bytes;
mod facts;
mod snapshot;

pub use snapshot::{SnapshotDecoder, encode_snapshot};

pub(crate) use self::bytes::{Decoder, Encoder};
use crate::fact::Fact;

/// The newest format that this version knows. It reads this one and every older one, and writes the one that the journal
/// has (N10): see [`Journaled::format`](crate::Journaled::format).
pub const FORMAT: u8 = 3;
/// The format of a journal in which no fact says another.
pub const FIRST_FORMAT: u8 = 1;

/// Why bytes cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// Written by a newer version.
    #[error("format {0} is newer than this version knows ({FORMAT})")]
    TooNew(u8),
    /// Not what this code writes.
    #[error("malformed at byte {at}: {what}")]
    Malformed {
        /// Where.
        at: usize,
        /// What was expected.
        what: &'static str,
    },
}

/// Begins the body of a batch: the format byte. Facts of this format or an older one are then added with
/// [`encode_fact`].
pub fn begin_body(format: u8, out: &mut Vec<u8>) {
    out.push(format);
}

/// The format of a body or of a chunk of a snapshot, whether this version knows it or not.
pub fn format_of(bytes: &[u8]) -> Option<u8> {
    bytes.first().copied()
}

/// Adds one fact to a body.
pub fn encode_fact(fact: &Fact, out: &mut Vec<u8>) {
    let mut encoder = Encoder::over(std::mem::take(out));
    encoder.fact(fact);
    *out = encoder.into_bytes();
}

/// Reads every fact of a body.
///
/// # Errors
/// See [`CodecError`].
pub fn decode_body(body: &[u8]) -> Result<Vec<Fact>, CodecError> {
    let mut decoder = Decoder::new(body)?;
    let mut facts = Vec::new();
    while !decoder.is_at_end() {
        facts.push(decoder.fact()?);
    }
    Ok(facts)
}
