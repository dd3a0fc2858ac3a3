//! What a writer knows of the journal's end, so that an engine which forgot commits is noticed at once (J9).

use crate::{Outcome, Tail};

/// The end of a journal as its only writer has made it: another end under the same epoch is a loss.
#[derive(Clone, Copy, Debug)]
pub struct OwnTail {
    tail: Tail,
    /// The tail if an append in doubt has happened.
    in_doubt: Option<Tail>,
}

impl OwnTail {
    /// As it was when the journal was opened.
    pub const fn new(tail: Tail) -> Self {
        Self { tail, in_doubt: None }
    }

    /// Notes that a batch is about to be sent that makes this the tail.
    pub fn attempt(&mut self, after: Tail) {
        if after.slot == self.tail.slot.next() {
            self.in_doubt = Some(after);
        }
    }

    /// Notes that a batch is committed, if it was the next one and not one from before that was found.
    pub fn committed(&mut self, after: Tail) {
        if self.in_doubt == Some(after) {
            (self.tail, self.in_doubt) = (after, None);
        }
    }

    /// Whether a tail that the engine shows under our own epoch is one that we have made.
    pub fn is_known(&self, tail: Option<Tail>) -> bool {
        tail == Some(self.tail) || (tail.is_some() && tail == self.in_doubt)
    }
}

/// Our epoch is current, and yet the tail is another: the engine has forgotten commits, in a fail-over of its own or
/// because a copy was restored under it. Says what to do.
pub fn lost(engine: &str) -> Outcome {
    Outcome::Regressed(format!(
        "{engine} has lost acknowledged writes: the tail of the journal is not the one that was committed. If the \
         engine failed over to a copy that was behind, or was restored, stop every node of this cluster and run \
         `leasehold recover` with this node's data directory: it raises all fencing tokens above every one that was \
         given out"
    ))
}

#[cfg(test)]
mod tests {
    use leasehold_types::Slot;

    use super::*;
    use crate::Hash;

    #[test]
    fn only_what_was_made_or_may_have_been_made_is_known() {
        let start = Tail::default();
        let after = Tail { slot: Slot(1), hash: Hash([1; 32]) };
        let mut own = OwnTail::new(start);
        own.attempt(after);
        assert!(own.is_known(Some(start)) && own.is_known(Some(after)), "in doubt it may be either");
        own.committed(after);
        assert!(own.is_known(Some(after)));
        assert!(!own.is_known(Some(start)), "what was committed is not forgotten");
        assert!(!own.is_known(None));
    }
}
