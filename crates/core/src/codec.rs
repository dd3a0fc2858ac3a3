//! Versioned bytes of facts and snapshots.
use bytes::Bytes;

use crate::fact::Fact;
use crate::journaled::Journaled;

/// The format that this version writes. It reads this one and every older one.
pub const FORMAT: u8 = 1;

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

/// Begins the body of a batch: the format byte. Facts are then added with [`encode_fact`].
pub fn begin_body(out: &mut Vec<u8>) {
    out.push(FORMAT);
}

/// Adds one fact to a body.
pub fn encode_fact(fact: &Fact, out: &mut Vec<u8>) {
    let _ = (fact, out);
    todo!()
}

/// Reads every fact of a body.
///
/// # Errors
/// See [`CodecError`].
pub fn decode_body(body: &[u8]) -> Result<Vec<Fact>, CodecError> {
    let _ = body;
    todo!()
}

/// Writes the journaled part as chunks of about `chunk_bytes`, each of whole records, in a canonical order: the same
/// state always gives the same bytes.
///
/// # Errors
/// Those of `sink`.
pub fn encode_snapshot<E>(
    state: &Journaled,
    chunk_bytes: usize,
    sink: &mut dyn FnMut(Bytes) -> Result<(), E>,
) -> Result<(), E> {
    let _ = (state, chunk_bytes, sink);
    todo!()
}

/// Builds the journaled part again from chunks.
#[derive(Debug, Default)]
pub struct SnapshotDecoder {}

impl SnapshotDecoder {
    /// Takes the next chunk, in order.
    ///
    /// # Errors
    /// See [`CodecError`].
    pub fn chunk(&mut self, bytes: &[u8]) -> Result<(), CodecError> {
        let _ = bytes;
        todo!()
    }

    /// The state, once the last chunk was taken.
    ///
    /// # Errors
    /// See [`CodecError`]; also when the end is missing.
    pub fn finish(self) -> Result<Journaled, CodecError> {
        todo!()
    }
}
