//! Who waits for which answer.
//!
//! A request has a place from the moment it is asked until its caller has its answer. Answers find it by its number:
//! numbers grow in the order of asking, and the low bits of one are its place, so that nothing is searched. A number
//! whose place is taken is left out. Nothing here wakes or drops a caller: that is done by whoever holds the lock around
//! this, after letting go of it.

use std::task::Waker;

use leasehold_proto::v1 as pb;
use leasehold_proto::v1::answer::Outcome;
use leasehold_proto::v1::request::Ask;

use super::SessionEnd;
use crate::deadline::{Stamp, ms};

/// Places at first: a power of two, as ever after.
const FIRST_PLACES: usize = 64;

/// What came of a request.
pub(crate) type Told = Result<Answered, SessionEnd>;

/// An answer.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Answered {
    pub(crate) outcome: Outcome,
    /// A keep-alive of the session was confirmed with it.
    pub(crate) is_confirmed: bool,
}

/// A caller and how long it waits.
pub(super) struct Caller {
    pub(super) waker: Waker,
    pub(super) deadline: Stamp,
}

/// A request that was not answered yet.
struct Asked {
    request: pb::Request,
    /// Until when an acquire waits in the queue: asked again, it waits only for the rest.
    wait_until: Option<Stamp>,
    /// Nobody waits for the answer of a background release.
    caller: Option<Caller>,
}

enum Place {
    Asked(Asked),
    /// The caller of this number has not taken its answer yet.
    Told(u64, Told),
}

/// See the module.
#[derive(Default)]
pub(super) struct Places {
    /// The newest number.
    newest: u64,
    /// As many as a power of two, of which at least half are free.
    places: Vec<Option<Place>>,
    taken: usize,
    /// Acquires that may wait in a queue, and are not answered yet.
    waiting: usize,
    /// No caller's deadline is before this; `None`: nobody's deadline is watched.
    soonest: Option<Stamp>,
}

impl Places {
    /// How many have asked and have not taken their answer.
    pub(super) fn len(&self) -> usize {
        self.taken
    }

    /// Gives the request its number and its place, and a look at the form in which it is sent.
    pub(super) fn ask(
        &mut self,
        ask: Ask,
        wait_until: Option<Stamp>,
        caller: Option<Caller>,
    ) -> &pb::Request {
        let index = self.next_place();
        self.taken += 1;
        self.waiting += usize::from(wait_until.is_some());
        let request = pb::Request { id: self.newest, ask: Some(ask) };
        match self.places[index].insert(Place::Asked(Asked { request, wait_until, caller })) {
            Place::Asked(asked) => &asked.request,
            Place::Told(..) => unreachable!("it was just asked"),
        }
    }

    /// The place of the next number, which is then the newest.
    fn next_place(&mut self) -> usize {
        if 2 * self.taken >= self.places.len() {
            self.grow();
        }
        loop {
            self.newest += 1;
            let index = self.index(self.newest);
            if self.places[index].is_none() {
                return index;
            }
        }
    }

    /// Twice as many places; two numbers that had different ones still have.
    fn grow(&mut self) {
        let size = FIRST_PLACES.max(2 * self.places.len());
        let before =
            std::mem::replace(&mut self.places, std::iter::repeat_with(|| None).take(size).collect());
        for place in before.into_iter().flatten() {
            let index = self.index(place.number());
            self.places[index] = Some(place);
        }
    }

    /// The answer of this number, once it is there; its place is free then.
    pub(super) fn take(&mut self, number: u64) -> Option<Told> {
        match self.place(number)? {
            Place::Asked(_) => None,
            Place::Told(..) => match self.free(number) {
                Some(Place::Told(_, told)) => Some(told),
                _ => unreachable!("it was just looked at"),
            },
        }
    }

    /// The caller of this number goes on waiting; gives the waker that is of no use any more.
    pub(super) fn wait_on(&mut self, number: u64, caller: Caller) -> Option<Waker> {
        match self.place(number)? {
            Place::Asked(asked) => asked.caller.replace(caller).map(|before| before.waker),
            Place::Told(..) => Some(caller.waker),
        }
    }

    /// Nobody waits for this answer any more; what is given back is to be dropped without the lock.
    pub(super) fn forget(&mut self, number: u64) -> Option<impl Sized + use<>> {
        self.place(number)?;
        self.free(number)
    }

    /// Keeps an answer for its caller, who is to be woken.
    pub(super) fn answer(&mut self, number: u64, answered: Answered) -> Option<Waker> {
        let place = self.place(number)?;
        match place {
            Place::Asked(Asked { caller: None, .. }) => {
                self.free(number);
                None
            }
            Place::Asked(asked) => {
                let (caller, waited) = (asked.caller.take(), asked.wait_until.is_some());
                *place = Place::Told(number, Ok(answered));
                self.waiting -= usize::from(waited);
                caller.map(|caller| caller.waker)
            }
            Place::Told(..) => None,
        }
    }

    /// The session is over, for everybody who waits; they are to be woken.
    pub(super) fn end(&mut self, end: &SessionEnd) -> Vec<Waker> {
        let mut waiting = Vec::new();
        self.waiting = 0;
        for place in &mut self.places {
            let Some(Place::Asked(asked)) = place else { continue };
            let (number, caller) = (asked.request.id, asked.caller.take());
            self.taken -= usize::from(caller.is_none());
            *place = caller.map(|caller| {
                waiting.push(caller.waker);
                Place::Told(number, Err(end.clone()))
            });
        }
        waiting
    }

    /// Everything that was not answered, in the order in which it was asked. A wait is shorter by what has passed.
    pub(super) fn unanswered(&self, now: Stamp) -> Vec<pb::Request> {
        let mut requests: Vec<_> = self.asked().map(|asked| asked.again(now)).collect();
        requests.sort_unstable_by_key(|request| request.id);
        requests
    }

    /// Whether an acquire that is not answered yet may be granted by what somebody else does.
    pub(super) fn is_anybody_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// A deadline is to be watched; says whether it is earlier than all before.
    pub(super) fn watch(&mut self, deadline: Stamp) -> bool {
        let is_earlier = self.soonest.is_none_or(|soonest| deadline < soonest);
        if is_earlier {
            self.soonest = Some(deadline);
        }
        is_earlier
    }

    /// When to look for callers that have waited long enough.
    pub(super) fn soonest(&self) -> Option<Stamp> {
        self.soonest
    }

    /// Callers that have waited long enough by now; they are to be woken, and find that out themselves.
    pub(super) fn late(&mut self, now: Stamp) -> Vec<Waker> {
        if self.taken == 0 {
            self.soonest = None;
        }
        if self.soonest.is_none_or(|soonest| now < soonest) {
            return Vec::new();
        }
        let callers = self.asked().filter_map(|asked| asked.caller.as_ref());
        let (late, in_time): (Vec<_>, Vec<_>) = callers.partition(|caller| caller.deadline <= now);
        let soonest = in_time.iter().map(|caller| caller.deadline).min();
        let late = late.into_iter().map(|caller| caller.waker.clone()).collect();
        self.soonest = soonest;
        late
    }

    fn asked(&self) -> impl Iterator<Item = &Asked> {
        self.places.iter().filter_map(|place| match place {
            Some(Place::Asked(asked)) => Some(asked),
            Some(Place::Told(..)) | None => None,
        })
    }

    /// The place of this number, unless somebody else has it by now.
    fn place(&mut self, number: u64) -> Option<&mut Place> {
        let index = self.index(number);
        self.places.get_mut(index)?.as_mut().filter(|place| place.number() == number)
    }

    /// Empties the place of a number that has one.
    fn free(&mut self, number: u64) -> Option<Place> {
        let index = self.index(number);
        self.taken -= 1;
        let place = self.places[index].take();
        if let Some(Place::Asked(Asked { wait_until: Some(_), .. })) = place {
            self.waiting -= 1;
        }
        place
    }

    fn index(&self, number: u64) -> usize {
        number as usize & self.places.len().wrapping_sub(1)
    }
}

impl Place {
    fn number(&self) -> u64 {
        match self {
            Self::Asked(asked) => asked.request.id,
            Self::Told(number, _) => *number,
        }
    }
}

impl Asked {
    fn again(&self, now: Stamp) -> pb::Request {
        let mut request = self.request.clone();
        if let (Some(Ask::Acquire(acquire)), Some(until)) = (&mut request.ask, self.wait_until) {
            acquire.wait_ms = acquire.wait_ms.min(ms(until.since(now)));
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn asked(places: &mut Places, deadline: Option<Stamp>) -> u64 {
        let caller = deadline.map(|deadline| Caller { waker: Waker::noop().clone(), deadline });
        places.ask(Ask::Release(pb::StreamRelease::default()), None, caller).id
    }

    fn released(token: u64) -> Answered {
        let outcome = Outcome::Released(pb::StreamReleased { fencing_token: token });
        Answered { outcome, is_confirmed: false }
    }

    const fn at(ms: u64) -> Stamp {
        Stamp(Duration::from_millis(ms))
    }

    #[test]
    fn an_answer_finds_its_caller_and_no_other() {
        let mut places = Places::default();
        let [first, second] = [1, 2].map(|_| asked(&mut places, Some(at(9))));
        assert!(places.take(first).is_none());
        assert!(places.answer(first, released(1)).is_some());
        assert!(places.answer(first, released(2)).is_none(), "it has its answer");
        assert_eq!(places.take(first), Some(Ok(released(1))));
        assert!(places.forget(second).is_some());
        let next = (0..FIRST_PLACES).map(|_| {
            let next = asked(&mut places, Some(at(9)));
            assert!(places.answer(second, released(3)).is_none(), "its place is another's by now, or free");
            assert!(places.take(next).is_none());
            assert!(places.forget(next).is_some());
            next
        });
        assert!(next.last() > Some(second + FIRST_PLACES as u64 / 2));
    }

    #[test]
    fn one_that_waits_long_keeps_its_place_while_others_come_and_go() {
        let mut places = Places::default();
        let first = asked(&mut places, Some(at(9)));
        let mut last = first;
        for _ in 0..10 * FIRST_PLACES {
            let next = asked(&mut places, Some(at(9)));
            assert!(next > last, "in the order of asking");
            last = next;
            assert!(places.answer(next, released(next)).is_some());
            assert_eq!(places.take(next), Some(Ok(released(next))));
        }
        assert_eq!(places.places.len(), FIRST_PLACES);
        let many: Vec<_> = (0..1_000).map(|_| asked(&mut places, Some(at(9)))).collect();
        assert_eq!(places.unanswered(at(0)).len(), 1_001);
        for number in many.into_iter().chain([first]) {
            assert!(places.answer(number, released(number)).is_some());
            assert_eq!(places.take(number), Some(Ok(released(number))));
        }
        assert_eq!(places.taken, 0);
    }

    #[test]
    fn what_nobody_waits_for_is_done_with_its_answer() {
        let mut places = Places::default();
        let release = asked(&mut places, None);
        assert_eq!(places.unanswered(at(0)).len(), 1);
        assert!(places.answer(release, released(1)).is_none());
        assert_eq!(places.taken, 0);
    }

    #[test]
    fn what_was_not_answered_is_asked_again_in_order_and_waits_for_the_rest() {
        let mut places = Places::default();
        let first = asked(&mut places, Some(at(9)));
        let second = asked(&mut places, Some(at(9)));
        places.answer(first, released(1));
        places.take(first);
        let acquire = Ask::Acquire(pb::StreamAcquire { wait_ms: 900, ..pb::StreamAcquire::default() });
        let third = places.ask(acquire, Some(at(1_000)), None).id;
        let again = places.unanswered(at(400));
        assert_eq!(again.iter().map(|request| request.id).collect::<Vec<_>>(), [second, third]);
        assert!(matches!(&again[1].ask, Some(Ask::Acquire(acquire)) if acquire.wait_ms == 600));
    }

    #[test]
    fn it_is_known_whether_anybody_waits() {
        let mut places = Places::default();
        let waiting = |places: &mut Places| {
            let caller = Caller { waker: Waker::noop().clone(), deadline: at(9) };
            places.ask(Ask::Acquire(pb::StreamAcquire::default()), Some(at(9)), Some(caller)).id
        };
        asked(&mut places, Some(at(9)));
        assert!(!places.is_anybody_waiting());
        let [first, second, _] = [1, 2, 3].map(|_| waiting(&mut places));
        assert!(places.answer(first, released(1)).is_some() && places.answer(first, released(1)).is_none());
        assert!(places.take(first).is_some() && places.forget(second).is_some());
        assert!(places.is_anybody_waiting(), "the third");
        places.end(&SessionEnd::Ended);
        assert!(!places.is_anybody_waiting());
    }

    #[test]
    fn whoever_has_waited_long_enough_is_found() {
        let mut places = Places::default();
        for deadline in [30, 10, 20] {
            asked(&mut places, Some(at(deadline)));
        }
        assert!(places.watch(at(30)) && places.watch(at(10)) && !places.watch(at(20)));
        assert!(places.late(at(9)).is_empty());
        assert_eq!(places.late(at(20)).len(), 2);
        assert_eq!(places.soonest(), Some(at(30)));
    }

    #[test]
    fn the_end_is_told_to_everybody_who_waits() {
        let mut places = Places::default();
        let (waiting, _) = (asked(&mut places, Some(at(9))), asked(&mut places, None));
        assert_eq!(places.end(&SessionEnd::Ended).len(), 1);
        assert!(places.unanswered(at(0)).is_empty());
        assert_eq!(places.take(waiting), Some(Err(SessionEnd::Ended)));
        assert_eq!(places.taken, 0);
    }
}
