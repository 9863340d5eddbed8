//! An ordered list from which nothing is ever removed.
//!
//! Any number of threads insert and read at once:
//!
//! - A link is set by compare-and-swap, from the lowest level up. A node is found on the lowest
//!   level first, and is completely initialized for every thread that finds it.
//! - Numbers of nodes are never reused, so a compare-and-swap cannot mistake one node for another.

use std::cmp::Ordering as Order;
use std::sync::atomic::AtomicU64 as Counter;

use super::node::{Link, NodeNumber, Nodes, SkipListNode};
use super::sync::{AtomicU32, LEVELS, Ordering};

/// The id of the next list.
static LISTS: Counter = Counter::new(1);

/// A position in one list: an entry, or none. A list treats cursors of other lists as none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListCursor {
    list: u64,
    node: NodeNumber,
}

impl ListCursor {
    /// No entry of any list.
    pub const NOWHERE: Self = Self {
        list: 0,
        node: NodeNumber::NONE,
    };

    /// Whether there is an entry.
    #[inline]
    #[must_use]
    pub fn is_entry(self) -> bool {
        self.node != NodeNumber::NONE
    }
}

/// An entry of a list.
#[derive(Debug, Clone, Copy)]
pub struct SkipListEntry<'a>(SkipListNode<'a>);

impl<'a> SkipListEntry<'a> {
    /// Its key.
    #[inline]
    #[must_use]
    pub fn key(self) -> &'a [u8] {
        self.0.key()
    }

    /// Its value.
    #[inline]
    #[must_use]
    pub fn value(self) -> &'a [u8] {
        self.0.value()
    }

    /// Orders the entries of a key, the largest tag first.
    #[inline]
    #[must_use]
    pub fn tag(self) -> u64 {
        self.0.tag()
    }

    #[inline]
    fn compare(self, target: &SearchTarget<'_>) -> Order {
        let key = self.key();
        let order = match key.first_chunk() {
            // One comparison of numbers decides nearly always.
            Some(head) => u64::from_be_bytes(*head).cmp(&target.head),
            None => Order::Equal,
        };
        order
            .then_with(|| key.cmp(target.key))
            .then_with(|| target.tag.cmp(&self.tag()))
    }
}

/// A position in the order of entries.
struct SearchTarget<'a> {
    /// The key's first bytes, padded with zeros: never above the head of a greater key, never below
    /// that of a smaller key.
    head: u64,
    key: &'a [u8],
    tag: u64,
}

impl<'a> SearchTarget<'a> {
    fn new(key: &'a [u8], tag: u64) -> Self {
        let mut head = [0; 8];
        for (slot, &byte) in head.iter_mut().zip(key) {
            *slot = byte;
        }
        Self {
            head: u64::from_be_bytes(head),
            key,
            tag,
        }
    }
}

/// Entries in order of their keys, then of their tags, the largest first.
#[derive(Debug)]
pub struct SkipList {
    /// Identifies the list.
    id: u64,
    nodes: Nodes,
    head: [Link; LEVELS],
    /// The last node of each level, or a former one; ordered insertion starts here.
    tails: [Link; LEVELS],
    /// The number of nodes, from which their heights are derived.
    count: AtomicU32,
}

/// The neighbours of a position on each level.
struct Neighbours {
    before: [NodeNumber; LEVELS],
    after: [NodeNumber; LEVELS],
}

impl Default for SkipList {
    fn default() -> Self {
        Self::new()
    }
}

impl SkipList {
    /// An empty list.
    #[must_use]
    pub fn new() -> Self {
        Self {
            id: LISTS.fetch_add(1, Ordering::Relaxed),
            nodes: Nodes::new(),
            head: std::array::from_fn(|_| Link::none()),
            tails: std::array::from_fn(|_| Link::none()),
            count: AtomicU32::new(0),
        }
    }

    /// The number of entries, including insertions that failed because the list was full.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether nothing was ever inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    #[allow(
        unsafe_code,
        reason = "numbers are used only in this file, each with the list that it belongs to"
    )]
    fn node(&self, number: NodeNumber) -> Option<SkipListEntry<'_>> {
        // SAFETY: numbers come from `push` of these nodes, in the thread that inserts, or from the
        // links of this list, which hold only such numbers. The number of a `ListCursor` is checked
        // against its list by `number`, and a `ListCursor` is not atomic, so passing it between
        // threads synchronizes them.
        unsafe { self.nodes.get(number) }.map(SkipListEntry)
    }

    fn number(&self, at: ListCursor) -> NodeNumber {
        if at.list == self.id {
            at.node
        } else {
            NodeNumber::NONE
        }
    }

    fn at(&self, node: NodeNumber) -> ListCursor {
        ListCursor {
            list: self.id,
            node,
        }
    }

    /// The entry at a cursor.
    #[inline]
    #[must_use]
    pub fn entry(&self, at: ListCursor) -> Option<SkipListEntry<'_>> {
        self.node(self.number(at))
    }

    /// Adds an entry, whose key and tag must be unique. Returns its size in memory; `None` if the
    /// list is full.
    pub fn insert(&self, key: &[u8], value: &[u8], tag: u64) -> Option<usize> {
        let height = self.roll_height();
        let (number, size) = self.nodes.push(key, value, tag, height)?;
        let entry = self.node(number)?;
        let target = SearchTarget::new(key, tag);
        let mut neighbours = Neighbours {
            before: [NodeNumber::NONE; LEVELS],
            after: [NodeNumber::NONE; LEVELS],
        };
        if !self.neighbours_at_end(&target, height, &mut neighbours) {
            self.find(&target, &mut neighbours);
        }
        for level in 0..height {
            while !self.connect(entry, number, level, &neighbours) {
                self.find(&target, &mut neighbours);
            }
        }
        Some(size)
    }

    /// Links a node on one level, unless another thread was faster.
    fn connect(
        &self,
        entry: SkipListEntry<'_>,
        number: NodeNumber,
        level: usize,
        neighbours: &Neighbours,
    ) -> bool {
        let before = neighbours
            .before
            .get(level)
            .copied()
            .unwrap_or(NodeNumber::NONE);
        let after = neighbours
            .after
            .get(level)
            .copied()
            .unwrap_or(NodeNumber::NONE);
        let (Some(own), Some(link)) = (entry.0.link(level), self.link(before, level)) else {
            return true;
        };
        own.set(after);
        let linked = link.replace(after, number);
        if let (true, NodeNumber::NONE, Some(tail)) = (linked, after, self.tails.get(level)) {
            tail.set(number);
        }
        linked
    }

    #[inline]
    fn link(&self, before: NodeNumber, level: usize) -> Option<&Link> {
        if before == NodeNumber::NONE {
            return self.head.get(level);
        }
        self.node(before)?.0.link(level)
    }

    /// The successor of a node, or of the head, on a level.
    #[inline]
    fn follow(&self, before: NodeNumber, level: usize) -> NodeNumber {
        self.link(before, level).map_or(NodeNumber::NONE, Link::get)
    }

    /// Each level has about a quarter of the nodes of the one below.
    fn roll_height(&self) -> usize {
        let number = u64::from(self.count.fetch_add(1, Ordering::Relaxed));
        let mixed = (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let zeros = (mixed >> 32).trailing_zeros() as usize / 2;
        (zeros + 1).min(LEVELS)
    }

    /// Whether the position is after the last entries of the lowest `height` levels; then `neighbours`
    /// is set to those. If one is no longer the last, setting its link fails.
    fn neighbours_at_end(
        &self,
        target: &SearchTarget<'_>,
        height: usize,
        neighbours: &mut Neighbours,
    ) -> bool {
        for (before, tail) in neighbours.before.iter_mut().zip(&self.tails).take(height) {
            *before = tail.get();
            match self.node(*before) {
                Some(entry) if entry.compare(target) == Order::Less => {}
                _ => return false,
            }
        }
        true
    }

    /// Searches a level from `before` on, no further than `beyond`: returns the last node before
    /// the target, and the one after it.
    #[inline]
    fn search_level(
        &self,
        target: &SearchTarget<'_>,
        mut before: NodeNumber,
        beyond: NodeNumber,
        level: usize,
    ) -> (NodeNumber, NodeNumber) {
        let mut after = self.follow(before, level);
        while after != NodeNumber::NONE && after != beyond {
            match self.node(after) {
                Some(entry) if entry.compare(target) == Order::Less => {
                    before = after;
                    after = self.follow(before, level);
                }
                _ => break,
            }
        }
        (before, after)
    }

    fn find(&self, target: &SearchTarget<'_>, neighbours: &mut Neighbours) {
        let (mut before, mut beyond) = (NodeNumber::NONE, NodeNumber::NONE);
        let slots = neighbours.before.iter_mut().zip(&mut neighbours.after);
        for (level, (before_slot, after_slot)) in slots.enumerate().rev() {
            (before, beyond) = self.search_level(target, before, beyond, level);
            (*before_slot, *after_slot) = (before, beyond);
        }
    }

    /// The last node before `(key, tag)` and the first at or after it.
    fn neighbours(&self, key: &[u8], tag: u64) -> (NodeNumber, NodeNumber) {
        let target = SearchTarget::new(key, tag);
        let start = (NodeNumber::NONE, NodeNumber::NONE);
        let down = |(before, beyond), level| self.search_level(&target, before, beyond, level);
        (0..LEVELS).rev().fold(start, down)
    }

    /// The first entry at or after `(key, tag)`.
    #[must_use]
    pub fn seek(&self, key: &[u8], tag: u64) -> ListCursor {
        self.at(self.neighbours(key, tag).1)
    }

    /// The last entry before `(key, tag)`.
    #[must_use]
    pub fn seek_before(&self, key: &[u8], tag: u64) -> ListCursor {
        self.at(self.neighbours(key, tag).0)
    }

    /// The first entry.
    #[must_use]
    pub fn first(&self) -> ListCursor {
        self.at(self.follow(NodeNumber::NONE, 0))
    }

    /// The next entry.
    #[inline]
    #[must_use]
    pub fn next(&self, at: ListCursor) -> ListCursor {
        match self.number(at) {
            NodeNumber::NONE => ListCursor::NOWHERE,
            number => self.at(self.follow(number, 0)),
        }
    }

    /// The entry before another one.
    #[must_use]
    pub fn previous(&self, at: ListCursor) -> ListCursor {
        self.entry(at).map_or(ListCursor::NOWHERE, |entry| {
            self.seek_before(entry.key(), entry.tag())
        })
    }

    /// The last entry.
    #[must_use]
    pub fn last(&self) -> ListCursor {
        let mut before = NodeNumber::NONE;
        for level in (0..LEVELS).rev() {
            loop {
                let after = self.follow(before, level);
                if after == NodeNumber::NONE {
                    break;
                }
                before = after;
            }
        }
        self.at(before)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn entries(list: &SkipList) -> Vec<(Vec<u8>, u64)> {
        let mut entries = Vec::new();
        let mut at = list.first();
        while let Some(entry) = list.entry(at) {
            entries.push((entry.key().to_vec(), entry.tag()));
            at = list.next(at);
        }
        entries
    }

    fn scrambled(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |number| (number * 7919) % count)
    }

    #[test]
    fn the_largest_tag_of_a_key_comes_first_and_a_seek_finds_those_at_or_below() {
        let list = SkipList::new();
        for tag in [3, 9, 6] {
            list.insert(b"key", b"", tag).unwrap();
        }
        list.insert(b"kez", b"", 1).unwrap();
        let tag = |at| list.entry(at).map(SkipListEntry::tag);
        assert_eq!(tag(list.seek(b"key", 8)), Some(6));
        assert_eq!(tag(list.seek(b"key", 2)), Some(1));
        assert_eq!(tag(list.seek_before(b"kez", u64::MAX)), Some(3));
        assert!(!list.seek(b"z", u64::MAX).is_entry());
        assert_eq!(list.len(), 4);
    }

    #[test]
    fn a_cursor_of_another_list_is_no_entry() {
        let (list, other) = (SkipList::new(), SkipList::new());
        list.insert(b"a", b"1", 1).unwrap();
        other.insert(b"b", b"2", 1).unwrap();
        assert!(list.entry(other.first()).is_none());
        assert!(!list.next(other.first()).is_entry());
        assert!(list.entry(ListCursor::NOWHERE).is_none());
        assert!(!list.next(ListCursor::NOWHERE).is_entry());
        assert_eq!(
            list.entry(list.first()).map(SkipListEntry::value),
            Some(&b"1"[..])
        );
    }

    #[test]
    fn threads_insert_at_once_and_lose_nothing() {
        let (list, threads, each) = (SkipList::new(), 4, if cfg!(miri) { 41 } else { 3001 });
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let list = &list;
                scope.spawn(move || {
                    for number in scrambled(each) {
                        let key = (number * threads + thread).to_be_bytes();
                        list.insert(&key, &key, 1).unwrap();
                        let entries = list.entry(list.seek(&key, 1)).unwrap();
                        assert_eq!((entries.key(), entries.value()), (&key[..], &key[..]));
                    }
                });
            }
        });
        let entries = entries(&list);
        assert_eq!(entries.len() as u64, threads * each);
        assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    /// Keys of which many are equal or share a prefix; some are longer than the head that is
    /// compared first.
    fn keys() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(0_u8..3, 0..12),
            (0_u8..3, 0_usize..20).prop_map(|(byte, length)| vec![byte; length]),
        ]
    }

    type Model = BTreeMap<(Vec<u8>, u64), Vec<u8>>;

    fn first<'a, K: Clone + 'a, V: Clone + 'a>(
        mut entries: impl Iterator<Item = (&'a K, &'a V)>,
    ) -> Option<(K, V)> {
        entries
            .next()
            .map(|(key, value)| (key.clone(), value.clone()))
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: if cfg!(miri) { 4 } else { 300 },
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_list_is_as_an_ordered_map_both_ways_and_from_any_place(
            written in prop::collection::vec((keys(), prop::collection::vec(any::<u8>(), 0..40)), 0..120),
            sought in prop::collection::vec((keys(), 0_u64..130), 20),
        ) {
            let list = SkipList::new();
            let mut model = Model::new();
            let mut bytes = 0;
            for (tag, (key, value)) in (1..).zip(written) {
                bytes += list.insert(&key, &value, tag).unwrap();
                model.insert((key, u64::MAX - tag), value);
            }
            prop_assert!(bytes >= model.iter().map(|((key, _), value)| key.len() + value.len()).sum());
            let of = |at| list.entry(at).map(|entry| {
                ((entry.key().to_vec(), u64::MAX - entry.tag()), entry.value().to_vec())
            });
            let mut at = list.first();
            for (target, value) in &model {
                prop_assert_eq!(of(at), Some((target.clone(), value.clone())));
                at = list.next(at);
            }
            prop_assert_eq!(of(at), None);
            let mut at = list.last();
            for (target, value) in model.iter().rev() {
                prop_assert_eq!(of(at), Some((target.clone(), value.clone())));
                at = list.previous(at);
            }
            prop_assert_eq!(of(at), None);
            for (key, tag) in sought {
                let target = (key.clone(), u64::MAX - tag);
                prop_assert_eq!(of(list.seek(&key, tag)), first(model.range(target.clone()..)));
                prop_assert_eq!(of(list.seek_before(&key, tag)), first(model.range(..target).rev()));
            }
        }
    }
}
