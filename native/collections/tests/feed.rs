//! The changes of documents: complete and in order, from every position, as long as the log has
//! them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rillbase_collections::{CollectionFeed, CollectionWrite, Error, ScanPlan};
use rillbase_documents::id::key;
use rillbase_documents::operation::DocumentOperation;
use rillbase_engine::vfs::SeededRandom;
use rillbase_engine::{Durability, KeyspaceOptions, Sequence, WriteBatch};
use rillbase_query::bson::{Value, ValueRef};
use rillbase_query::ejson::parse_document;

use crate::opened::{OpenedCollections, definition, index, write_of};

const RETAINED: u64 = 64 << 20;
const COLLECTIONS: [u64; 2] = [1, 2];
const IDS: u64 = 8;

fn opened(retained_log_bytes: u64) -> OpenedCollections {
    let opened = OpenedCollections::retaining(retained_log_bytes);
    for number in COLLECTIONS {
        let indexes = vec![
            index(1, "by n", &[("n", 1)], false),
            index(2, "by code", &[("code", 1)], true),
        ];
        let definition = definition(1, indexes);
        opened.collections.define(number, definition).unwrap();
    }
    opened
}

fn insert(id: i32, text: &str) -> DocumentOperation {
    let document = format!("{{\"_id\":{id},\"n\":1,\"code\":{id},\"text\":\"{text}\"}}");
    let document = parse_document(document.as_bytes()).unwrap();
    DocumentOperation::insert(document.as_ref(), ValueRef::Null).unwrap()
}

fn delete(id: i32) -> DocumentOperation {
    DocumentOperation::delete(Value::Int32(id)).unwrap()
}

/// A write of collection 1, which must succeed.
fn write(opened: &OpenedCollections, operations: Vec<DocumentOperation>, atomic: bool) {
    let operations = operations.into_iter().map(|operation| (1, operation));
    let write = write_of(&[1], 1, operations.collect(), atomic);
    for outcome in opened.write(vec![write]) {
        for one in outcome.unwrap().unwrap().iter() {
            assert!(one.is_ok());
        }
    }
}

fn visible(opened: &OpenedCollections) -> Sequence {
    opened.db.snapshot().sequence()
}

fn key_of(id: i32) -> Vec<u8> {
    key(ValueRef::Int32(id)).unwrap()
}

/// A change with the id and the kind of its transaction.
#[derive(Debug, Clone, PartialEq)]
struct Change {
    xid: u64,
    is_atomic: bool,
    collection: u64,
    key: Vec<u8>,
    version: i64,
    is_tombstone: bool,
    body: Vec<u8>,
}

/// All changes up to the visible sequence.
fn read_all(opened: &OpenedCollections, feed: &mut CollectionFeed, bytes: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    while feed.position() < visible(opened) {
        for transaction in feed.read(bytes).unwrap() {
            for document in transaction.documents() {
                let document = document.unwrap();
                assert_eq!(document.head.is_atomic, transaction.is_atomic());
                changes.push(Change {
                    xid: transaction.xid(),
                    is_atomic: transaction.is_atomic(),
                    collection: document.collection,
                    key: document.key.to_vec(),
                    version: document.head.version,
                    is_tombstone: document.head.is_tombstone,
                    body: document.body.to_vec(),
                });
            }
        }
    }
    changes
}

fn changes(opened: &OpenedCollections, after: Sequence) -> Vec<Change> {
    let mut feed = opened.collections.feed(after).unwrap();
    read_all(opened, &mut feed, usize::MAX)
}

fn is_truncated<T>(result: &Result<T, Error>) -> bool {
    matches!(
        result,
        Err(Error::Engine(rillbase_engine::Error::ChangesTruncated))
    )
}

/// Documents with their transactions, versions and bodies.
type State = BTreeMap<(u64, Vec<u8>), (u64, i64, Vec<u8>)>;

fn state(opened: &OpenedCollections) -> State {
    let snapshot = opened.db.snapshot();
    let mut state = State::new();
    for number in COLLECTIONS {
        let plan = ScanPlan::everything();
        let scan = opened
            .collections
            .candidates(number, &plan, None, &snapshot);
        for candidate in scan.unwrap() {
            let candidate = candidate.unwrap();
            let document = candidate.document;
            let row = (document.batch, document.head.version, document.body);
            state.insert((number, candidate.key), row);
        }
    }
    state
}

fn apply(state: &mut State, changes: &[Change]) {
    for change in changes.iter().cloned() {
        let place = (change.collection, change.key);
        if change.is_tombstone {
            state.remove(&place);
        } else {
            state.insert(place, (change.xid, change.version, change.body));
        }
    }
}

fn random_write(random: &mut SeededRandom) -> CollectionWrite {
    let operations = (0..=random.below(2)).map(|_| {
        let id = i32::try_from(random.below(IDS)).unwrap();
        let operation = match random.below(4) {
            0 => insert(id, "inserted"),
            1 => delete(id),
            _ => {
                let code = random.below(20);
                let document = format!("{{\"_id\":{id},\"n\":{code},\"code\":{code}}}");
                let document = parse_document(document.as_bytes()).unwrap();
                DocumentOperation::replace(Value::Int32(id), document.as_ref(), true).unwrap()
            }
        };
        (COLLECTIONS[usize::from(random.one_in(2))], operation)
    });
    let operations = operations.collect();
    write_of(&COLLECTIONS, 1, operations, random.one_in(2))
}

#[test]
fn the_state_at_every_position_and_the_changes_after_it_are_the_current_state() {
    for seed in 0..20 {
        let mut random = SeededRandom::new(seed);
        let mut opened = opened(RETAINED);
        let mut earlier = Vec::new();
        for step in 0..40 {
            earlier.push((visible(&opened), state(&opened)));
            let writes = (0..=random.below(2)).map(|_| random_write(&mut random));
            opened.write(writes.collect());
            if random.one_in(8) {
                opened.db.flush().unwrap();
            }
            if step == 20 {
                opened = opened.reopened();
            }
        }
        let current = state(&opened);
        for (position, mut state) in earlier {
            let mut feed = opened.collections.feed(position).unwrap();
            let bytes = usize::try_from(1 + random.below(2000)).unwrap();
            let changes = read_all(&opened, &mut feed, bytes);
            assert!(changes.is_sorted_by_key(|change| change.xid));
            assert!(changes.iter().all(|change| change.xid > position));
            apply(&mut state, &changes);
            assert_eq!(state, current, "seed {seed}, after {position}");
        }
    }
}

#[test]
fn changes_have_the_transactions_and_the_kinds_of_their_documents() {
    let opened = opened(RETAINED);
    let start = visible(&opened);
    write(&opened, vec![insert(1, "a")], true);
    write(&opened, vec![insert(2, "b"), insert(3, "c")], true);
    write(&opened, vec![insert(4, "d"), insert(5, "e")], false);
    write(&opened, vec![delete(1)], true);
    let all = changes(&opened, start);
    let shown: Vec<(Vec<u8>, i64, bool, bool)> = all
        .iter()
        .map(|change| {
            (
                change.key.clone(),
                change.version,
                change.is_atomic,
                change.is_tombstone,
            )
        })
        .collect();
    let expected = [
        (key_of(1), 1, false, false),
        (key_of(2), 1, true, false),
        (key_of(3), 1, true, false),
        (key_of(4), 1, false, false),
        (key_of(5), 1, false, false),
        (key_of(1), 2, false, true),
    ];
    assert_eq!(shown, expected);
    for change in &all[1..5] {
        let stored = opened.collections.get(1, &change.key, None).unwrap();
        let stored = stored.unwrap();
        assert_eq!(
            (stored.batch, stored.body),
            (change.xid, change.body.clone())
        );
    }
    let id = parse_document(b"{\"_id\":1}").unwrap();
    assert_eq!(all[5].body, id.as_bytes());
}

#[test]
fn batches_without_documents_are_not_among_the_changes() {
    let opened = opened(RETAINED);
    let start = visible(&opened);
    write(&opened, vec![insert(1, "a")], true);
    let before = visible(&opened);
    let other = opened
        .db
        .create_keyspace("other", KeyspaceOptions::default())
        .unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&other, &[0; 20], b"value");
    opened.db.write(batch, Durability::Buffered).unwrap();
    opened
        .collections
        .define(3, definition(1, Vec::new()))
        .unwrap();
    opened.collections.remove(1).unwrap();
    let mut feed = opened.collections.feed(before).unwrap();
    assert!(feed.read(usize::MAX).unwrap().is_empty());
    assert_eq!(feed.position(), visible(&opened));
    // The removal of its collection does not change what was written.
    assert_eq!(changes(&opened, start).len(), 1);
}

/// Writes a few megabytes, and flushes them.
fn write_much(opened: &OpenedCollections, ids: std::ops::Range<i32>) {
    let text = "x".repeat(100_000);
    for id in ids {
        write(opened, vec![insert(id, &text)], true);
    }
    opened.db.flush().unwrap();
}

#[test]
fn changes_are_retained_until_they_are_released() {
    let unretained = opened(0);
    let start = visible(&unretained);
    write_much(&unretained, 0..20);
    assert!(is_truncated(&unretained.collections.feed(start)));

    let mut opened = opened(RETAINED);
    let start = visible(&opened);
    write_much(&opened, 0..20);
    opened = opened.reopened();
    let mut feed = opened.collections.feed(start).unwrap();
    assert_eq!(read_all(&opened, &mut feed, 1 << 20).len(), 20);
    let position = feed.position();
    feed.release(position);
    write_much(&opened, 20..40);
    assert!(is_truncated(&opened.collections.feed(start)));
    assert_eq!(changes(&opened, position).len(), 20);
    assert_eq!(read_all(&opened, &mut feed, 1 << 20).len(), 20);
}

#[test]
fn nothing_is_retained_without_collections() {
    let opened = opened(RETAINED);
    let start = visible(&opened);
    write_much(&opened, 0..20);
    opened.collections.release_unused();
    write_much(&opened, 20..21);
    assert_eq!(changes(&opened, start).len(), 21);
    for number in COLLECTIONS {
        opened.collections.remove(number).unwrap();
    }
    opened.collections.release_unused();
    opened
        .collections
        .define(1, definition(1, Vec::new()))
        .unwrap();
    write_much(&opened, 0..1);
    assert!(is_truncated(&opened.collections.feed(start)));
}

#[test]
fn a_wait_is_over_after_a_write_to_a_collection() {
    const SHORT: Duration = Duration::from_millis(30);
    const LONG: Duration = Duration::from_secs(60);
    let opened = opened(RETAINED);
    let mut feed = opened.collections.feed(visible(&opened)).unwrap();
    let other = opened
        .db
        .create_keyspace("other", KeyspaceOptions::default())
        .unwrap();
    let mut batch = WriteBatch::new();
    batch.put(&other, b"key", b"value");
    opened.db.write(batch, Durability::Buffered).unwrap();
    assert!(!feed.wait(SHORT));
    // A write that changes nothing.
    let refused = write_of(&[1], 1, vec![(1, delete(9))], true);
    opened.write(vec![refused])[0].as_ref().unwrap();
    assert!(!feed.wait(SHORT));
    let started = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(SHORT);
            write(&opened, vec![insert(1, "a")], true);
        });
        assert!(feed.wait(LONG));
    });
    assert!(started.elapsed() < LONG / 2);
    assert!(feed.wait(LONG), "it was written since the last read");
    assert_eq!(feed.read(usize::MAX).unwrap().len(), 1);
    assert!(!feed.wait(SHORT));
}
