//! Intervals in a B-tree that stores the greatest upper end below each node.
//!
//! Entries are ordered by their lower ends. An interval meets `[from, to]` if and only if its lower
//! end is not above `to` and its upper end is not below `from`. Among the children whose lower ends
//! are small enough, the search descends into those whose greatest upper end is large enough, and
//! each of these contains a result. So finding k of n intervals visits O(log n + k) nodes,
//! regardless of their lengths and overlaps; adding or removing one visits O(log n).
//!
//! Lower ends may be above upper ends: `{a: {$gt: 7, $lt: 3}}` is met by `{a: [0, 9]}`, whose
//! values reach from 0 to 9.

use crate::point::{Interval, Point};

/// The maximum number of entries of a leaf.
const LEAF: usize = 32;
/// The maximum number of children of an inner node.
const FAN: usize = 8;

/// An interval with the query that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct IntervalEntry {
    interval: Interval,
    query: u32,
    /// Whether meeting it proves a match, as stated by the caller.
    sure: bool,
}

/// The order of entries. One query may have several intervals.
type Key = (Point, u32, Point);

impl IntervalEntry {
    const fn key(&self) -> Key {
        (self.interval.low, self.query, self.interval.high)
    }
}

#[derive(Debug)]
enum IntervalNode {
    Leaf(Vec<IntervalEntry>),
    Inner(Vec<Child>),
}

/// A node with a summary of the entries below.
#[derive(Debug)]
struct Child {
    /// A lower bound of their keys.
    first: Key,
    /// Their greatest upper end.
    greatest: Point,
    node: Box<IntervalNode>,
}

/// Intervals of queries.
#[derive(Debug)]
pub(crate) struct Intervals {
    root: IntervalNode,
    len: usize,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            root: IntervalNode::Leaf(Vec::new()),
            len: 0,
        }
    }
}

impl Intervals {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    /// Adds an interval of a query, which must not be present yet.
    pub(crate) fn insert(&mut self, interval: Interval, query: u32, sure: bool) {
        self.len += 1;
        let entry = IntervalEntry {
            interval,
            query,
            sure,
        };
        let Some(right) = self.root.insert(entry) else {
            return;
        };
        let left = std::mem::replace(&mut self.root, IntervalNode::Inner(Vec::new()));
        self.root = IntervalNode::Inner(vec![Child::of(left), Child::of(right)]);
    }

    /// Removes an interval of a query.
    pub(crate) fn remove(&mut self, interval: Interval, query: u32) {
        let key = (interval.low, query, interval.high);
        if !self.root.remove(&key) {
            return;
        }
        self.len -= 1;
        if let IntervalNode::Inner(children) = &mut self.root
            && children.len() < 2
        {
            self.root = children
                .pop()
                .map_or_else(|| IntervalNode::Leaf(Vec::new()), |child| *child.node);
        }
    }

    /// Passes the queries of the intervals that meet `[from, to]` to `visit`, each with its `sure`.
    pub(crate) fn meeting(&self, from: Point, to: Point, visit: &mut impl FnMut(u32, bool)) {
        self.root.meeting(from, to, visit);
    }

    /// Its approximate size in bytes.
    pub(crate) const fn memory(&self) -> usize {
        // Leaves are at least half full except after removals.
        self.len * size_of::<IntervalEntry>() * 3 / 2
    }
}

impl Child {
    fn of(node: IntervalNode) -> Self {
        let (first, greatest) = node.ends();
        Self {
            first,
            greatest,
            node: Box::new(node),
        }
    }
}

impl IntervalNode {
    fn ends(&self) -> (Key, Point) {
        let greatest = self.greatest();
        let first = match self {
            Self::Leaf(entries) => entries.first().map(IntervalEntry::key),
            Self::Inner(children) => children.first().map(|child| child.first),
        };
        (first.unwrap_or((Point::LEAST, 0, Point::LEAST)), greatest)
    }

    fn greatest(&self) -> Point {
        let greatest = match self {
            Self::Leaf(entries) => entries.iter().map(|entry| entry.interval.high).max(),
            Self::Inner(children) => children.iter().map(|child| child.greatest).max(),
        };
        greatest.unwrap_or(Point::LEAST)
    }

    const fn len(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }

    /// Adds an entry. If the node is split, returns its right half. Insertion in ascending order
    /// leaves full nodes.
    fn insert(&mut self, entry: IntervalEntry) -> Option<Self> {
        match self {
            Self::Leaf(entries) => {
                let at = entries.partition_point(|held| held.key() < entry.key());
                let ascending = at == entries.len();
                entries.insert(at, entry);
                split(entries, LEAF, ascending).map(Self::Leaf)
            }
            Self::Inner(children) => {
                let at = child_index(children, &entry.key());
                let ascending = at + 1 == children.len();
                let child = children.get_mut(at)?;
                child.first = child.first.min(entry.key());
                child.greatest = child.greatest.max(entry.interval.high);
                let right = child.node.insert(entry)?;
                child.greatest = child.node.greatest();
                children.insert(at + 1, Child::of(right));
                split(children, FAN, ascending).map(Self::Inner)
            }
        }
    }

    fn remove(&mut self, key: &Key) -> bool {
        match self {
            Self::Leaf(entries) => {
                let visit = entries.binary_search_by_key(key, IntervalEntry::key);
                visit.map(|at| entries.remove(at)).is_ok()
            }
            Self::Inner(children) => {
                let at = child_index(children, key);
                let Some(child) = children.get_mut(at) else {
                    return false;
                };
                if !child.node.remove(key) {
                    return false;
                }
                child.greatest = child.node.greatest();
                merge_underfull(children, at);
                true
            }
        }
    }

    fn meeting(&self, from: Point, to: Point, visit: &mut impl FnMut(u32, bool)) {
        match self {
            Self::Leaf(entries) => {
                let below = entries.iter().take_while(|entry| entry.interval.low <= to);
                for entry in below.filter(|entry| entry.interval.high >= from) {
                    visit(entry.query, entry.sure);
                }
            }
            Self::Inner(children) => {
                let below = children.iter().take_while(|child| child.first.0 <= to);
                for child in below.filter(|child| child.greatest >= from) {
                    child.node.meeting(from, to, visit);
                }
            }
        }
    }

    /// Appends the contents of the node to the right, if both are of the same kind.
    fn absorb(&mut self, right: Self) {
        match (self, right) {
            (Self::Leaf(entries), Self::Leaf(more)) => entries.extend(more),
            (Self::Inner(children), Self::Inner(more)) => children.extend(more),
            _ => {}
        }
    }

    const fn capacity(&self) -> usize {
        match self {
            Self::Leaf(_) => LEAF,
            Self::Inner(_) => FAN,
        }
    }
}

/// The child that a key belongs to.
fn child_index(children: &[Child], key: &Key) -> usize {
    children
        .partition_point(|child| child.first <= *key)
        .saturating_sub(1)
}

/// Splits an overfull list and returns its right part.
fn split<T>(items: &mut Vec<T>, most: usize, ascending: bool) -> Option<Vec<T>> {
    if items.len() <= most {
        return None;
    }
    let at = if ascending { most } else { most / 2 };
    let right = items.split_off(at);
    items.shrink_to_fit();
    Some(right)
}

/// Merges the child at `at` with a neighbour after a removal, if both fit into half a node, so that
/// few entries never occupy many nodes.
fn merge_underfull(children: &mut Vec<Child>, at: usize) {
    let len = |index: usize| children.get(index).map(|child| child.node.len());
    if len(at) == Some(0) {
        children.remove(at);
        return;
    }
    for left in [at.saturating_sub(1), at] {
        let (Some(a), Some(b)) = (len(left), len(left + 1)) else {
            continue;
        };
        let half = children
            .get(left)
            .map_or(0, |child| child.node.capacity() / 2);
        if a + b <= half {
            let right = children.remove(left + 1);
            if let Some(child) = children.get_mut(left) {
                child.greatest = child.greatest.max(right.greatest);
                child.node.absorb(*right.node);
            }
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn point(at: u32) -> Point {
        Point::of_key(&at.to_be_bytes())
    }

    fn interval(low: u32, high: u32) -> Interval {
        Interval {
            low: point(low),
            high: point(high),
        }
    }

    fn check(held: &[(u32, u32, u32)], tree: &Intervals, from: u32, to: u32) {
        let mut expected: Vec<u32> = held
            .iter()
            .filter(|(low, high, _)| *low <= to && *high >= from)
            .map(|(.., query)| *query)
            .collect();
        let mut queries = Vec::new();
        tree.meeting(point(from), point(to), &mut |query, _| queries.push(query));
        expected.sort_unstable();
        queries.sort_unstable();
        assert_eq!(queries, expected, "meeting {from} to {to}");
        assert_eq!(tree.len(), held.len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_tree_finds_what_a_list_finds_while_intervals_come_and_go(
            steps in prop::collection::vec((0..500_u32, 0..600_u32, 0..4_u8), 0..3000),
            questions in prop::collection::vec((0..600_u32, 0..200_u32), 20),
        ) {
            let mut tree = Intervals::default();
            let mut held = Vec::new();
            for (query, (low, high, kind)) in (0..).zip(steps) {
                if kind == 0 && !held.is_empty() {
                    let at = low as usize % held.len();
                    let (low, high, query) = held.swap_remove(at);
                    tree.remove(interval(low, high), query);
                } else {
                    // Narrow intervals, wide ones, and ones whose ends are reversed.
                    let high = if kind == 1 { high } else { low + high % 7 };
                    held.push((low, high, query));
                    tree.insert(interval(low, high), query, false);
                }
            }
            for (from, length) in questions {
                check(&held, &tree, from, from + length);
            }
        }
    }

    #[test]
    fn a_tree_that_was_emptied_is_small_again() {
        let mut tree = Intervals::default();
        for query in 0..10_000 {
            tree.insert(interval(query, query + 5), query, false);
        }
        for query in 0..10_000 {
            tree.remove(interval(query, query + 5), query);
        }
        check(&[], &tree, 0, 20_000);
        assert!(matches!(&tree.root, IntervalNode::Leaf(entries) if entries.is_empty()));
    }
}
