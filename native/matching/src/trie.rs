//! The paths of a group's access predicates as a tree of segments.
//!
//! A document is walked once for all paths, and only into fields that some path names: neither the
//! number of paths nor other fields of the document make the walk longer. Each node counts its
//! entries by kind, so that only probes in use are computed.

use std::collections::{BTreeMap, BTreeSet};

use rillbase_query::path::{FieldPath, PathSegment};

use crate::entry::{NodeId, Probe};
use crate::probe_counts::ProbeCounts;

/// The node of the path without segments.
pub(crate) const ROOT: NodeId = 0;

/// One segment of some paths.
#[derive(Debug)]
pub(crate) struct TrieNode {
    parent: NodeId,
    segment: PathSegment,
    /// Children for the keys of a document.
    children: BTreeMap<Box<str>, NodeId>,
    /// Children for the positions of an array.
    positions: BTreeMap<u32, NodeId>,
    /// The number of entries at this node.
    uses: u32,
    /// Whether a segment up to here can also be an array position, so that the number of routes to
    /// it can double at each level.
    pub(crate) numeric: bool,
    pub(crate) waiting: ProbeCounts,
}

/// The paths of a group.
#[derive(Debug)]
pub(crate) struct Trie {
    nodes: Vec<TrieNode>,
    free: Vec<NodeId>,
    /// Nodes that have entries for null or for a missing value.
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

    /// The child for a key of a document.
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

    /// The child for a position of an array.
    pub(crate) fn position(&self, index: u32) -> Option<NodeId> {
        self.positions.get(&index).copied()
    }

    pub(crate) fn has_positions(&self) -> bool {
        !self.positions.is_empty()
    }

    pub(crate) fn has_children(&self) -> bool {
        !self.children.is_empty()
    }

    /// Whether there are entries here.
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

    /// Nodes that have entries for null or for a missing value.
    pub(crate) const fn watched(&self) -> &BTreeSet<NodeId> {
        &self.watched
    }

    /// Returns the node of a path and counts one more entry there.
    pub(crate) fn enter(&mut self, path: &FieldPath) -> NodeId {
        let mut at = ROOT;
        for segment in path.segments() {
            at = self.child_or_insert(at, segment);
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

    fn child_or_insert(&mut self, at: NodeId, segment: &PathSegment) -> NodeId {
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

    /// Removes an entry of a node, and nodes that no longer lead to entries.
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

    /// Adds an entry of a query to a node's counts.
    pub(crate) fn wait(&mut self, id: NodeId, probe: &Probe, query: u32) {
        self.change(id, probe, query, true);
    }

    /// Removes an entry of a query from a node's counts.
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

    /// Its approximate size in bytes.
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
