//! Writes with a snapshot directly after them.

use std::sync::Arc;

use crate::group_support::write_with_snapshot;
use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Clock, Db, DbOptions, DbSnapshot, Durability, Keyspace, KeyspaceOptions, ManualClock,
    WriteBatch,
};

fn database(clock: &Arc<ManualClock>) -> (Db, Keyspace) {
    let options = DbOptions {
        vfs: Arc::new(MemoryVfs::new()),
        clock: Arc::clone(clock) as Arc<dyn Clock>,
        background_threads: 0,
        ..DbOptions::default()
    };
    let db = Db::open("/db", options.keyspace("a", KeyspaceOptions::default())).unwrap();
    let space = db.keyspace("a").unwrap();
    (db, space)
}

fn keys(db: &Db, space: &Keyspace, snapshot: &DbSnapshot) -> Vec<Vec<u8>> {
    let mut scan = db.scan_prefix(space, b"", Some(snapshot)).unwrap();
    let mut keys = Vec::new();
    scan.first().unwrap();
    while scan.is_valid() {
        keys.push(scan.key().to_vec());
        scan.advance().unwrap();
    }
    keys
}

#[test]
fn a_write_with_a_snapshot_sees_earlier_writes_and_no_later_ones() {
    let clock = Arc::new(ManualClock::new(1000));
    let (db, space) = database(&clock);
    let put = |key: &[u8]| {
        let mut batch = WriteBatch::new();
        batch.put(&space, key, b"");
        db.write(batch, Durability::Buffered).unwrap();
    };
    put(b"before");
    let since = db.snapshot();
    put(b"between");
    let mut batch = WriteBatch::new();
    batch.put(&space, b"own", b"");
    let behind = write_with_snapshot(&db, batch, &since).unwrap();
    put(b"later");
    let mut batch = WriteBatch::new();
    batch.delete(&space, b"between");
    db.write(batch, Durability::Buffered).unwrap();
    drop(since);
    db.compact(&space).unwrap();

    let seen = keys(&db, &space, &behind);
    assert_eq!(seen, [b"before".as_slice(), b"between", b"own"]);
    assert_eq!(behind.sequence(), 3);
}

#[test]
fn keys_that_expire_during_the_write_are_still_visible() {
    let clock = Arc::new(ManualClock::new(1000));
    let (db, space) = database(&clock);
    let mut batch = WriteBatch::new();
    batch.put_expiring(&space, b"short", b"", 1005);
    db.write(batch, Durability::Buffered).unwrap();
    let since = db.snapshot();
    clock.advance(10);
    let mut batch = WriteBatch::new();
    batch.put(&space, b"own", b"");
    let behind = write_with_snapshot(&db, batch, &since).unwrap();
    drop(since);
    db.compact(&space).unwrap();

    assert_eq!(keys(&db, &space, &behind), [b"own".as_slice(), b"short"]);
    assert_eq!(keys(&db, &space, &db.snapshot()), [b"own".as_slice()]);
}

#[test]
fn a_key_that_ends_in_its_sequence_is_new_each_time_and_the_newest_comes_first() {
    let clock = Arc::new(ManualClock::new(1000));
    let (db, space) = database(&clock);
    for value in [b"first", b"other", b"third"] {
        let mut batch = WriteBatch::new();
        batch.put_sequenced(&space, b"list", value, None);
        batch.put_sequenced(&space, b"mist", value, Some(2000));
        db.write(batch, Durability::Buffered).unwrap();
    }
    let mut scan = db.scan_prefix(&space, b"list", None).unwrap();
    let mut found = Vec::new();
    scan.first().unwrap();
    while scan.is_valid() {
        let sequence = !u64::from_be_bytes(*scan.key().last_chunk().unwrap());
        found.push((sequence, scan.value().to_vec()));
        scan.advance().unwrap();
    }
    let expected: Vec<(u64, Vec<u8>)> = vec![
        (5, b"third".to_vec()),
        (3, b"other".to_vec()),
        (1, b"first".to_vec()),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_scan_shows_expired_entries_on_request_until_they_are_compacted_away() {
    let clock = Arc::new(ManualClock::new(1000));
    let (db, space) = database(&clock);
    let mut batch = WriteBatch::new();
    batch.put_expiring(&space, b"short", b"value", 1005);
    db.write(batch, Durability::Buffered).unwrap();
    clock.advance(10);
    let shown = || {
        let mut scan = db.scan_prefix(&space, b"", None).unwrap().show_expired();
        scan.first().unwrap();
        scan.is_valid().then(|| scan.value().to_vec())
    };
    assert_eq!(shown(), Some(b"value".to_vec()));
    assert!(keys(&db, &space, &db.snapshot()).is_empty());
    db.compact(&space).unwrap();
    assert_eq!(shown(), None);
}
