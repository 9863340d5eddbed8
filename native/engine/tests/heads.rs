//! Filters over the heads of keys save reads and hide nothing.

use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use rillbase_engine::vfs::{MemoryVfs, Vfs};
use rillbase_engine::{
    Db, DbOptions, Durability, ElementTimes, KeyHead, Keyspace, KeyspaceOptions, ListFilter, Scan,
    WriteBatch, prefix_end,
};

use crate::head_support::{FirstHalf, PrefixLength, forward};

fn open(vfs: &Arc<MemoryVfs>, head: KeyHead) -> (Db, Keyspace) {
    let space = KeyspaceOptions {
        extractor: Some(Arc::new(ElementTimes)),
        head,
        block_bytes: 200,
        table_bytes: 3000,
        compact_at_runs: 100,
        slow_at_runs: 200,
        stop_at_runs: 300,
        ..KeyspaceOptions::default()
    };
    let options = DbOptions {
        vfs: Arc::clone(vfs) as Arc<dyn Vfs>,
        background_threads: 0,
        ..DbOptions::default()
    };
    let db = Db::open("/db", options.keyspace("heads", space)).unwrap();
    let space = db.keyspace("heads").unwrap();
    (db, space)
}

fn name(number: u32) -> Vec<u8> {
    // Some are prefixes of others.
    format!("head {}", number / 3 + 10u32.pow(number % 3)).into_bytes()
}

fn put(db: &Db, space: &Keyspace, head: &[u8], value: &[u8]) {
    let mut batch = WriteBatch::new();
    batch.put_sequenced(space, head, value, None);
    db.write(batch, Durability::Buffered).unwrap();
}

/// The values of a head, by a scan that uses filters.
fn values(db: &Db, space: &Keyspace, head: &[u8]) -> Vec<Vec<u8>> {
    let mut upper = head.to_vec();
    upper.extend_from_slice(&[u8::MAX; 9]);
    let lower = Included(head);
    let mut scan = db
        .scan_head(space, head, lower, Excluded(&upper), None)
        .unwrap();
    let mut found = Vec::new();
    scan.first().unwrap();
    while scan.is_valid() {
        if scan.key().len() == head.len() + 8 {
            found.push(scan.value().to_vec());
        }
        scan.advance().unwrap();
    }
    found
}

/// The values of two heads, by one seek of a reused scan.
fn by_seek(scan: &mut Scan, pair: &[Vec<u8>; 2]) -> Vec<Vec<Vec<u8>>> {
    let heads = [pair[0].as_slice(), pair[1].as_slice()];
    scan.seek_heads(heads[0], &heads).unwrap();
    let mut found = vec![Vec::new(), Vec::new()];
    let behind = |head: &[u8]| [head, &[u8::MAX; 9]].concat();
    let end = behind(heads[0]).max(behind(heads[1]));
    while scan.is_valid() && scan.key() < end.as_slice() {
        for (values, head) in found.iter_mut().zip(heads) {
            if scan.key().len() == head.len() + 8 && scan.key().starts_with(head) {
                values.push(scan.value().to_vec());
            }
        }
        scan.advance().unwrap();
    }
    found
}

#[test]
fn every_entry_of_a_head_is_found_whatever_filters_knew_when_it_was_written() {
    let vfs = Arc::new(MemoryVfs::new());
    let mut written: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
    // Tables are written with filters over whole keys, over heads, and over other heads.
    for (round, tail_bytes) in [(0_u32, 0), (1, 8), (2, 8), (3, 5), (4, 8)] {
        let (db, space) = open(&vfs, KeyHead::FixedTail(tail_bytes));
        for number in 0..400 {
            let head = name(number * 7 % (200 + round));
            let value = format!("{round} {number}").into_bytes();
            put(&db, &space, &head, &value);
            written.push((head, value));
        }
        db.flush().unwrap();
        if round == 2 {
            db.compact(&space).unwrap();
        }
        // With other tail lengths, these are not heads of the keyspace.
        let heads = if tail_bytes == 5 { 0 } else { 220 };
        for number in 0..heads {
            let head = name(number);
            let expected = written.iter().rev().filter(|(of, _)| *of == head);
            let expected: Vec<Vec<u8>> = expected.map(|(_, value)| value.clone()).collect();
            assert_eq!(values(&db, &space, &head), expected, "round {round}");
        }
        let mut scan = db.scan(&space, Unbounded, Unbounded, None).unwrap();
        for number in 1..heads {
            // One scan seeks from heads to heads, forward and backward.
            let mut pair = [name(number), name(number * 31 % 220)];
            pair.sort();
            assert_eq!(
                by_seek(&mut scan, &pair),
                pair.iter()
                    .map(|head| values(&db, &space, head))
                    .collect::<Vec<_>>(),
                "round {round}"
            );
        }
        scan.first().unwrap();
        while scan.is_valid() {
            let got = db.get(&space, scan.key()).unwrap().unwrap();
            assert_eq!(*got, *scan.value());
            scan.advance().unwrap();
        }
        db.close().unwrap();
    }
}

fn blocks_read(db: &Db, read: impl FnOnce()) -> u64 {
    let before = db.stats();
    read();
    let after = db.stats();
    after.cache_hits + after.cache_misses - before.cache_hits - before.cache_misses
}

#[test]
fn a_scan_of_a_head_reads_no_block_of_runs_that_do_not_have_it() {
    let read_with = |tail_bytes| {
        let (db, space) = open(&Arc::new(MemoryVfs::new()), KeyHead::FixedTail(tail_bytes));
        for run in 0..20_u32 {
            for number in 0..50 {
                put(
                    &db,
                    &space,
                    format!("head {run:02} {number:02}").as_bytes(),
                    b"x",
                );
            }
            // All runs cover the whole range of keys.
            put(&db, &space, b"a", b"x");
            put(&db, &space, b"z", b"x");
            db.flush().unwrap();
        }
        blocks_read(&db, || {
            assert_eq!(values(&db, &space, b"head 07 07").len(), 1);
        })
    };
    assert!(read_with(8) * 4 < read_with(0));
}

#[test]
fn a_list_is_read_from_the_runs_that_have_it() {
    let read_with = |tail_bytes| {
        let (db, space) = open(&Arc::new(MemoryVfs::new()), KeyHead::FixedTail(tail_bytes));
        for run in 0..20_u64 {
            for list in [run, 100 + run, 200] {
                let mut batch = WriteBatch::new();
                let element = (run, run, &b"payload"[..]);
                batch.append(&space, &list.to_be_bytes(), 1, element, None);
                db.write(batch, Durability::Buffered).unwrap();
            }
            db.flush().unwrap();
        }
        let elements = |list: u64| {
            let mut scan = db
                .list(&space, &list.to_be_bytes(), 1, ListFilter::ALL, None)
                .unwrap();
            let mut count = 0;
            while scan.next_element().unwrap().is_some() {
                count += 1;
            }
            count
        };
        assert_eq!(elements(200), 20);
        blocks_read(&db, || {
            assert_eq!(elements(7), 1);
        })
    };
    assert!(read_with(8) * 4 < read_with(0));
}

/// A key with a head and a tail of any length, or a key that is looked up whole.
fn key(head: &str, tail: &str) -> Vec<u8> {
    let length = u8::try_from(head.len() + 1).unwrap();
    let length = if tail.is_empty() { 0 } else { length };
    [&[length], head.as_bytes(), tail.as_bytes()].concat()
}

fn by_length() -> KeyHead {
    KeyHead::Function(Arc::new(PrefixLength))
}

/// Twenty runs with heads of different lengths, all of which cover the whole range of keys.
fn fill_runs(db: &Db, space: &Keyspace) {
    for run in 0..20_u32 {
        let mut batch = WriteBatch::new();
        for number in 0..50_usize {
            let name = format!("{number:02} {run:02}{}", "x".repeat(number % 7));
            batch.put(space, &key(&name, &"tail".repeat(1 + number % 3)), b"x");
            batch.put(space, &key(&name, ""), b"x");
        }
        batch.put(space, &[0], b"x");
        batch.put(space, &[99], b"x");
        db.write(batch, Durability::Buffered).unwrap();
        db.flush().unwrap();
    }
}

fn count_of(db: &Db, space: &Keyspace, key: &[u8]) -> usize {
    let head = &space.options().head;
    let of = by_length().of(key).to_vec();
    let end = prefix_end(&of);
    let upper = end.as_deref().map_or(Unbounded, Excluded);
    let mut scan = db
        .scan_head(space, &of, Included(&of), upper, None)
        .unwrap();
    scan.first().unwrap();
    let heads = [head.of(key)];
    forward(&mut scan, head, &heads, None).len()
}

#[test]
fn runs_without_a_head_are_not_read_whatever_the_length_of_its_tail() {
    let read_with = |head| {
        let (db, space) = open(&Arc::new(MemoryVfs::new()), head);
        fill_runs(&db, &space);
        blocks_read(&db, || {
            assert_eq!(count_of(&db, &space, &key("13 07xxxxxx", "tailtail")), 1);
        })
    };
    assert!(read_with(by_length()) * 4 < read_with(KeyHead::Whole));
}

#[test]
fn runs_without_a_key_are_not_read_if_its_head_is_the_whole_key() {
    let read_with = |head| {
        let vfs = Arc::new(MemoryVfs::new());
        let (db, space) = open(&vfs, by_length());
        fill_runs(&db, &space);
        db.close().unwrap();
        let (db, space) = open(&vfs, head);
        blocks_read(&db, || {
            assert!(db.get(&space, &key("13 07xxxxxx", "")).unwrap().is_some());
        })
    };
    // Filters by another function exclude nothing.
    let with_other = read_with(KeyHead::Function(Arc::new(FirstHalf)));
    assert!(read_with(by_length()) * 4 < with_other);
    assert_eq!(read_with(KeyHead::Whole), with_other);
}

#[test]
fn a_range_delete_applies_to_heads_that_the_filter_of_its_table_excludes() {
    for head in [KeyHead::Whole, KeyHead::FixedTail(4), by_length()] {
        let (db, space) = open(&Arc::new(MemoryVfs::new()), head);
        let (deleted, remaining) = (key("some", "tail"), key("soon", "tail"));
        for key in [&deleted, &remaining] {
            let mut batch = WriteBatch::new();
            batch.put(&space, key, b"x");
            db.write(batch, Durability::Buffered).unwrap();
        }
        db.flush().unwrap();
        let snapshot = db.snapshot();
        let mut batch = WriteBatch::new();
        batch.put(&space, &key("other", "tail"), b"x");
        batch.delete_range(&space, &key("some", " "), &key("some", "x"));
        db.write(batch, Durability::Buffered).unwrap();
        db.flush().unwrap();
        let count = |key: &[u8]| {
            let head = &space.options().head;
            let mut scan = db.scan(&space, Unbounded, Unbounded, None).unwrap();
            scan.seek_heads(key, &[head.of(key)]).unwrap();
            let by_seek = forward(&mut scan, head, &[head.of(key)], None).len();
            assert_eq!(count_of(&db, &space, key), by_seek);
            assert_eq!(db.get(&space, key).unwrap().is_some(), by_seek == 1);
            by_seek
        };
        assert_eq!([count(&deleted), count(&remaining)], [0, 1]);
        assert!(db.get_at(&space, &deleted, &snapshot).unwrap().is_some());
    }
}
