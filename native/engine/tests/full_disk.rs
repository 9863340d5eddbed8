//! Databases on a disk that is temporarily full.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::crash_support::{History, World, work_in_little_room};
use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom};
use rillbase_engine::{
    Clock, Db, DbOptions, Durability, Error, Extractor, Keyspace, KeyspaceOptions, ManualClock,
    WriteBatch, ZoneMap, wal,
};

/// Runs a database whose disk is full from time to time twice, each time until a power loss or a
/// crash of the process.
fn survives(seed: u64) -> usize {
    let vfs = FaultVfs::new(seed);
    let clock = Arc::new(ManualClock::new(1000));
    let mut random = SeededRandom::new(seed ^ 0xF0_11);
    let mut history = History::new();
    let mut refused = 0;
    for round in 0..2 {
        let power = random.one_in(2);
        let context = format!("seed {seed}, life {round}, power {power}");
        let mut world = World::open(&vfs, &clock).unwrap();
        let worked = work_in_little_room(&mut world, &mut history, &mut random);
        refused += worked.unwrap_or_else(|error| panic!("{context}: {error}"));
        drop(world);
        if power {
            vfs.crash();
        } else {
            vfs.kill();
        }
        let world = World::open(&vfs, &clock).unwrap();
        let found = world.read(None).unwrap();
        let oldest = if power { history.durable } else { history.done };
        history.resume(&found, oldest, clock.now(), &context);
    }
    refused
}

#[test]
fn writes_to_a_full_disk_have_no_effect_and_later_ones_succeed() {
    let refused: usize = (0..60).map(survives).sum();
    assert!(refused > 500, "only {refused} steps found no room");
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn writes_to_a_full_disk_have_no_effect_in_many_more_histories() {
    (1000..6000).for_each(|seed| _ = survives(seed));
}

const THREADS: u64 = 4;

/// The attribute of an entry is its key and the start of its value.
#[derive(Debug)]
struct KeyAndValue;

impl KeyAndValue {
    fn attribute(key: &[u8], value: &[u8]) -> Vec<u8> {
        [key, &value[..8.min(value.len())]].concat()
    }
}

impl Extractor for KeyAndValue {
    fn name(&self) -> &'static str {
        "key_and_value"
    }

    fn is_listed(&self) -> bool {
        true
    }

    fn extract(&self, key: &[u8], value: &[u8], about: &mut ZoneMap) {
        about.add_indexed(1, &Self::attribute(key, value));
    }
}

/// The number of entries with a key and a value by their attribute.
fn count_listed(db: &Db, space: &Keyspace, key: &[u8], value: &[u8]) -> usize {
    let attribute = KeyAndValue::attribute(key, value);
    db.lookup(space, 1, &attribute, None).unwrap().hits.len()
}

fn open(vfs: &FaultVfs) -> Result<Db, Error> {
    let small = KeyspaceOptions {
        memtable_bytes: 4000,
        table_bytes: 3000,
        base_bytes: 8000,
        block_bytes: 500,
        compact_at_runs: 2,
        extractor: Some(Arc::new(KeyAndValue)),
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        log: wal::WalOptions {
            segment_bytes: 5000,
            preallocate_bytes: 1000,
            ..wal::WalOptions::default()
        },
        ..DbOptions::default()
    };
    let options = options.keyspace("left", small.clone());
    Db::open("/data/db", options.keyspace("right", small))
}

fn spaces(db: &Db) -> [Keyspace; 2] {
    ["left", "right"].map(|name| db.keyspace(name).unwrap())
}

/// Writes keys of a thread one after the other. A rejected write has no effect, and is repeated
/// with another value until it succeeds. Returns the number of rejections.
fn write(db: &Db, thread: u64, keys: u64, done: &AtomicU64) -> u64 {
    let spaces = spaces(db);
    let mut refused = 0;
    for number in 0..keys {
        let key = format!("{thread}/{number:06}").into_bytes();
        let mut tries = 0_u64;
        loop {
            let value = tries.to_le_bytes().repeat(4);
            let mut batch = WriteBatch::new();
            for space in &spaces {
                batch.put(space, &key, &value);
            }
            let durability = if number % 3 == 0 {
                Durability::Buffered
            } else {
                Durability::Sync
            };
            match db.write(batch, durability) {
                Ok(_) => break,
                Err(error) => assert_eq!(error.code(), "storage_full", "{error}"),
            }
            for space in &spaces {
                assert!(db.get(space, &key).unwrap().is_none(), "it was refused");
                assert_eq!(count_listed(db, space, &key, &value), 0);
            }
            refused += 1;
            tries += 1;
            thread::yield_now();
        }
        for space in &spaces {
            let value = db.get(space, &key).unwrap().unwrap();
            assert_eq!(*value, tries.to_le_bytes().repeat(4), "it was taken");
            assert_eq!(count_listed(db, space, &key, &value), 1);
        }
        done.fetch_add(1, Ordering::Relaxed);
    }
    refused
}

fn threads_survive(seed: u64) -> u64 {
    const KEYS: u64 = 150;
    let vfs = FaultVfs::new(seed);
    let mut random = SeededRandom::new(seed);
    let db = open(&vfs).unwrap();
    let done = AtomicU64::new(0);
    let refused: u64 = thread::scope(|scope| {
        let writing = (0..THREADS).map(|thread| {
            let (db, done) = (&db, &done);
            scope.spawn(move || write(db, thread, KEYS, done))
        });
        let writing: Vec<_> = writing.collect();
        for part in 1..3 {
            let at = part * THREADS * KEYS / 4 + random.below(KEYS);
            while done.load(Ordering::Relaxed) < at {
                thread::yield_now();
            }
            vfs.fill_up();
            while db.why_full().is_none() && done.load(Ordering::Relaxed) < THREADS * KEYS {
                thread::yield_now();
            }
            vfs.clear();
        }
        writing
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    });
    let expected = all(&db);
    assert_eq!(expected.len() as u64, 2 * THREADS * KEYS, "seed {seed}");
    db.sync().unwrap();
    drop(db);
    vfs.crash();
    assert!(all(&open(&vfs).unwrap()) == expected, "seed {seed}");
    refused
}

fn all(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    for space in spaces(db) {
        let mut scan = db.scan_prefix(&space, b"", None).unwrap();
        scan.first().unwrap();
        while scan.is_valid() {
            entries.push((scan.key().to_vec(), scan.value().to_vec()));
            scan.advance().unwrap();
        }
    }
    entries
}

#[test]
fn many_threads_are_refused_while_there_is_no_room_and_go_on_afterwards() {
    let refused: u64 = (0..4).map(threads_survive).sum();
    assert!(refused > 0);
}

#[test]
fn transactions_begin_read_and_commit_again_around_a_full_disk() {
    let vfs = FaultVfs::new(5);
    let db = open(&vfs).unwrap();
    let [left, _] = spaces(&db);
    let put = |value: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(&left, b"key", value);
        db.write(batch, Durability::Sync)
    };
    put(b"before").unwrap();
    vfs.fill_up();
    assert_eq!(put(b"refused").unwrap_err().code(), "storage_full");
    let mut transaction = db.begin().unwrap();
    let seen = transaction.get_for_update(&left, b"key").unwrap();
    assert_eq!(seen.as_deref(), Some(&b"before"[..]));
    transaction.put(&left, b"key", b"refused too");
    let refused = transaction.commit(Durability::Sync).unwrap_err();
    assert_eq!(refused.code(), "storage_full");

    vfs.clear();
    while db.why_full().is_some() {
        thread::yield_now();
    }
    let mut transaction = db.begin().unwrap();
    let seen = transaction.get_for_update(&left, b"key").unwrap();
    assert_eq!(seen.as_deref(), Some(&b"before"[..]));
    transaction.put(&left, b"key", b"after");
    transaction.commit(Durability::Sync).unwrap();
    assert_eq!(&*db.get(&left, b"key").unwrap().unwrap(), b"after");
}

/// A failed sync may leave dirty pages marked as clean, so syncing the same file again proves
/// nothing.
#[test]
fn data_recovered_after_a_failed_sync_is_durable_and_not_only_cached() {
    for seed in 0..50 {
        let vfs = FaultVfs::new(seed);
        let db = open(&vfs).unwrap();
        let [left, _] = spaces(&db);
        let mut batch = WriteBatch::new();
        batch.put(&left, b"key", b"value");
        db.write(batch, Durability::Buffered).unwrap();
        vfs.fail_at(vfs.sites(), Fault::Error);
        db.sync().unwrap_err();
        drop(db);
        vfs.kill();

        let found = all(&open(&vfs).unwrap());
        vfs.crash();
        assert!(all(&open(&vfs).unwrap()) == found, "seed {seed}: {found:?}");
        assert_eq!(found.len(), 1, "seed {seed}");
    }
}

/// A database whose reserve is a mebibyte, without background threads.
#[test]
fn a_flush_that_lacked_space_is_done_once_there_is_some() {
    let vfs = FaultVfs::new(1);
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        ..DbOptions::default()
    };
    let small = KeyspaceOptions {
        memtable_bytes: 4000,
        ..KeyspaceOptions::default()
    };
    let db = Db::open("/db", options.keyspace("space", small)).unwrap();
    let space = db.keyspace("space").unwrap();
    let put = |number: u8| {
        let mut batch = WriteBatch::new();
        batch.put(&space, &[number], &[7; 1000]);
        db.write(batch, Durability::Buffered).unwrap();
    };
    (0..3).for_each(put);
    // The log is written and synced, then the flush creates a table.
    vfs.fail_at(vfs.sites() + 2, Fault::NoSpace);
    put(3);
    wait_until(|| db.why_full().is_some());
    vfs.clear();
    wait_until(|| db.stats().flushes == 1);
    wait_until(|| db.why_full().is_none());
}

fn wait_until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < deadline, "it did not happen");
        thread::sleep(Duration::from_millis(1));
    }
}

fn with_reserve(vfs: &FaultVfs) -> Db {
    let options = DbOptions {
        vfs: Arc::new(vfs.clone()),
        reserve_bytes: 1 << 20,
        background_threads: 0,
        ..DbOptions::default()
    };
    Db::open(
        "/data/db",
        options.keyspace("only", KeyspaceOptions::default()),
    )
    .unwrap()
}

/// Without background threads a flush does what they would do.
fn write_and_flush(db: &Db) {
    let mut batch = WriteBatch::new();
    batch.put(&db.keyspace("only").unwrap(), b"key", b"value");
    db.write(batch, Durability::Buffered).unwrap();
    db.flush().unwrap();
}

fn has_reserve(vfs: &FaultVfs) -> bool {
    let names = vfs.files().into_iter();
    names
        .map(|(path, _)| path)
        .any(|path| path.ends_with("RESERVE"))
}

#[test]
fn a_reserve_is_created_only_where_twice_its_size_is_free() {
    let vfs = FaultVfs::new(7);
    vfs.report_free((2 << 20) - 1);
    let db = with_reserve(&vfs);
    write_and_flush(&db);
    assert!(!has_reserve(&vfs));
    vfs.report_free(2 << 20);
    write_and_flush(&db);
    assert!(has_reserve(&vfs));
}
