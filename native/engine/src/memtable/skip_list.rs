//! A concurrent skip list in which nothing is ever removed.
//!
//! Nodes are filled once, in [`Slots`], and refer to one another by number, so no pointer and no
//! `unsafe` is needed. Any number of threads insert and read at once:
//!
//! - A node's fields never change after it was pushed; only its links do.
//! - A link is set by compare-and-swap with release order, from the lowest level up. Who finds a
//!   node by a link therefore sees it whole, and a node is found on the lowest level first.
//! - Numbers of nodes are never reused, so a compare-and-swap cannot mistake one node for another.
//!
//! The first eight bytes of a key stand in its node, which spares most comparisons a cache miss.

use std::cmp::Ordering as Order;
use std::ops::Range;
use std::sync::Arc;

use super::slots::Slots;
use super::sync::{AtomicU32, LEVELS, Ordering};
use crate::key::{Tag, prefix_number};

/// Levels whose links stand in the node itself; 15 of 16 nodes have no more.
const LOW: usize = 2;
const HIGH: usize = LEVELS - LOW;
/// The number that no node has: the head as a predecessor, the end as a successor.
const NONE: u32 = 0;

/// An entry and its links.
#[derive(Debug)]
pub(crate) struct Node {
    prefix: u64,
    tag: Tag,
    batch: Arc<[u8]>,
    key_at: u32,
    key_length: u32,
    value_at: u32,
    value_length: u32,
    low: [AtomicU32; LOW],
    high: Option<Box<[AtomicU32; HIGH]>>,
}

impl Node {
    /// The entry whose key and value are these ranges of `batch`.
    fn new(
        batch: &Arc<[u8]>,
        key: &Range<u32>,
        value: &Range<u32>,
        tag: Tag,
        height: usize,
    ) -> Self {
        let high = (height > LOW).then(|| Box::new(std::array::from_fn(|_| AtomicU32::new(NONE))));
        let bytes = batch
            .get(key.start as usize..key.end as usize)
            .unwrap_or_default();
        Self {
            prefix: prefix_number(bytes),
            tag,
            batch: Arc::clone(batch),
            key_at: key.start,
            key_length: key.end.saturating_sub(key.start),
            value_at: value.start,
            value_length: value.end.saturating_sub(value.start),
            low: std::array::from_fn(|_| AtomicU32::new(NONE)),
            high,
        }
    }

    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let at = self.key_at as usize;
        self.batch
            .get(at..at + self.key_length as usize)
            .unwrap_or_default()
    }

    pub(crate) fn value(&self) -> &[u8] {
        let at = self.value_at as usize;
        self.batch
            .get(at..at + self.value_length as usize)
            .unwrap_or_default()
    }

    /// The batch that the value lies in, where, and how long it is.
    pub(crate) fn place(&self) -> (&Arc<[u8]>, u32, u32) {
        (&self.batch, self.value_at, self.value_length)
    }

    #[inline]
    fn link(&self, level: usize) -> Option<&AtomicU32> {
        match self.low.get(level) {
            Some(link) => Some(link),
            None => self.high.as_ref()?.get(level - LOW),
        }
    }

    #[inline]
    fn compare(&self, target: &Target<'_>) -> Order {
        self.prefix
            .cmp(&target.prefix)
            .then_with(|| self.key().cmp(target.key))
            .then_with(|| target.tag.cmp(&self.tag))
    }
}

/// A place in the order of entries.
struct Target<'a> {
    prefix: u64,
    key: &'a [u8],
    tag: Tag,
}

impl<'a> Target<'a> {
    fn new(key: &'a [u8], tag: Tag) -> Self {
        Self {
            prefix: prefix_number(key),
            key,
            tag,
        }
    }
}

/// Entries in order of [`crate::key::compare`].
#[derive(Debug)]
pub(crate) struct SkipList {
    nodes: Slots<Node>,
    head: [AtomicU32; LEVELS],
    /// The last node of each level, or one that was; where inserting in order begins.
    tails: [AtomicU32; LEVELS],
    /// Decides the heights of nodes.
    dice: AtomicU32,
}

/// Neighbours of a place on each level.
#[derive(Default)]
struct Around {
    before: [u32; LEVELS],
    after: [u32; LEVELS],
}

impl SkipList {
    pub(crate) fn new() -> Self {
        Self {
            nodes: Slots::new(),
            head: std::array::from_fn(|_| AtomicU32::new(NONE)),
            tails: std::array::from_fn(|_| AtomicU32::new(NONE)),
            dice: AtomicU32::new(0),
        }
    }

    pub(crate) fn len(&self) -> u32 {
        self.nodes.len()
    }

    #[inline]
    pub(crate) fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.get(number)
    }

    /// Adds an entry, whose place must not be taken. Returns false when the list is full.
    pub(crate) fn insert(
        &self,
        batch: &Arc<[u8]>,
        key: &Range<u32>,
        value: &Range<u32>,
        tag: Tag,
    ) -> bool {
        let height = self.roll_height();
        let Some(number) = self.nodes.push(Node::new(batch, key, value, tag, height)) else {
            return false;
        };
        let Some(node) = self.nodes.get(number) else {
            return false;
        };
        let target = Target::new(node.key(), tag);
        let mut around = Around::default();
        if !self.around_end(&target, height, &mut around) {
            self.find(&target, &mut around);
        }
        for level in 0..height {
            while !self.connect(node, number, level, &around) {
                self.find(&target, &mut around);
            }
        }
        true
    }

    /// Links a node in on one level, unless somebody else was faster.
    fn connect(&self, node: &Node, number: u32, level: usize, around: &Around) -> bool {
        let before = around.before.get(level).copied().unwrap_or(NONE);
        let after = around.after.get(level).copied().unwrap_or(NONE);
        let (Some(own), Some(link)) = (node.link(level), self.link(before, level)) else {
            return true;
        };
        own.store(after, Ordering::Relaxed);
        let swapped = link.compare_exchange(after, number, Ordering::AcqRel, Ordering::Relaxed);
        if swapped.is_ok()
            && after == NONE
            && let Some(tail) = self.tails.get(level)
        {
            tail.store(number, Ordering::Release);
        }
        swapped.is_ok()
    }

    #[inline]
    fn link(&self, before: u32, level: usize) -> Option<&AtomicU32> {
        if before == NONE {
            return self.head.get(level);
        }
        self.nodes.get(before)?.link(level)
    }

    /// The successor of a node, or of the head, on a level.
    #[inline]
    fn follow(&self, before: u32, level: usize) -> u32 {
        self.link(before, level)
            .map_or(NONE, |link| link.load(Ordering::Acquire))
    }

    /// Each level is four times as thin as the one below.
    fn roll_height(&self) -> usize {
        let turn = u64::from(self.dice.fetch_add(1, Ordering::Relaxed));
        let mixed = (turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let zeros = (mixed >> 32).trailing_zeros() as usize / 2;
        (zeros + 1).min(LEVELS)
    }

    /// Whether the place is behind the last entries of the lowest `height` levels; then `around`
    /// is those. One that is no longer last is noticed when its link is set.
    fn around_end(&self, target: &Target<'_>, height: usize, around: &mut Around) -> bool {
        for (before, tail) in around.before.iter_mut().zip(&self.tails).take(height) {
            *before = tail.load(Ordering::Acquire);
            match self.nodes.get(*before) {
                Some(node) if node.compare(target) == Order::Less => {}
                _ => return false,
            }
        }
        true
    }

    fn find(&self, target: &Target<'_>, around: &mut Around) {
        let mut before = NONE;
        let mut beyond = NONE;
        let levels = around
            .before
            .iter_mut()
            .zip(&mut around.after)
            .enumerate()
            .rev();
        for (level, (before_slot, after_slot)) in levels {
            let mut after = self.follow(before, level);
            while after != NONE && after != beyond {
                match self.nodes.get(after) {
                    Some(node) if node.compare(target) == Order::Less => {
                        before = after;
                        after = self.follow(before, level);
                    }
                    _ => break,
                }
            }
            beyond = after;
            (*before_slot, *after_slot) = (before, after);
        }
    }

    /// The last node before `(key, tag)` and the first at or behind it.
    fn neighbours(&self, key: &[u8], tag: Tag) -> (u32, u32) {
        let target = Target::new(key, tag);
        let mut before = NONE;
        let mut beyond = NONE;
        for level in (0..LEVELS).rev() {
            let mut after = self.follow(before, level);
            while after != NONE && after != beyond {
                match self.nodes.get(after) {
                    Some(node) if node.compare(&target) == Order::Less => {
                        before = after;
                        after = self.follow(before, level);
                    }
                    _ => break,
                }
            }
            beyond = after;
        }
        (before, beyond)
    }

    /// The first node at or behind `(key, tag)`, or 0.
    pub(crate) fn seek(&self, key: &[u8], tag: Tag) -> u32 {
        self.neighbours(key, tag).1
    }

    /// The last node before `(key, tag)`, or 0.
    pub(crate) fn before(&self, key: &[u8], tag: Tag) -> u32 {
        self.neighbours(key, tag).0
    }

    /// The node behind another, or 0; behind 0 is the first.
    pub(crate) fn next(&self, number: u32) -> u32 {
        self.follow(number, 0)
    }

    /// The last node, or 0.
    pub(crate) fn last(&self) -> u32 {
        let mut before = NONE;
        for level in (0..LEVELS).rev() {
            loop {
                let after = self.follow(before, level);
                if after == NONE {
                    break;
                }
                before = after;
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Kind;

    fn insert(list: &SkipList, key: &[u8], sequence: u64) {
        let batch: Arc<[u8]> = key.into();
        let length = u32::try_from(key.len()).unwrap();
        assert!(list.insert(
            &batch,
            &(0..length),
            &(0..length),
            Tag::new(sequence, Kind::Put)
        ));
    }

    fn keys(list: &SkipList) -> Vec<(Vec<u8>, u64)> {
        let mut found = Vec::new();
        let mut at = list.next(0);
        while let Some(node) = list.node(at) {
            found.push((node.key().to_vec(), node.tag().sequence()));
            at = list.next(at);
        }
        found
    }

    fn scrambled(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| (number * 7919) % count)
    }

    #[test]
    fn entries_are_in_order_whatever_order_they_came_in() {
        let list = SkipList::new();
        for number in scrambled(4001) {
            insert(&list, number.to_string().as_bytes(), number + 1);
        }
        let found = keys(&list);
        assert_eq!(found.len(), 4001);
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!(
            list.node(list.last()).unwrap().key(),
            found.last().unwrap().0
        );
    }

    #[test]
    fn the_newest_of_a_key_comes_first_and_a_seek_finds_what_a_snapshot_sees() {
        let list = SkipList::new();
        for sequence in [3, 9, 6] {
            insert(&list, b"key", sequence);
        }
        insert(&list, b"kez", 1);
        let seen = list.node(list.seek(b"key", Tag::seek(8))).unwrap();
        assert_eq!(seen.tag().sequence(), 6);
        let behind = list.node(list.seek(b"key", Tag::seek(2))).unwrap();
        assert_eq!(behind.key(), b"kez");
        let before = list.node(list.before(b"kez", Tag::NEWEST)).unwrap();
        assert_eq!(before.tag().sequence(), 3);
        assert_eq!(list.seek(b"z", Tag::NEWEST), 0);
    }

    #[test]
    fn keys_that_are_prefixes_of_one_another_are_told_apart() {
        let list = SkipList::new();
        for key in [&b"a\0\0"[..], b"a", b"a\0", b"", b"aaaaaaaaa", b"aaaaaaaa"] {
            insert(&list, key, 1);
        }
        let found: Vec<Vec<u8>> = keys(&list).into_iter().map(|(key, _)| key).collect();
        let mut sorted = found.clone();
        sorted.sort();
        assert_eq!(found, sorted);
    }

    #[test]
    fn threads_insert_at_once_and_lose_nothing() {
        let list = SkipList::new();
        std::thread::scope(|scope| {
            for thread in 0..4_u64 {
                let list = &list;
                scope.spawn(move || {
                    for number in scrambled(3001) {
                        let key = (number * 4 + thread).to_be_bytes();
                        insert(list, &key, 1);
                    }
                });
            }
        });
        let found = keys(&list);
        assert_eq!(found.len(), 4 * 3001);
        assert!(found.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
