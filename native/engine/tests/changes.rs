//! The changes of a database: complete, in order, and retained as promised.

use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::merge_support::Append;
use rillbase_engine::vfs::{Fault, FaultVfs, MemoryVfs, SeededRandom, Vfs};
use rillbase_engine::wal::WalOptions;
use rillbase_engine::{
    ChangeBatch, ChangeFeed, Db, DbOptions, Durability, EntryKind, Error, Keyspace,
    KeyspaceOptions, LoggedWrite, Sequence, WriteBatch, truncate_damaged_log,
};

const SEGMENT_BYTES: u64 = 64 << 10;
const RETAINED: u64 = 1 << 20;

fn options(vfs: &Arc<impl Vfs + 'static>, retained_log_bytes: u64) -> DbOptions {
    DbOptions {
        vfs: Arc::clone(vfs) as Arc<dyn Vfs>,
        background_threads: 0,
        retained_log_bytes,
        log: WalOptions {
            segment_bytes: SEGMENT_BYTES,
            ..WalOptions::default()
        },
        ..DbOptions::default()
    }
}

fn open(vfs: &Arc<impl Vfs + 'static>, retained_log_bytes: u64) -> (Db, Keyspace) {
    let db = Db::open("/db", options(vfs, retained_log_bytes)).unwrap();
    let space = db.create_keyspace("k", KeyspaceOptions::default());
    (db, space.unwrap())
}

fn put(db: &Db, space: &Keyspace, number: u32) -> Sequence {
    let mut batch = WriteBatch::new();
    batch.put(space, &number.to_be_bytes(), &[7; 100]);
    db.write(batch, Durability::Buffered).unwrap()
}

/// Returns the last sequence.
fn put_all(db: &Db, space: &Keyspace, numbers: Range<u32>) -> Sequence {
    numbers.fold(0, |_, number| put(db, space, number))
}

fn read_all(feed: &mut ChangeFeed, bytes: usize) -> Vec<ChangeBatch> {
    let mut all = Vec::new();
    loop {
        let batches = feed.read(bytes).unwrap();
        if batches.is_empty() {
            return all;
        }
        all.extend(batches);
    }
}

type Entries = BTreeMap<(u64, Vec<u8>), Vec<u8>>;

fn apply(entries: &mut Entries, change: &LoggedWrite<'_>) {
    let key = (change.keyspace, change.key.to_vec());
    match change.kind {
        EntryKind::Put => {
            entries.insert(key, change.value.to_vec());
        }
        EntryKind::Merge => entries.entry(key).or_default().extend(change.value),
        EntryKind::Delete => {
            entries.remove(&key);
        }
        EntryKind::RangeDelete => {
            let (start, end) = (change.key, change.value);
            entries.retain(|(keyspace, key), _| {
                *keyspace != change.keyspace || key.as_slice() < start || key.as_slice() >= end
            });
        }
        EntryKind::PutExpiring | EntryKind::DeleteWith => panic!("{change:?} was not written"),
    }
}

fn stored(db: &Db) -> Entries {
    let mut entries = Entries::new();
    for space in db.keyspaces() {
        let snapshot = db.snapshot();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let mut scan = db.scan(&space, all.0, all.1, Some(&snapshot)).unwrap();
        scan.first().unwrap();
        while scan.is_valid() {
            let key = (space.id(), scan.key().to_vec());
            entries.insert(key, scan.value().to_vec());
            scan.advance().unwrap();
        }
    }
    entries
}

fn write_random(db: &Db, spaces: &[Keyspace], random: &mut SeededRandom) -> Sequence {
    let mut batch = WriteBatch::new();
    let key = |random: &mut SeededRandom| random.below(40).to_be_bytes().to_vec();
    for _ in 0..=random.below(4) {
        let (space, name) = (&spaces[random.up_to(1)], key(random));
        match random.below(8) {
            0 => batch.delete(space, &name),
            1 => batch.delete_range(space, &name, &key(random)),
            2 => batch.merge(&spaces[1], &name, b"+"),
            _ => batch.put(space, &name, &random.below(1000).to_be_bytes()),
        }
    }
    db.write(batch, Durability::Buffered).unwrap()
}

#[test]
fn the_state_at_any_sequence_plus_the_changes_after_it_is_the_state_now() {
    for seed in 0..20 {
        let mut random = SeededRandom::new(seed);
        let vfs = Arc::new(MemoryVfs::new());
        let merged = KeyspaceOptions {
            merge: Some(Arc::new(Append)),
            ..KeyspaceOptions::default()
        };
        let open = || {
            let options = options(&vfs, RETAINED)
                .keyspace("plain", KeyspaceOptions::default())
                .keyspace("merged", merged.clone());
            Db::open("/db", options).unwrap()
        };
        let mut db = open();
        let mut states: Vec<(Sequence, Entries)> = vec![(0, Entries::new())];
        for _ in 0..60 {
            let spaces = db.keyspaces();
            let sequence = write_random(&db, &spaces, &mut random);
            states.push((sequence, stored(&db)));
            if random.one_in(10) {
                db.flush().unwrap();
            }
            if random.one_in(20) {
                drop(db);
                db = open();
            }
        }
        let now = stored(&db);
        for (sequence, mut state) in states {
            let mut feed = db.changes(sequence).unwrap();
            let batches = read_all(&mut feed, 1 + random.up_to(300));
            for change in batches.iter().flat_map(ChangeBatch::writes) {
                apply(&mut state, &change.unwrap());
            }
            assert_eq!(state, now, "seed {seed}, after {sequence}");
            assert_eq!(feed.position(), db.snapshot().sequence());
        }
    }
}

#[test]
fn a_reader_beside_writers_gets_every_batch_once_and_none_before_it_is_visible() {
    const WRITES: u32 = 3000;
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, RETAINED);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let write = |first| put_all(&db, &space, first..first + WRITES);
        let writers = [0, WRITES].map(|first| scope.spawn(move || write(first)));
        let reader = scope.spawn(|| {
            let mut feed = db.changes(0).unwrap();
            let (mut next, mut count) = (1, 0);
            loop {
                let was_done = done.load(Ordering::Acquire);
                for batch in feed.read(2000).unwrap() {
                    assert_eq!(batch.first_sequence(), next);
                    assert!(batch.last_sequence() <= db.snapshot().sequence());
                    next = batch.last_sequence() + 1;
                    count += 1;
                }
                if was_done && !feed.wait(Duration::ZERO) {
                    return count;
                }
                feed.wait(Duration::from_millis(1));
            }
        });
        for writer in writers {
            writer.join().unwrap();
        }
        done.store(true, Ordering::Release);
        assert_eq!(reader.join().unwrap(), 2 * WRITES);
    });
}

#[test]
fn a_batch_that_is_in_the_log_and_never_became_visible_is_not_read() {
    let vfs = Arc::new(FaultVfs::new(1));
    let (db, space) = open(&vfs, 0);
    let write = |value: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(&space, b"key", value);
        db.write(batch, Durability::Sync)
    };
    let before = vfs.sites();
    write(b"visible").unwrap();
    let sync = 2 * vfs.sites() - before - 1;
    vfs.fail_at(sync, Fault::Error);
    assert!(write(b"unsynced").is_err());
    let mut feed = db.changes(0).unwrap();
    assert_eq!(read_all(&mut feed, 1).len(), 1);
}

#[test]
fn a_change_has_the_expiry_apart_from_its_value_and_the_time_of_its_batch() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, 0);
    let mut batch = WriteBatch::new();
    batch.put_expiring(&space, b"key", b"value", 1 << 50);
    let before = db.now();
    db.write(batch, Durability::Buffered).unwrap();
    let batches = db.changes(0).unwrap().read(1).unwrap();
    let changes: Vec<LoggedWrite<'_>> = batches[0].writes().map(Result::unwrap).collect();
    let expected = LoggedWrite {
        sequence: 1,
        kind: EntryKind::PutExpiring,
        keyspace: space.id(),
        key: b"key",
        value: b"value",
        expiry: Some(1 << 50),
    };
    assert_eq!(changes, [expected]);
    assert!((before..=db.now()).contains(&batches[0].time()));
}

#[test]
fn a_wait_returns_when_something_becomes_visible() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, 0);
    let feed = db.changes(0).unwrap();
    assert!(!feed.wait(Duration::from_millis(5)));
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| feed.wait(Duration::from_secs(60)));
        put(&db, &space, 1);
        assert!(waiting.join().unwrap());
    });
}

fn is_truncated<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::ChangesTruncated))
}

#[test]
fn without_retention_a_flush_truncates_the_changes() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, 0);
    let mut feed = db.changes(0).unwrap();
    let last = put_all(&db, &space, 0..10);
    db.flush().unwrap();
    assert!(is_truncated(&feed.read(1)));
    assert!(is_truncated(&db.changes(last - 1)));
    assert!(db.changes(last).unwrap().read(1).unwrap().is_empty());
}

#[test]
fn retained_changes_remain_until_they_are_released() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, RETAINED);
    let write = |from: u32| {
        let last = put_all(&db, &space, from..from + 100);
        db.flush().unwrap();
        last
    };
    let first = write(0);
    let mut feed = db.changes(0).unwrap();
    assert_eq!(feed.read(usize::MAX).unwrap().len(), 100);
    let second = write(100);
    assert_eq!(feed.read(usize::MAX).unwrap().len(), 100);
    feed.release(first);
    write(200);
    assert!(is_truncated(&db.changes(first - 1)));
    let mut late = db.changes(first).unwrap();
    assert_eq!(late.read(usize::MAX).unwrap().len(), 200);
    feed.release(second);
    write(300);
    assert!(is_truncated(&db.changes(second - 1)));
    assert!(db.changes(second).is_ok());
}

#[test]
fn everything_is_released_without_a_reader() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, RETAINED);
    let before = put_all(&db, &space, 0..1000);
    db.release_changes();
    assert!(db.changes(0).is_ok(), "it is in the log until a flush");
    put_all(&db, &space, 1000..2000);
    db.flush().unwrap();
    assert!(is_truncated(&db.changes(0)));
    let mut feed = db.changes(before).unwrap();
    assert_eq!(feed.read(usize::MAX).unwrap().len(), 1000);
}

#[test]
fn changes_are_retained_up_to_a_size_and_do_not_cause_flushes() {
    let vfs = Arc::new(MemoryVfs::new());
    let log_bytes = RETAINED / 8;
    let options = DbOptions {
        log_bytes,
        ..options(&vfs, RETAINED)
    };
    let db = Db::open("/db", options).unwrap();
    let space = db.create_keyspace("k", KeyspaceOptions::default()).unwrap();
    let mut number = 0;
    while db.stats().batch_bytes < 4 * RETAINED {
        put(&db, &space, number);
        number += 1;
    }
    let stats = db.stats();
    // The log is checked, and memtables are flushed, once per MiB.
    assert!(
        stats.log_bytes < RETAINED + (2 << 20),
        "{}",
        stats.log_bytes
    );
    assert!(stats.flushes <= 5, "{}", stats.flushes);
    assert!(is_truncated(&db.changes(0)));
    let reach = RETAINED / 2 / 120;
    assert!(db.changes(stats.sequence - reach).is_ok());
}

#[test]
fn a_database_that_is_opened_again_has_its_retained_changes() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, RETAINED);
    for round in 0..3 {
        put_all(&db, &space, 100 * round..100 * (round + 1));
        db.flush().unwrap();
    }
    let last = put(&db, &space, 300);
    let expected = stored(&db);
    drop(db);
    for retained in [RETAINED, 0] {
        let (db, _) = open(&vfs, retained);
        assert_eq!(stored(&db), expected);
        let mut feed = db.changes(0).unwrap();
        assert_eq!(feed.read(usize::MAX).unwrap().len(), 301);
        assert_eq!(db.snapshot().sequence(), last);
    }
}

#[test]
fn writes_after_a_damaged_log_was_truncated_are_replayed() {
    let vfs = Arc::new(FaultVfs::new(1));
    let (db, space) = open(&vfs, RETAINED);
    for round in 0..3 {
        put_all(&db, &space, 100 * round..100 * (round + 1));
        db.flush().unwrap();
    }
    drop(db);
    let is_log = |path: &Path| path.parent().is_some_and(|dir| dir.ends_with("log"));
    let (segment, size) = vfs
        .files()
        .into_iter()
        .find(|(path, _)| is_log(path))
        .unwrap();
    vfs.damage(&segment, |bytes| {
        bytes[usize::try_from(size).unwrap() / 4] ^= 1;
    })
    .unwrap();
    assert!(Db::open("/db", options(&vfs, RETAINED)).is_err());
    let truncated = truncate_damaged_log(&*vfs, Path::new("/db")).unwrap();
    assert!(truncated.is_some());

    let (db, space) = open(&vfs, RETAINED);
    put_all(&db, &space, 300..310);
    let expected = stored(&db);
    assert_eq!(expected.len(), 310);
    drop(db);
    let (db, _) = open(&vfs, RETAINED);
    assert_eq!(stored(&db), expected);
}

#[test]
fn changes_after_a_sequence_that_does_not_exist_yet_are_an_invalid_argument() {
    let vfs = Arc::new(MemoryVfs::new());
    let (db, space) = open(&vfs, 0);
    let last = put(&db, &space, 1);
    let refused = db.changes(last + 1).unwrap_err();
    assert_eq!(refused.code(), "invalid_argument");
}
