//! Walks a document along the paths of a group and collects the candidates.
//!
//! The walk finds what [`FieldPath::any`](rillbase_query::path::FieldPath) finds, for all paths at
//! once, and sometimes more: an array inside an array is also entered as a document, because
//! `$elemMatch` treats it as one. Values that are found only in this way do not count as present.
//!
//! A numeric segment has two readings at each array, so the number of routes to a value can double
//! at each level. Therefore a location that was reached through a position is entered once for each
//! node of the tree of paths, and after [`STEPS`] such locations the walk abandons everything below
//! positions. Everything else is linear in the size of the document.

use std::collections::HashSet;

use rillbase_query::bson::{Array, Document, ValueRef};

use rillbase_query::text::Analyzer;

use crate::entry::NodeId;
use crate::entry::{Probe, is_compound};
use crate::hashes::Hashes;
use crate::point::Point;
use crate::postings::Postings;
use crate::probe_counts::Ranges;
use crate::trie::{ROOT, Trie, TrieNode};

/// The maximum number of locations below positions that are visited in one document.
const STEPS: u32 = 1_000_000;
/// If a node has more values than this, their hull is looked up instead of each value.
const EACH: usize = 16;

/// What was observed of a document at a node.
#[derive(Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "they are independent observations"
)]
struct WalkState {
    /// The document to which the other fields refer.
    document: u32,
    /// The document and the address from which a key last led here.
    parent: (u32, usize),
    /// Whether the route passed an array, so that there may be several values, or elements without
    /// one.
    several: bool,
    /// Whether there is a value.
    present: bool,
    /// Whether there is a null.
    null: bool,
    /// The least and the greatest value of each type.
    hulls: Vec<(Point, Point)>,
    /// Whether no value is longer than its point.
    exact: bool,
    /// The values, if there are few.
    points: Vec<Point>,
    /// Whether there are more.
    overflow: bool,
}

/// Buffers that are reused for each document.
#[derive(Debug, Default)]
pub(crate) struct WalkBuffers {
    states: Vec<WalkState>,
    /// Nodes whose intervals must be looked up.
    touched: Vec<NodeId>,
    /// Locations below positions that were entered.
    entered: HashSet<(NodeId, usize, ArrayReading)>,
    buffer: Vec<u8>,
    /// The probes to look up.
    probes: Vec<Probe>,
}

/// Collects the queries that a document may match.
pub(crate) trait Candidates {
    /// Proposes a query. The same one may be proposed again.
    fn propose(&mut self, query: u32);
    /// A query that certainly matches; it is not passed again.
    fn sure(&mut self, query: u32);
}

/// A walk.
pub(crate) struct DocumentWalk<'w, C> {
    pub(crate) trie: &'w Trie,
    pub(crate) postings: &'w mut Postings,
    pub(crate) hashes: &'w Hashes,
    pub(crate) scratch: &'w mut WalkBuffers,
    /// The number of the document.
    pub(crate) number: u32,
    pub(crate) candidates: &'w mut C,
    /// How many more locations below positions may be entered.
    steps: u32,
}

impl<'w, C: Candidates> DocumentWalk<'w, C> {
    pub(crate) fn new(
        trie: &'w Trie,
        postings: &'w mut Postings,
        hashes: &'w Hashes,
        scratch: &'w mut WalkBuffers,
        number: u32,
        candidates: &'w mut C,
    ) -> Self {
        if scratch.states.len() < trie.width() {
            scratch.states.resize_with(trie.width(), WalkState::default);
        }
        scratch.touched.clear();
        scratch.entered.clear();
        Self {
            trie,
            postings,
            hashes,
            scratch,
            number,
            candidates,
            steps: STEPS,
        }
    }

    /// Walks the document. Returns false if it had to abandon everything below positions.
    pub(crate) fn run(mut self, document: Document<'_>) -> bool {
        let whole = self.document(ROOT, document, WalkRoute::default());
        self.meet_intervals();
        self.propose_absent();
        self.terms(document);
        whole.is_some()
    }

    fn document(&mut self, at: NodeId, document: Document<'_>, route: WalkRoute) -> Option<()> {
        let trie = self.trie;
        let node = trie.node(at)?;
        let mut whole = Some(());
        let address = document.as_bytes().as_ptr().addr();
        if !node.has_children() || !self.enter((at, address, ArrayReading::Keys), route)? {
            return whole;
        }
        for element in document.elements() {
            if let Some(child) = node.child(element.key_bytes())
                && let Some(value) = element.value()
                && self.is_first(child, address)
            {
                whole = whole.and(self.field(child, value, route));
            }
        }
        whole
    }

    /// Handles a value that a key of a document leads to.
    fn field(&mut self, at: NodeId, value: ValueRef<'_>, route: WalkRoute) -> Option<()> {
        match value {
            ValueRef::Array(array) => {
                let route = WalkRoute {
                    several: true,
                    ..route
                };
                self.elements(at, array, route);
                self.array(at, array, route)
            }
            ValueRef::Document(inner) => {
                self.value(at, value, route);
                self.document(at, inner, route)
            }
            _ => {
                self.value(at, value, route);
                Some(())
            }
        }
    }

    /// Handles the elements of an array at the end of a path, then the array itself.
    fn elements(&mut self, at: NodeId, array: Array<'_>, route: WalkRoute) {
        if self.trie.node(at).is_some_and(TrieNode::is_end) {
            for value in array.iter() {
                self.value(at, value, route);
            }
            self.value(at, ValueRef::Array(array), route);
        }
    }

    /// Continues a path from an array.
    fn array(&mut self, at: NodeId, array: Array<'_>, route: WalkRoute) -> Option<()> {
        let trie = self.trie;
        let node = trie.node(at)?;
        let mut whole = Some(());
        let location = (
            at,
            array.as_bytes().as_ptr().addr(),
            ArrayReading::Positions,
        );
        if !node.has_children() || !self.enter(location, route)? {
            return whole;
        }
        for (index, value) in (0..).zip(array.iter()) {
            match value {
                ValueRef::Document(inner) => whole = whole.and(self.document(at, inner, route)),
                ValueRef::Array(inner) => {
                    let route = WalkRoute {
                        doubtful: true,
                        ..route
                    };
                    whole = whole.and(self.document(at, inner.as_document(), route));
                }
                _ => {}
            }
            if node.has_positions()
                && let Some(next) = node.position(index)
            {
                whole = whole.and(self.at_position(next, value, route));
            }
        }
        whole
    }

    /// Handles a value that a position of an array leads to.
    fn at_position(&mut self, at: NodeId, value: ValueRef<'_>, route: WalkRoute) -> Option<()> {
        let route = WalkRoute {
            by_position: true,
            ..route
        };
        self.spend(route)?;
        self.value(at, value, route);
        match value {
            ValueRef::Document(inner) => self.document(at, inner, route),
            ValueRef::Array(inner) => self.array(at, inner, route),
            _ => Some(()),
        }
    }

    /// Whether a location, identified by its address, must be entered.
    fn enter(&mut self, location: (NodeId, usize, ArrayReading), route: WalkRoute) -> Option<bool> {
        if !route.by_position {
            return Some(true);
        }
        self.spend(route)?;
        Some(self.scratch.entered.insert(location))
    }

    /// Whether a key of the document at this address is the first with its name; later ones are
    /// ignored.
    fn is_first(&mut self, child: NodeId, address: usize) -> bool {
        let from = (self.number, address);
        let state = self.scratch.states.get_mut(child as usize);
        state.is_some_and(|state| std::mem::replace(&mut state.parent, from) != from)
    }

    fn spend(&mut self, route: WalkRoute) -> Option<()> {
        if route.by_position {
            self.steps = self.steps.checked_sub(1)?;
        }
        Some(())
    }

    /// Handles a value at the end of a path.
    fn value(&mut self, at: NodeId, value: ValueRef<'_>, route: WalkRoute) {
        let Some(node) = self.trie.node(at).filter(|node| node.is_end()) else {
            return;
        };
        let Some(state) = self.scratch.states.get_mut(at as usize) else {
            return;
        };
        if state.begin(self.number) && node.waiting.ranges.is_some() {
            self.scratch.touched.push(at);
        }
        state.several |= route.several;
        state.present |= !route.doubtful;
        state.null |= matches!(value, ValueRef::Null);
        if let Some(ranges) = &node.waiting.ranges
            && !is_compound(value)
        {
            let point = Point::of_value(value, &mut self.scratch.buffer);
            state.exact &= Point::holds(&self.scratch.buffer);
            state.note(point, ranges);
        }
        self.read_postings(at, node, value);
    }

    fn read_postings(&mut self, at: NodeId, node: &TrieNode, value: ValueRef<'_>) {
        let waiting = &node.waiting;
        let compound = is_compound(value);
        if compound && waiting.compounds > 0 {
            let hash = self.hashes.value(value, &mut self.scratch.buffer);
            self.read(at, &Probe::Compound(hash));
        }
        if !compound && waiting.scalars > 0 {
            let hash = self.hashes.value(value, &mut self.scratch.buffer);
            self.read(at, &Probe::Scalar(hash));
        }
        if waiting.kinds > 0 {
            self.read(at, &Probe::Kind(value.kind()));
        }
        if waiting.present > 0 {
            self.read(at, &Probe::Present);
        }
        let mut probes = std::mem::take(&mut self.scratch.probes);
        let mut keep = |probe| probes.push(probe);
        if let Some(grams) = &waiting.grams {
            grams.pieces(value, self.hashes, &mut self.scratch.buffer, &mut keep);
        }
        if compound && let Some(levels) = &waiting.levels {
            levels.cells(value, self.hashes, &mut keep);
        }
        for probe in probes.drain(..) {
            self.read(at, &probe);
        }
        self.scratch.probes = probes;
    }

    /// Looks up the terms of all text of the document.
    fn terms(&mut self, document: Document<'_>) {
        let trie = self.trie;
        let Some(root) = trie.node(ROOT) else {
            return;
        };
        for (number, analyzer) in root.waiting.analyzers() {
            self.terms_of(number, analyzer, ValueRef::Document(document));
        }
    }

    fn terms_of(&mut self, number: u8, analyzer: Analyzer, value: ValueRef<'_>) {
        match value {
            ValueRef::String(text) => {
                for term in analyzer.terms(text) {
                    let hash = self.hashes.term(&term);
                    let probe = Probe::Term {
                        analyzer: number,
                        hash,
                    };
                    self.read(ROOT, &probe);
                }
            }
            ValueRef::Document(inner) => inner
                .iter()
                .for_each(|(_, value)| self.terms_of(number, analyzer, value)),
            ValueRef::Array(inner) => inner
                .iter()
                .for_each(|value| self.terms_of(number, analyzer, value)),
            _ => {}
        }
    }

    fn read(&mut self, at: NodeId, probe: &Probe) {
        if let Some(key) = probe.key(at) {
            let candidates = &mut *self.candidates;
            self.postings
                .read(key, self.number, &mut |query| candidates.propose(query));
        }
    }

    fn meet_intervals(&mut self) {
        for at in &self.scratch.touched {
            let ranges = self
                .trie
                .node(*at)
                .and_then(|node| node.waiting.ranges.as_ref());
            let (Some(ranges), Some(state)) = (ranges, self.scratch.states.get(*at as usize))
            else {
                continue;
            };
            let decides = state.is_one_value();
            let mut visit = |query, sure| {
                if decides && sure {
                    self.candidates.sure(query);
                } else {
                    self.candidates.propose(query);
                }
            };
            for (least, greatest) in &state.hulls {
                ranges.hull.meeting(*least, *greatest, &mut visit);
                if state.overflow {
                    ranges.each.meeting(*least, *greatest, &mut visit);
                }
            }
            for point in state.points.iter().filter(|_| !state.overflow) {
                ranges.each.meeting(*point, *point, &mut visit);
            }
        }
    }

    /// Proposes the queries for null or nothing at nodes where some route may not have led to a
    /// value other than null.
    fn propose_absent(&mut self) {
        let trie = self.trie;
        for at in trie.watched() {
            let (nothing, absent) = self.may_lack_value(*at);
            if nothing {
                self.read(*at, &Probe::Nothing);
            }
            if absent {
                self.read(*at, &Probe::Absent);
            }
        }
    }

    /// Whether there may be null or nothing at a node, and whether there may
    /// be no value at all.
    fn may_lack_value(&self, at: NodeId) -> (bool, bool) {
        let state = self.scratch.states.get(at as usize);
        match state.filter(|state| state.document == self.number) {
            Some(state) => (state.null || state.several, !state.present),
            None => (true, true),
        }
    }
}

/// The route by which a location was reached.
#[derive(Debug, Clone, Copy, Default)]
struct WalkRoute {
    /// Through an array.
    several: bool,
    /// Through a position of an array.
    by_position: bool,
    /// Through an array that was read as a document.
    doubtful: bool,
}

/// How an array is entered: as one, or as the document that its bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ArrayReading {
    Keys,
    Positions,
}

impl WalkState {
    /// Clears what an earlier document had; returns whether there was any.
    fn begin(&mut self, document: u32) -> bool {
        if self.document == document {
            return false;
        }
        self.document = document;
        (self.several, self.present, self.null, self.overflow) = (false, false, false, false);
        self.exact = true;
        self.hulls.clear();
        self.points.clear();
        true
    }

    /// Whether the only value here is represented exactly by its point.
    fn is_one_value(&self) -> bool {
        let [(least, greatest)] = self.hulls.as_slice() else {
            return false;
        };
        least == greatest && self.exact && self.present && !self.several
    }

    fn note(&mut self, point: Point, ranges: &Ranges) {
        let same = |(least, _): &&mut (Point, Point)| least.rank() == point.rank();
        match self.hulls.iter_mut().find(same) {
            Some((least, greatest)) => {
                *least = (*least).min(point);
                *greatest = (*greatest).max(point);
            }
            None => self.hulls.push((point, point)),
        }
        if ranges.each.len() == 0 || self.overflow || self.points.contains(&point) {
            return;
        }
        if self.points.len() < EACH {
            self.points.push(point);
        } else {
            self.overflow = true;
        }
    }
}

impl WalkBuffers {
    /// Forgets the numbers of documents, which have wrapped around.
    pub(crate) fn restart(&mut self) {
        self.states.clear();
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.states.capacity() * (size_of::<WalkState>() + 2 * size_of::<(Point, Point)>())
    }
}
