//! Which trace a call belongs to, as the W3C recommendation writes it.

use std::fmt;

use leasehold_types::ids;

/// The header, and the field of gRPC metadata.
pub const TRACEPARENT: &str = "traceparent";

/// Bytes of a `traceparent` of the first version.
const LENGTH: usize = 55;
/// The flag of a trace that is being recorded.
const SAMPLED: u8 = 1;

/// A span, as others are told of it: which trace, which span, and whether it is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TraceContext {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    sampled: bool,
}

impl TraceContext {
    /// The first span of a new trace.
    pub fn root(sampled: bool) -> Self {
        // Both are never zero: a random UUID has fixed bits in either half.
        let random = ids::random();
        Self { trace_id: ids::random(), span_id: first_half(&random), sampled }
    }

    /// A further span of the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span_id: first_half(&ids::random()), ..*self }
    }

    /// Reads a `traceparent`. What cannot be read is as good as none: a trace is not worth refusing a call for.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        // Later versions may say more after a further dash.
        let known = match bytes.len() {
            LENGTH => true,
            0..LENGTH => false,
            _ => !text.starts_with("00") && bytes[LENGTH] == b'-',
        };
        if !known || [2, 35, 52].iter().any(|place| bytes[*place] != b'-') || text.starts_with("ff") {
            return None;
        }
        hex::<1>(&bytes[..2])?;
        let context = Self {
            trace_id: hex(&bytes[3..35])?,
            span_id: hex(&bytes[36..52])?,
            sampled: hex::<1>(&bytes[53..55])?[0] & SAMPLED != 0,
        };
        (context.trace_id != [0; 16] && context.span_id != [0; 8]).then_some(context)
    }

    /// Whether the trace is recorded.
    pub fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// The trace.
    pub fn trace_id(&self) -> &[u8; 16] {
        &self.trace_id
    }

    /// The span.
    pub fn span_id(&self) -> &[u8; 8] {
        &self.span_id
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("00-")?;
        self.trace_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str("-")?;
        self.span_id.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        write!(f, "-{:02x}", u8::from(self.sampled))
    }
}

fn first_half(random: &[u8; 16]) -> [u8; 8] {
    let mut half = [0; 8];
    half.copy_from_slice(&random[..8]);
    half
}

/// Lower case alone, as the recommendation wants it.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXAMPLE: &str = "00-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-01";

    #[test]
    fn what_is_written_is_read() {
        let context = TraceContext::parse(EXAMPLE).unwrap();
        assert_eq!(context.to_string(), EXAMPLE);
        assert!(context.is_sampled());
        let root = TraceContext::root(false);
        assert_eq!(TraceContext::parse(&root.to_string()), Some(root));
        let child = root.child();
        assert!(child.trace_id() == root.trace_id() && child.span_id() != root.span_id());
    }

    #[test]
    fn what_cannot_be_read_is_no_context() {
        for text in [
            "",
            "00",
            "00-0102030405060708090A0B0C0D0E0F10-a1a2a3a4a5a6a7a8-01",
            "00-00000000000000000000000000000000-a1a2a3a4a5a6a7a8-01",
            "00-0102030405060708090a0b0c0d0e0f10-0000000000000000-01",
            "ff-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-01",
            "00-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-01-more",
            "00-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-0",
            "00-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8_01",
            "0é-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-0",
        ] {
            assert_eq!(TraceContext::parse(text), None, "{text}");
        }
        let later = "01-0102030405060708090a0b0c0d0e0f10-a1a2a3a4a5a6a7a8-00-more";
        assert!(!TraceContext::parse(later).unwrap().is_sampled());
    }
}
