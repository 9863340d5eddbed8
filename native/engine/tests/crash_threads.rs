//! Many threads write durably, with flushes and compactions in the background, until power is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use rillbase_engine::vfs::{Fault, FaultVfs, SeededRandom};
use rillbase_engine::{Db, DbOptions, Durability, Error, KeyspaceOptions, WriteBatch, wal};

const THREADS: usize = 4;

fn open(vfs: &FaultVfs) -> Result<Db, Error> {
    let small = KeyspaceOptions {
        memtable_bytes: 4000,
        table_bytes: 3000,
        base_bytes: 8000,
        block_bytes: 500,
        compact_at_runs: 2,
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
    Db::open(
        "/data/db",
        options
            .keyspace("left", small.clone())
            .keyspace("right", small),
    )
}

fn key(thread: usize, number: u64) -> Vec<u8> {
    format!("{thread}/{number:06}").into_bytes()
}

/// Writes from `next[thread]` on until a write fails; records the progress of the thread.
fn write(db: &Db, thread: usize, next: &AtomicU64) -> Error {
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    loop {
        let number = next.load(Ordering::Relaxed);
        let key = key(thread, number);
        let mut batch = WriteBatch::new();
        batch.put(&left, &key, &number.to_le_bytes().repeat(6));
        batch.put(&right, &key, &number.to_le_bytes());
        if let Err(error) = db.write(batch, Durability::Sync) {
            return error;
        }
        next.store(number + 1, Ordering::Relaxed);
    }
}

/// Checks that all acknowledged writes are present, and that pending ones are present as a whole or
/// not at all.
fn check(db: &Db, next: &[AtomicU64], context: &str) {
    let (left, right) = (db.keyspace("left").unwrap(), db.keyspace("right").unwrap());
    for (thread, next) in next.iter().enumerate() {
        let durable = next.load(Ordering::Relaxed);
        for number in 0..=durable {
            let key = key(thread, number);
            let (found, other) = (db.get(&left, &key).unwrap(), db.get(&right, &key).unwrap());
            assert_eq!(
                found.is_some(),
                other.is_some(),
                "{context}: batch {number} is not whole"
            );
            assert!(
                found.is_some() || number == durable,
                "{context}: {number} of {durable} is lost"
            );
            assert!(other.is_none_or(|found| *found == number.to_le_bytes()));
        }
    }
}

fn survives(seed: u64) {
    let vfs = FaultVfs::new(seed);
    let mut random = SeededRandom::new(seed);
    let next: Vec<AtomicU64> = (0..THREADS).map(|_| AtomicU64::new(0)).collect();
    for round in 0..3 {
        let context = format!("seed {seed}, life {round}");
        let db = open(&vfs).unwrap_or_else(|error| panic!("{context}: {error}"));
        check(&db, &next, &context);
        vfs.fail_at(vfs.sites() + random.below(1000), Fault::Stop);
        thread::scope(|scope| {
            for (thread, next) in next.iter().enumerate() {
                let db = &db;
                scope.spawn(move || {
                    let error = write(db, thread, next);
                    let codes = ["io_error", "poisoned"];
                    assert!(codes.contains(&error.code()), "{error}");
                });
            }
        });
        drop(db);
        vfs.crash();
    }
    check(&open(&vfs).unwrap(), &next, "at the end");
}

#[test]
fn every_acknowledged_write_survives() {
    (0..30).for_each(survives);
}

#[test]
#[ignore = "takes minutes: the long suite runs it"]
fn every_acknowledged_write_survives_many_more_crashes() {
    (100..3000).for_each(survives);
}
