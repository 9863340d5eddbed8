//! Transactions: the first to commit wins.

use std::sync::Arc;

use crate::group_support::{Write, Writes};
use rillbase_engine::vfs::MemoryVfs;
use rillbase_engine::{
    Clock, Db, DbOptions, Durability, Keyspace, KeyspaceOptions, ManualClock, WriteBatch,
};

const BUFFERED: Durability = Durability::Buffered;

fn open() -> (Db, Keyspace, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new(1000));
    let options = DbOptions {
        vfs: Arc::new(MemoryVfs::new()),
        clock: Arc::clone(&clock) as Arc<dyn Clock>,
        ..DbOptions::default()
    };
    let db = Db::open("/db", options.keyspace("k", KeyspaceOptions::default())).unwrap();
    let space = db.keyspace("k").unwrap();
    (db, space, clock)
}

fn put(db: &Db, space: &Keyspace, key: &[u8], value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put(space, key, value);
    db.write(batch, BUFFERED).unwrap();
}

#[test]
fn of_two_writers_of_a_key_the_first_to_commit_wins() {
    let (db, space, _) = open();
    let mut first = db.begin().unwrap();
    let mut second = db.begin().unwrap();
    first.put(&space, b"a", b"first");
    second.put(&space, b"a", b"second");
    assert_eq!(db.get(&space, b"a").unwrap(), None);
    first.commit(BUFFERED).unwrap();
    assert_eq!(second.commit(BUFFERED).unwrap_err().code(), "conflict");
    assert_eq!(&*db.get(&space, b"a").unwrap().unwrap(), b"first");
}

#[test]
fn a_key_read_for_update_conflicts_with_a_plain_write_and_a_range_delete() {
    let (db, space, _) = open();
    put(&db, &space, b"a", b"1");
    let mut written = db.begin().unwrap();
    let mut deleted = db.begin().unwrap();
    assert!(written.get_for_update(&space, b"a").unwrap().is_some());
    assert!(deleted.get_for_update(&space, b"x").unwrap().is_none());
    put(&db, &space, b"a", b"2");
    let mut batch = WriteBatch::new();
    batch.delete_range(&space, b"w", b"z");
    db.write(batch, BUFFERED).unwrap();
    assert_eq!(&*written.get(&space, b"a").unwrap().unwrap(), b"1");
    assert_eq!(written.commit(BUFFERED).unwrap_err().code(), "conflict");
    assert_eq!(deleted.commit(BUFFERED).unwrap_err().code(), "conflict");
}

#[test]
fn writers_of_different_keys_both_commit_and_see_their_own_writes() {
    let (db, space, _) = open();
    let mut first = db.begin().unwrap();
    let mut second = db.begin().unwrap();
    first.put(&space, b"a", b"1");
    second.delete(&space, b"b");
    assert_eq!(&*first.get(&space, b"a").unwrap().unwrap(), b"1");
    first.commit(BUFFERED).unwrap();
    second.commit(BUFFERED).unwrap();
}

#[test]
fn transactions_that_commit_together_each_find_those_before_as_committed() {
    let (db, space, _) = open();
    let writing = |key: &[u8], value: &[u8]| {
        let mut transaction = db.begin().unwrap();
        transaction.put(&space, key, value);
        transaction
    };
    let empty = db.begin().unwrap();
    let all = [
        writing(b"a", b"1"),
        writing(b"b", b"2"),
        writing(b"a", b"3"),
        empty,
        writing(b"c", b"4"),
    ];
    let done = Writes::new(all.iter().map(Write::Commit)).run(&db, Durability::Sync);
    let codes: Vec<_> = done
        .iter()
        .map(|one| {
            one.as_ref()
                .map_or_else(rillbase_engine::Error::code, |_| "")
        })
        .collect();
    assert_eq!(codes, ["", "", "conflict", "", ""]);
    for (key, value) in [(b"a", b"1"), (b"b", b"2"), (b"c", b"4")] {
        assert_eq!(&*db.get(&space, key).unwrap().unwrap(), value);
    }
    drop(all);
    let mut later = db.begin().unwrap();
    later.put(&space, b"a", b"5");
    later.commit(BUFFERED).unwrap();
}

#[test]
fn a_transaction_ends_after_ten_seconds() {
    let (db, space, clock) = open();
    let mut slow = db.begin().unwrap();
    slow.put(&space, b"a", b"1");
    clock.advance(10_001);
    assert_eq!(slow.commit(BUFFERED).unwrap_err().code(), "conflict");
    assert_eq!(db.get(&space, b"a").unwrap(), None);
}

#[test]
fn counters_that_are_read_for_update_by_many_threads_lose_nothing() {
    let (db, space, _) = open();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut done = 0;
                while done < 50 {
                    let mut transaction = db.begin().unwrap();
                    let found = transaction.get_for_update(&space, b"counter").unwrap();
                    let count = found.map_or(0, |value| value.first().copied().unwrap_or(0));
                    transaction.put(&space, b"counter", &[count + 1]);
                    done += u32::from(transaction.commit(BUFFERED).is_ok());
                }
            });
        }
    });
    assert_eq!(&*db.get(&space, b"counter").unwrap().unwrap(), &[200]);
}
