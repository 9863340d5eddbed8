//! Every order of steps of threads that fill and read a memtable's skip list.
//!
//! The list, its slots and its filter are the engine's own source files; only the atomics that they
//! use are loom's, which runs each model below in every order that the memory model allows.
#![allow(dead_code, reason = "not all of the engine's files is used here")]

#[path = "../../engine/src/coding.rs"]
mod coding;
#[path = "../../engine/src/key.rs"]
mod key;

#[path = "../../engine/src/table"]
mod table {
    pub(crate) mod filter;
}

#[path = "../../engine/src/memtable"]
mod memtable {
    pub(crate) mod bloom;
    pub(crate) mod skip_list;
    pub(crate) mod slots;
    #[path = "../../../loom/src/sync.rs"]
    pub(crate) mod sync;
}

use std::sync::Arc as Batch;

use key::{Kind, Tag};
use loom::sync::Arc;
use loom::thread;
use memtable::bloom::Bloom;
use memtable::skip_list::SkipList;
use memtable::slots::Slots;
use memtable::sync::{AtomicU32, Ordering};

fn main() {
    let models: [(&str, fn()); 6] = [
        ("slots filled by two threads keep both", slots),
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

fn insert(list: &SkipList, key: &[u8], sequence: u64) {
    let batch: Batch<[u8]> = key.into();
    let length = u32::try_from(key.len()).expect("keys here are short");
    let tag = Tag::new(sequence, Kind::Put);
    assert!(list.insert(&batch, &(0..length), &(0..length), tag));
}

fn keys(list: &SkipList) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let mut at = list.next(0);
    while at != 0 {
        let node = list.node(at).expect("who finds a node sees it whole");
        found.push(node.key().to_vec());
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
        let node = list.node(list.seek(key, Tag::NEWEST));
        assert_eq!(node.map(|node| node.key()), Some(key.as_slice()));
    }
    let last = list.node(list.last()).map(|node| node.key().to_vec());
    assert_eq!(last.as_ref(), found.last());
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

fn slots() {
    let slots = Arc::new(Slots::new());
    let first = slots.push(10).expect("there is room");
    let other = Arc::clone(&slots);
    let thread = thread::spawn(move || other.push(20).expect("there is room"));
    let mine = slots.push(30).expect("there is room");
    assert_eq!(slots.get(mine), Some(&30));
    let theirs = thread.join().expect("the other push ended");
    assert!(first != mine && mine != theirs && theirs != first);
    assert_eq!(slots.get(first), Some(&10));
    assert_eq!(slots.get(theirs), Some(&20));
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
        assert!(list.node(list.seek(b"key", Tag::NEWEST)).is_some());
        assert!(list.node(list.last()).is_some());
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
