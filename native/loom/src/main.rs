//! Every order of steps of threads that fill and read a memtable's skip list.
//!
//! The list, its arena and the memtable's filter are the engine's own source files; only the atomics
//! that they use are loom's, which runs each model below in every order that the memory model allows,
//! and what stands for the bytes of nodes, which must be written before they are read.
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
        ("pieces taken by two threads lie apart", pieces),
        ("entries at two places come in order", at_two_places),
        ("entries at one place come in order", at_one_place),
        ("entries at the end come in order", at_the_end),
        ("a reader finds what was published", published),
        ("a walk beside an insert is in order", walked),
    ];
    for (name, model) in models {
        loom::model(model);
        println!("{name}: every order tried");
    }
}

fn insert(list: &SkipList, key: &[u8], tag: u64) {
    assert!(list.insert(key, key, tag).is_some());
}

fn key(list: &SkipList, at: ListCursor) -> Option<Vec<u8>> {
    list.entry(at).map(|entry| {
        assert_eq!(entry.key(), entry.value(), "who finds a node sees it whole");
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

/// Two threads insert while the list has some entries already; all are there, found by a walk and by
/// a search from the highest level.
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

fn at_two_places() {
    two_inserts(&[b"f", b"m"], b"c", b"p");
}

fn at_one_place() {
    two_inserts(&[b"a", b"z"], b"m", b"n");
}

fn at_the_end() {
    two_inserts(&[b"a"], b"m", b"n");
}

/// Pieces that fill the first chunk and begin the next; each lies where its number says.
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

/// The filter and the entry are there for who learned of the entry from its writer.
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

/// What was there before is seen by every walk; what comes beside it is seen whole or not at all.
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
