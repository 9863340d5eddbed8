//! Explores every interleaving of threads that write and read a memtable's skip list.
//!
//! The list, its arena and the memtable's filter are the engine's own source files. Their atomics
//! are replaced by loom's, which runs each model below in every order that the memory model allows.
//! A stand-in for the bytes of a node checks that they are written before they are read.
#![allow(dead_code, reason = "not all of the engine's files is used here")]

#[path = "../../engine/src/coding.rs"]
mod coding;
mod sync;

#[path = "../../engine/src/table"]
mod table {
    pub(crate) mod filter;
}

#[path = "../../engine/src/memtable"]
mod memtable {
    pub(crate) mod bloom;
    pub(crate) use crate::sync;
}

#[path = "../../skip_list/src"]
mod skip_list {
    pub(crate) mod arena;
    pub(crate) mod list;
    pub(crate) mod node;
    pub(crate) use crate::sync;
}

use loom::sync::Arc;
use loom::thread;
use memtable::bloom::Bloom;
use skip_list::arena::{Arena, UNIT};
use skip_list::list::{ListCursor, SkipList};
use sync::{AtomicU32, Ordering};

fn main() {
    let models: [(&str, fn()); 6] = [
        ("pieces of two threads do not overlap", pieces),
        ("entries at two positions are in order", at_two_positions),
        ("entries at one position are in order", at_one_position),
        ("entries at the end are in order", at_the_end),
        ("a reader finds what was published", published),
        ("a walk during an insert is in order", walked),
    ];
    for (name, model) in models {
        loom::model(model);
        println!("{name}: every interleaving explored");
    }
}

fn insert(list: &SkipList, key: &[u8], tag: u64) {
    assert!(list.insert(key, key, tag).is_some());
}

fn key(list: &SkipList, at: ListCursor) -> Option<Vec<u8>> {
    list.entry(at).map(|entry| {
        assert_eq!(entry.key(), entry.value(), "a node that is found is complete");
        entry.key().to_vec()
    })
}

fn keys(list: &SkipList) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = list.first();
    while let Some(key) = key(list, at) {
        found.push(key);
        at = list.next(at);
    }
    found
}

fn is_sorted(keys: &[Vec<u8>]) -> bool {
    keys.windows(2).all(|pair| pair[0] < pair[1])
}

/// Two threads insert into a list that already has entries; a walk and a search from the highest
/// level find all of them.
fn two_inserts(before: &[&'static [u8]], first: &'static [u8], second: &'static [u8]) {
    let list = Arc::new(SkipList::new());
    for key in before {
        insert(&list, key, 1);
    }
    let other = Arc::clone(&list);
    let thread = thread::spawn(move || insert(&other, first, 1));
    insert(&list, second, 1);
    thread.join().expect("the other insert ended");
    let found = keys(&list);
    assert_eq!(found.len(), before.len() + 2);
    assert!(is_sorted(&found));
    for key in &found {
        assert_eq!(
            self::key(&list, list.seek(key, u64::MAX)).as_ref(),
            Some(key)
        );
    }
    assert_eq!(key(&list, list.last()).as_ref(), found.last());
}

fn at_two_positions() {
    two_inserts(&[b"f", b"m"], b"c", b"p");
}

fn at_one_position() {
    two_inserts(&[b"a", b"z"], b"m", b"n");
}

fn at_the_end() {
    two_inserts(&[b"a"], b"m", b"n");
}

/// Pieces fill the first chunk and start the next one; the number of each locates it.
fn pieces() {
    let arena = Arc::new(Arena::new());
    let take = |arena: &Arena| {
        let (number, start) = arena.take(6 * UNIT).expect("there is room");
        assert_eq!(arena.find(number), Some(start));
        number
    };
    let first = take(&arena);
    let other = Arc::clone(&arena);
    let thread = thread::spawn(move || take(&other));
    let mine = take(&arena);
    let theirs = thread.join().expect("the other one was given a piece");
    let mut numbers = [first, mine, theirs];
    numbers.sort_unstable();
    assert!(numbers.windows(2).all(|pair| pair[0] + 6 <= pair[1]));
    assert!(numbers.iter().all(|&number| arena.find(number).is_some()));
}

/// A thread that learns of an entry from its writer sees the entry, and the filter that admits it.
fn published() {
    let shared = Arc::new((SkipList::new(), Bloom::new(0), AtomicU32::new(0)));
    let writer = Arc::clone(&shared);
    let hash = 0x1234_5678_9abc_def0;
    let thread = thread::spawn(move || {
        let (list, bloom, visible) = &*writer;
        bloom.add(hash);
        insert(list, b"key", 1);
        visible.store(1, Ordering::Release);
    });
    let (list, bloom, visible) = &*shared;
    if visible.load(Ordering::Acquire) == 1 {
        assert!(bloom.may_contain(hash));
        assert!(key(list, list.seek(b"key", u64::MAX)).is_some());
        assert!(key(list, list.last()).is_some());
    }
    thread.join().expect("the writer ended");
}

/// Every walk sees the earlier entries; it sees a concurrent entry completely or not at all.
fn walked() {
    let list = Arc::new(SkipList::new());
    insert(&list, b"a", 1);
    insert(&list, b"z", 1);
    let writer = Arc::clone(&list);
    let thread = thread::spawn(move || insert(&writer, b"m", 1));
    let seen = keys(&list);
    assert!(is_sorted(&seen));
    assert!(seen.len() >= 2);
    assert!(seen.contains(&b"a".to_vec()) && seen.contains(&b"z".to_vec()));
    thread.join().expect("the writer ended");
    assert_eq!(keys(&list).len(), 3);
}
