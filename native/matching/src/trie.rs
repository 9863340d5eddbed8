//! The paths of a group's access predicates as a tree of segments.
//!
//! A document is walked once for all paths, and only into fields that some path names: neither the
//! number of paths nor what else the document holds makes the walk longer. Each node records what
//! is registered there, so that nothing is computed without need.

use std::collections::{BTreeMap, BTreeSet};

use rillbase_query::path::{FieldPath, PathSegment};

use crate::entry::Probe;
use crate::probe_counts::ProbeCounts;

/// A node's number in its tree; numbers of removed nodes are reused.
pub(crate) type NodeId = u32;

/// The node of the path without segments.
pub(crate) const ROOT: NodeId = 0;

/// One segment of some paths.
#[derive(Debug)]
pub(crate) struct TrieNode {
    parent: NodeId,
    segment: PathSegment,
    /// Where documents lead, by key.
    children: BTreeMap<Box<str>, NodeId>,
    /// Where arrays lead, by position.
    positions: BTreeMap<u32, NodeId>,
    /// Entries of queries at this node.
    uses: u32,
    /// Whether a segment up to here is a position too, so that ways to it can
    /// double from level to level.
    pub(crate) numeric: bool,
    pub(crate) waiting: ProbeCounts,
}

/// The paths of a group.
#[derive(Debug)]
pub(crate) struct Trie {
    nodes: Vec<TrieNode>,
    free: Vec<NodeId>,
    /// Nodes at which someone waits for null or for nothing.
    watched: BTreeSet<NodeId>,
}

impl Default for Trie {
    fn default() -> Self {
        Self {
            nodes: vec![TrieNode::new(ROOT, PathSegment::new(""), false)],
            free: Vec::new(),
            watched: BTreeSet::new(),
        }
    }
}

impl TrieNode {
    fn new(parent: NodeId, segment: PathSegment, numeric: bool) -> Self {
        Self {
            parent,
            segment,
            children: BTreeMap::new(),
            positions: BTreeMap::new(),
            uses: 0,
            numeric,
            waiting: ProbeCounts::default(),
        }
    }

    /// Where a key of a document leads.
    pub(crate) fn child(&self, key: &[u8]) -> Option<NodeId> {
        if let [_, ..] = key
            && self.children.len() == 1
        {
            let (name, only) = self.children.first_key_value()?;
            return (name.as_bytes() == key).then_some(*only);
        }
        let key = std::str::from_utf8(key).ok()?;
        self.children.get(key).copied()
    }

    /// Where a position of an array leads.
    pub(crate) fn position(&self, index: u32) -> Option<NodeId> {
        self.positions.get(&index).copied()
    }

    pub(crate) fn has_positions(&self) -> bool {
        !self.positions.is_empty()
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Whether values are needed here.
    pub(crate) const fn is_end(&self) -> bool {
        self.uses > 0
    }
}

impl Trie {
    pub(crate) fn node(&self, id: NodeId) -> Option<&TrieNode> {
        self.nodes.get(id as usize)
    }

    /// One more than the greatest number of a node.
    pub(crate) const fn width(&self) -> usize {
        self.nodes.len()
    }

    /// Nodes at which someone waits for null or for nothing.
    pub(crate) const fn watched(&self) -> &BTreeSet<NodeId> {
        &self.watched
    }

    /// The node of a path, which has one more entry from now on.
    pub(crate) fn enter(&mut self, path: &FieldPath) -> NodeId {
        let mut at = ROOT;
        for segment in path.segments() {
            at = self.step(at, segment);
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.uses += 1;
        }
        at
    }

    /// The path of a node.
    pub(crate) fn path(&self, id: NodeId) -> FieldPath {
        let mut names = Vec::new();
        let mut at = id;
        while let Some(node) = self.nodes.get(at as usize)
            && at != ROOT
        {
            names.push(&*node.segment.name);
            at = node.parent;
        }
        names.reverse();
        FieldPath::new(&names.join("."))
    }

    fn step(&mut self, at: NodeId, segment: &PathSegment) -> NodeId {
        let Some(node) = self.nodes.get(at as usize) else {
            return at;
        };
        if let Some(child) = node.children.get(&segment.name) {
            return *child;
        }
        let numeric = node.numeric || segment.index.is_some();
        let fresh = TrieNode::new(at, segment.clone(), numeric);
        let id = match self.free.pop() {
            Some(id) => id,
            None => NodeId::try_from(self.nodes.len()).unwrap_or(NodeId::MAX),
        };
        match self.nodes.get_mut(id as usize) {
            Some(slot) => *slot = fresh,
            None => self.nodes.push(fresh),
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.children.insert(segment.name.clone(), id);
            if let Some(index) = segment.index {
                node.positions.insert(index, id);
            }
        }
        id
    }

    /// An entry of a node is gone; nodes that lead nowhere go too.
    pub(crate) fn leave(&mut self, id: NodeId) {
        if let Some(node) = self.nodes.get_mut(id as usize) {
            node.uses = node.uses.saturating_sub(1);
        }
        let mut at = id;
        while let Some(node) = self.nodes.get(at as usize)
            && at != ROOT
            && node.uses == 0
            && node.children.is_empty()
        {
            let (parent, segment) = (node.parent, node.segment.clone());
            if let Some(node) = self.nodes.get_mut(parent as usize) {
                node.children.remove(&segment.name);
                if let Some(index) = segment.index {
                    node.positions.remove(&index);
                }
            }
            self.free.push(at);
            at = parent;
        }
    }

    /// Notes at a node that a query waits there.
    pub(crate) fn wait(&mut self, id: NodeId, probe: &Probe, query: u32) {
        self.change(id, probe, query, true);
    }

    /// Notes at a node that a query does not wait there any more.
    pub(crate) fn stop(&mut self, id: NodeId, probe: &Probe, query: u32) {
        self.change(id, probe, query, false);
    }

    fn change(&mut self, id: NodeId, probe: &Probe, query: u32, more: bool) {
        let Some(node) = self.nodes.get_mut(id as usize) else {
            return;
        };
        node.waiting.change(probe, query, more);
        if node.waiting.is_watched() {
            self.watched.insert(id);
        } else {
            self.watched.remove(&id);
        }
    }

    /// About how many bytes it takes.
    pub(crate) fn memory(&self) -> usize {
        let node = size_of::<TrieNode>() + 3 * size_of::<(Box<str>, NodeId)>();
        self.nodes.len() * node
            + self
                .nodes
                .iter()
                .map(|node| node.waiting.memory())
                .sum::<usize>()
    }
}
