//! The formats of facts and snapshots as committed bytes: they change only on purpose, and old bytes are read for ever.
//! `cargo xtask bless` writes them anew; a changed line of a released format is a break.
//!
//! Each line is a name and bytes in hexadecimal. The facts are one story (`golden_story`), and the snapshot is the state
//! after it, one record a line.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test may stop where it stands, and says how to repeat it"
)]

mod golden_story;
mod support;

use std::collections::BTreeSet;
use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use bytes::Bytes;
use leasehold_core::codec::{self, CodecError, SnapshotDecoder};
use leasehold_core::{ClusterSecret, Fact, Journaled, LockTable, Settings, invariants};
use leasehold_types::{Durability, Epoch, Generation, Now, Time, WallTime};

use golden_story::story;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn body(fact: &Fact) -> Vec<u8> {
    let mut body = Vec::new();
    codec::begin_body(fact.format(), &mut body);
    codec::encode_fact(fact, &mut body);
    body
}

/// The state after the part of the story that was told in this format.
fn state(format: u8) -> Journaled {
    let mut state = Journaled::new();
    for (_, fact) in story().into_iter().take_while(|(_, fact)| fact.format() <= format) {
        state.replay(&fact, &mut Vec::new());
    }
    assert_eq!(state.format(), format);
    state
}

/// The committed lines, after writing them anew if that was asked for.
fn committed(name: &str, head: &str, now: &[(String, Vec<u8>)]) -> Vec<(String, Vec<u8>)> {
    let path = golden(name);
    if std::env::var_os("LEASEHOLD_BLESS").is_some() {
        let lines = now.iter().map(|(name, bytes)| format!("{name} {}\n", hex(bytes)));
        fs::write(&path, format!("# {head}\n") + &lines.collect::<String>()).unwrap();
    }
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(name, bytes)| (name.to_owned(), unhex(bytes)))
        .collect()
}

#[test]
fn facts_have_the_committed_bytes() {
    facts_have_the_bytes_of("facts.txt", 1..=2);
    // A format has a file of its own from here on: one that was released is then never touched again.
    facts_have_the_bytes_of("facts-3.txt", 3..=codec::FORMAT);
}

fn facts_have_the_bytes_of(file: &str, formats: RangeInclusive<u8>) {
    let told: Vec<_> = story().into_iter().filter(|(_, fact)| formats.contains(&fact.format())).collect();
    let now: Vec<_> = told.iter().map(|(name, fact)| ((*name).to_owned(), body(fact))).collect();
    let committed = committed(file, "Bodies of one fact each, in the oldest format that has it.", &now);
    assert_eq!(committed.len(), now.len(), "facts were added or removed");
    for ((name, fact), (golden_name, bytes)) in told.into_iter().zip(committed) {
        assert_eq!(name, golden_name);
        assert_eq!(codec::decode_body(&bytes), Ok(vec![fact.clone()]), "{name} is read as it was written");
        assert_eq!(hex(&body(&fact)), hex(&bytes), "{name} is written as it was");
    }
}

/// What nodes and servers ask of a state before they serve it.
#[test]
fn the_state_after_the_story_answers_for_it() {
    let (begun, told) = (Journaled::new(), state(2));
    assert_eq!((begun.last_token(), told.last_token()), (0, (1 << 40) + 2));
    assert_eq!((begun.generation(), told.generation()), (Generation(1), Generation(2)));
    assert_eq!((begun.recovered_above(), told.recovered_above()), (None, Some(1 << 40)));
    assert_eq!((begun.active(), told.active().map(|active| active.epoch)), (None, Some(Epoch(7))));
    assert_eq!((begun.secret(), told.secret().map(ClusterSecret::as_bytes)), (None, Some(&[7; 32])));
    let counts = told.counts();
    assert_eq!((counts.last_token, counts.generation), (told.last_token(), 2));
    assert_eq!((counts.recovered_above, counts.waiters), (1 << 40, 0));
    let table = LockTable::restore(told.clone(), Settings::on(Durability::Durable), Now::default());
    assert_eq!(table.counts(), counts);
    assert_eq!((begun.counts().leases, begun.counts().sessions), (0, 0));
    assert!(counts.leases > 1 && counts.sessions > 1, "{counts:?}");
    let (none, some) = (begun.credentials(), told.credentials());
    assert_eq!((none.len(), none.is_empty(), none.changes()), (0, true, 0));
    // One was added and revoked since.
    assert_eq!((some.len(), some.is_empty(), some.changes()), (1, false, 3));
}

#[test]
fn a_snapshot_is_given_out_in_chunks_of_the_size_that_was_asked_for() {
    let state = state(2);
    let whole = support::snapshot_chunks(&state, usize::MAX);
    assert_eq!(whole.len(), 1);
    let parts = support::snapshot_chunks(&state, 100);
    assert!(parts.len() > 10, "{} chunks of {} bytes", parts.len(), whole[0].len());
    assert!(parts.iter().all(|part| part.len() <= 100), "an engine takes no longer ones");
    for bytes in [1, 2, 3, 17, 100] {
        invariants::states_are_equal(&support::through_bytes(&state, bytes), &state).unwrap();
    }
    // A record that fills a chunk exactly stands in it; of one that is longer every part but the last says so.
    let records = support::snapshot_records(&state);
    let first = records[0].len();
    assert_eq!(support::snapshot_chunks(&state, first)[0], records[0]);
    let cut = support::snapshot_chunks(&state, first - 1);
    assert_eq!((cut[0].len(), cut[0][0]), (first - 1, 2 | 0x80));
}

#[test]
fn a_record_in_several_chunks_is_refused_without_its_end_or_in_two_formats() {
    let refused = |chunks: &[&[u8]]| {
        let mut decoder = SnapshotDecoder::default();
        let read: Result<Vec<_>, _> = chunks.iter().map(|chunk| decoder.chunk(chunk)).collect();
        read.is_err() || decoder.finish().is_err()
    };
    let whole = support::snapshot_chunks(&state(2), usize::MAX)[0].to_vec();
    let (begin, end) = (whole[1..].split_at(5).0, whole[1..].split_at(5).1);
    let part = |head: u8, bytes: &[u8]| [&[head], bytes].concat();
    assert!(!refused(&[&part(2 | 0x80, begin), &part(2, end)]));
    assert!(!refused(&[&part(2 | 0x80, begin), &part(2 | 0x80, end), &[2]]));
    assert!(refused(&[&part(2 | 0x80, begin), &part(2 | 0x80, end)]));
    assert!(refused(&[&part(2 | 0x80, begin), &part(3, end)]));
    assert!(refused(&[&part(2 | 0x80, begin), &[], &part(2, end)]));
    assert!(refused(&[&part(2 | 0x80, begin)]));
}

#[test]
fn a_body_says_its_format_whether_it_is_known_or_not() {
    for (name, fact) in story() {
        assert_eq!(codec::format_of(&body(&fact)), Some(fact.format()), "{name}");
    }
    assert_eq!(codec::format_of(&[77, 1]), Some(77));
    assert_eq!(codec::format_of(&[]), None);
}

#[test]
fn every_kind_of_fact_is_in_the_story() {
    // The first byte after the format is the kind; kinds are numbered from 1 without gaps.
    let kinds: BTreeSet<u8> = story().iter().map(|(_, fact)| body(fact)[1]).collect();
    let known: BTreeSet<u8> = (1..=u8::MAX).filter(|kind| is_known(*kind)).collect();
    assert_eq!(kinds, known);
}

/// Whether the codec knows this kind: it then complains of what is missing after it.
fn is_known(kind: u8) -> bool {
    let unknown = CodecError::Malformed { at: 2, what: "a kind of fact" };
    codec::decode_body(&[codec::FORMAT, kind]) != Err(unknown)
}

#[test]
fn a_snapshot_has_the_committed_bytes() {
    snapshot_has_the_committed_bytes(1, "snapshot.txt", 8);
    snapshot_has_the_committed_bytes(2, "snapshot-2.txt", RECORDS.len());
    snapshot_has_the_committed_bytes(3, "snapshot-3.txt", RECORDS.len());
}

/// By their numbers.
const RECORDS: [&str; 12] = [
    "end",
    "counters",
    "session",
    "lease",
    "resource",
    "outcome",
    "audit-entry",
    "active",
    "secret",
    "recovered",
    "bound",
    "credential",
];

fn snapshot_has_the_committed_bytes(format: u8, file: &str, kinds: usize) {
    let (names, state) = (&RECORDS[..kinds], state(format));
    let chunks = support::snapshot_records(&state);
    let now: Vec<_> =
        chunks.iter().map(|chunk| (names[usize::from(chunk[1])].to_owned(), chunk.to_vec())).collect();
    let head = format!("The state after the story of the facts, one record a line, format {format}.");
    let committed = committed(file, &head, &now);
    let kinds: BTreeSet<&str> = committed.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(kinds, names.iter().copied().collect(), "a kind of record is not in the story");
    let mut decoder = SnapshotDecoder::default();
    for ((name, bytes), (_, now)) in committed.iter().zip(&now) {
        decoder.chunk(bytes).unwrap();
        assert_eq!(hex(bytes), hex(now), "{name} is written as it was");
    }
    assert_eq!(committed.len(), now.len());
    let read = decoder.finish().unwrap();
    invariants::states_are_equal(&read, &state).unwrap();
    assert_eq!((read.format(), read.secret()), (format, state.secret()));
}

#[test]
fn a_snapshot_that_lacks_a_chunk_or_its_end_is_refused() {
    let chunks = support::snapshot_records(&state(codec::FORMAT));
    for missing in 0..chunks.len() {
        let mut decoder = SnapshotDecoder::default();
        let rest = chunks.iter().enumerate().filter(|(number, _)| *number != missing);
        let read: Result<Vec<_>, _> = rest.map(|(_, chunk)| decoder.chunk(chunk)).collect();
        assert!(read.is_err() || decoder.finish().is_err(), "chunk {missing} was not missed");
    }
}

/// Chunks of one record each, which are taken until one is refused.
fn refused_at(chunks: &[Bytes]) -> Option<(usize, CodecError)> {
    let mut decoder = SnapshotDecoder::default();
    (0..).zip(chunks).find_map(|(number, chunk)| decoder.chunk(chunk).err().map(|error| (number, error)))
}

#[test]
fn a_record_twice_or_out_of_its_order_is_refused_where_it_stands() {
    let chunks = support::snapshot_records(&state(codec::FORMAT));
    assert_eq!(refused_at(&chunks), None);
    // After the format byte comes the kind of the record, or a mark that it is bound to a principal.
    let [session, lease, resource, outcome, audit] = [2, 3, 4, 5, 6];
    let mut tried = BTreeSet::new();
    for number in 1..chunks.len() {
        let kind = chunks[number][1];
        if [session, lease, resource, outcome, audit].contains(&kind) {
            let mut twice = chunks.clone();
            twice.insert(number, chunks[number].clone());
            assert_eq!(refused_at(&twice).map(|(at, _)| at), Some(number + 1), "kind {kind}");
            tried.insert(kind);
        }
        if [lease, resource, audit].contains(&kind) && chunks[number - 1][1] == kind {
            let mut swapped = chunks.clone();
            swapped.swap(number - 1, number);
            assert!(refused_at(&swapped).is_some_and(|(at, _)| at <= number), "kind {kind}");
        }
    }
    assert_eq!(tried.len(), 5);
    let (at, error) = refused_at(&chunks[1..]).unwrap();
    assert_eq!((at, error), (0, CodecError::Malformed { at: 2, what: "the counters first" }));
}

/// The record of a resource with so many endings and lock delays, last used at this time.
fn resource_record(name: &str, used: u8, endings: usize, delays: usize) -> Bytes {
    let key = format!("acme\0{name}");
    let mut record = vec![2, 4, u8::try_from(key.len()).unwrap()];
    record.extend_from_slice(key.as_bytes());
    record.extend([used, u8::try_from(endings).unwrap()]);
    record.extend(unhex("02773204020080a0f1c2b134").repeat(endings));
    record.push(u8::try_from(delays).unwrap());
    record.extend([1, 100, 0].repeat(delays));
    record.into()
}

#[test]
fn a_resource_is_remembered_for_something_and_was_used_at_a_time_of_its_own() {
    let counters = support::snapshot_records(&state(2))[0].clone();
    let refused = |records: &[Bytes]| {
        let chunks = [std::slice::from_ref(&counters), records].concat();
        refused_at(&chunks).map(|(at, _)| at)
    };
    let (ended, delayed) = (resource_record("a", 7, 1, 0), resource_record("b", 0, 0, 1));
    let lawful = [ended.clone(), delayed, resource_record("c", 0, 0, 2), resource_record("d", 8, 2, 1)];
    assert_eq!(refused(&lawful), None);
    for (used, endings, delays) in [(0, 0, 0), (7, 0, 1), (0, 1, 0), (0, 1, 1), (100, 1, 0)] {
        let spoilt = resource_record("a", used, endings, delays);
        assert_eq!(refused(&[spoilt]), Some(1), "used {used}, {endings} endings, {delays} delays");
    }
    assert_eq!(refused(&[ended, resource_record("b", 7, 1, 0)]), Some(2), "both at one time");
}

#[test]
fn a_session_does_not_live_and_end_and_a_key_is_used_once() {
    let chunks = support::snapshot_records(&state(2));
    let id = |name| support::ids::session(name).as_bytes().to_vec();
    for (kind, from, to) in
        [("session", id("S3"), id("S1")), ("key", b"key of a close".to_vec(), b"key of another".to_vec())]
    {
        let is_there = |chunk: &Bytes| chunk[1] == 5 && chunk.windows(from.len()).any(|part| part == from);
        let place = chunks.iter().position(is_there).unwrap();
        let at = chunks[place].windows(from.len()).position(|part| part == from).unwrap();
        let mut record = chunks[place].to_vec();
        record.splice(at..at + from.len(), to);
        let mut spoilt = chunks.clone();
        spoilt[place] = record.into();
        assert_eq!(refused_at(&spoilt).map(|(at, _)| at), Some(place), "{kind}");
    }
}

#[test]
fn records_of_the_second_format_have_no_place_in_a_snapshot_of_the_first() {
    let old = support::snapshot_records(&state(1));
    let new = support::snapshot_records(&state(2));
    for kind in [8, 9, 11] {
        let mut record = new.iter().find(|chunk| chunk[1] == kind).unwrap().to_vec();
        record[0] = 1;
        let (at, error) = refused_at(&[old[0].clone(), record.into()]).unwrap();
        assert_eq!((at, error), (1, CodecError::Malformed { at: 2, what: "a kind of record" }));
    }
}

#[test]
fn a_newer_format_is_named() {
    assert_eq!(codec::decode_body(&[codec::FORMAT + 1]), Err(CodecError::TooNew(codec::FORMAT + 1)));
    let mut decoder = SnapshotDecoder::default();
    assert_eq!(decoder.chunk(&[codec::FORMAT + 1]), Err(CodecError::TooNew(codec::FORMAT + 1)));
}

/// A small generator of numbers, the same on every machine.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % bound
    }

    /// Changes bytes in one of the ways in which bytes go wrong.
    fn spoil(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len().max(1));
            match self.below(5) {
                0 => bytes.truncate(at),
                1 if at < bytes.len() => bytes[at] ^= 1 << self.below(8),
                2 if at < bytes.len() => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][self.below(5)],
                3 => bytes.insert(at, u8::try_from(self.below(256)).unwrap()),
                _ => bytes.extend_from_within(at.min(bytes.len())..),
            }
        }
    }
}

/// The same in every test run, which must not pass or fail by chance; others by hand.
fn seed() -> u64 {
    let chosen = std::env::var("LEASEHOLD_SEED").ok().map(|seed| seed.parse().expect("a seed is a number"));
    chosen.unwrap_or(14_142)
}

/// Runs with a seed that is printed if it panics.
fn with_seed(test: impl Fn(&mut Numbers)) {
    let seed = seed();
    println!("repeat: LEASEHOLD_SEED={seed} cargo test -p leasehold-core --test golden");
    test(&mut Numbers(seed));
}

#[test]
fn spoilt_facts_never_panic() {
    let bodies: Vec<_> = story().iter().map(|(_, fact)| body(fact)).collect();
    with_seed(|numbers| {
        for _ in 0..50_000 {
            let mut bytes = bodies[numbers.below(bodies.len())].clone();
            numbers.spoil(&mut bytes);
            if let Ok(facts) = codec::decode_body(&bytes) {
                let again: Vec<_> = facts.iter().flat_map(|fact| body(fact)[1..].to_vec()).collect();
                // In the format that it was read in: one that is raised must be that of its body.
                let read = codec::decode_body(&[&bytes[..1], &again[..]].concat());
                assert_eq!(read, Ok(facts), "what was read can be written");
            }
        }
    });
}

#[test]
fn spoilt_snapshots_are_refused_or_can_be_served_but_never_panic() {
    let chunks = support::snapshot_records(&state(codec::FORMAT));
    with_seed(|numbers| {
        for _ in 0..20_000 {
            let mut chunks: Vec<_> = chunks.iter().map(|chunk| chunk.to_vec()).collect();
            match numbers.below(4) {
                0 => {
                    let (one, other) = (numbers.below(chunks.len()), numbers.below(chunks.len()));
                    chunks.swap(one, other);
                }
                1 => {
                    let (from, to) = (numbers.below(chunks.len()), numbers.below(chunks.len()));
                    chunks[to] = chunks[from].clone();
                }
                _ => {
                    let spoilt = numbers.below(chunks.len());
                    numbers.spoil(&mut chunks[spoilt]);
                }
            }
            let mut decoder = SnapshotDecoder::default();
            if chunks.iter().all(|chunk| decoder.chunk(chunk).is_ok())
                && let Ok(state) = decoder.finish()
            {
                serve(state);
            }
        }
    });
}

/// A state that was read can be written again, and every deadline in it can come.
fn serve(state: Journaled) {
    let again = support::through_bytes(&state, 64);
    invariants::states_are_equal(&state, &again).unwrap();
    let at = |ms| Now { time: Time(ms), wall: WallTime(ms) };
    let mut table = LockTable::restore(state, Settings::on(Durability::Durable), at(0));
    for _ in 0..100 {
        let Some(next) = table.next_deadline() else { break };
        table.tick(at(next.0), 10);
    }
}
