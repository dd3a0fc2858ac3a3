//! What can go wrong with one request.

use std::fmt;
use std::time::Duration;

use crate::Seed;

/// What happens to one request, or to its answer. A request is what one `read` of the asker's connection gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request is lost, and its connection with it.
    CutBefore,
    /// The request is forwarded, and its connection is cut without waiting for the answer.
    CutAfter,
    /// The request is carried out; the answer is lost, and its connection with it.
    LoseAnswer,
    /// The request arrives so much later, even if whoever asked has given up by then.
    HoldRequest(Duration),
    /// The answer arrives so much later.
    HoldAnswer(Duration),
    /// Whoever asked reads an end of the connection, while the request goes on its way.
    HalfClose,
    /// The request arrives twice.
    Duplicate,
    /// From here on nothing that is asked on this connection arrives; it stays open.
    SwallowRequests,
    /// From here on no answer arrives on this connection; it stays open.
    SwallowAnswers,
}

impl Fault {
    /// Every kind once, with this long holds.
    pub const fn all(hold: Duration) -> [Self; 9] {
        [
            Self::CutBefore,
            Self::CutAfter,
            Self::LoseAnswer,
            Self::HoldRequest(hold),
            Self::HoldAnswer(hold),
            Self::HalfClose,
            Self::Duplicate,
            Self::SwallowRequests,
            Self::SwallowAnswers,
        ]
    }

    /// The kind in a word, for counts.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CutBefore => "cut-before",
            Self::CutAfter => "cut-after",
            Self::LoseAnswer => "lose-answer",
            Self::HoldRequest(_) => "hold-request",
            Self::HoldAnswer(_) => "hold-answer",
            Self::HalfClose => "half-close",
            Self::Duplicate => "duplicate",
            Self::SwallowRequests => "swallow-requests",
            Self::SwallowAnswers => "swallow-answers",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HoldRequest(time) | Self::HoldAnswer(time) => write!(f, "{} {time:?}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// Faults by chance: one request in so many suffers one of these.
#[derive(Debug, Clone)]
pub(super) struct Chance {
    pub(super) seed: Seed,
    pub(super) one_in: u64,
    pub(super) faults: Vec<Fault>,
}

impl Chance {
    pub(super) fn draw(&mut self) -> Option<Fault> {
        if self.faults.is_empty() || self.seed.below(self.one_in) > 0 {
            return None;
        }
        let index = self.seed.below(self.faults.len() as u64);
        self.faults.get(usize::try_from(index).unwrap_or(0)).copied()
    }
}
