//! The queries of one collection, in the index structures that find them.

use std::collections::BTreeSet;

use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;
use rillbase_query::filter_set::FilterId;
use rillbase_query::geo::Space;
use rillbase_query::path::FieldPath;

use crate::entry::NodeId;
use crate::entry::{EntrySpec, Probe, TrieEntry};
use crate::hashes::Hashes;
use crate::postings::Postings;
use crate::residual::Residual;
use crate::sample::DocumentSample;
use crate::trie::Trie;
use crate::walk::{Candidates, DocumentWalk, WalkBuffers};

/// One collection's queries.
#[derive(Debug, Default)]
pub(crate) struct CollectionQueries {
    trie: Trie,
    postings: Postings,
    everything: BTreeSet<u32>,
    pub(crate) residual: Residual,
    pub(crate) sample: DocumentSample,
    /// The number of documents that were matched; it wraps around.
    pub(crate) documents: u32,
}

/// How a query is found.
#[derive(Debug)]
pub(crate) enum AccessPath {
    Everything,
    Residual(FilterId),
    /// By one entry.
    One(TrieEntry),
    /// By any of several entries, or by none.
    Any(Box<[TrieEntry]>),
    /// By any of several cells of one level.
    Cells(Box<Cells>),
}

/// Cells in a compact form.
#[derive(Debug)]
pub(crate) struct Cells {
    node: NodeId,
    space: Space,
    level: i16,
    hashes: Box<[u64]>,
}

impl Cells {
    /// The entries, if they are cells of one level and nothing else.
    fn of(entries: &[TrieEntry]) -> Option<Self> {
        let TrieEntry {
            node,
            probe: Probe::Cell { space, level, .. },
        } = *entries.first()?
        else {
            return None;
        };
        let hash = |entry: &TrieEntry| match entry.probe {
            Probe::Cell {
                space: other,
                level: its,
                hash,
            } if (entry.node, other, its) == (node, space, level) => Some(hash),
            _ => None,
        };
        Some(Self {
            node,
            space,
            level,
            hashes: entries.iter().map(hash).collect::<Option<_>>()?,
        })
    }

    fn entries(&self) -> Vec<TrieEntry> {
        let entry = |hash: &u64| TrieEntry {
            node: self.node,
            probe: Probe::Cell {
                space: self.space,
                level: self.level,
                hash: *hash,
            },
        };
        self.hashes.iter().map(entry).collect()
    }
}

impl AccessPath {
    fn entries(&self) -> Vec<TrieEntry> {
        match self {
            Self::One(entry) => vec![*entry],
            Self::Any(entries) => entries.to_vec(),
            Self::Cells(cells) => cells.entries(),
            Self::Everything | Self::Residual(_) => Vec::new(),
        }
    }

    /// Its approximate size in bytes, besides the struct.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Any(entries) => size_of_val::<[TrieEntry]>(entries),
            Self::Cells(cells) => size_of::<Cells>() + size_of_val::<[u64]>(&cells.hashes),
            _ => 0,
        }
    }
}

impl CollectionQueries {
    pub(crate) fn add_everything(&mut self, query: u32) -> AccessPath {
        self.everything.insert(query);
        AccessPath::Everything
    }

    pub(crate) fn add_residual(&mut self, filter: &Filter, query: u32) -> AccessPath {
        AccessPath::Residual(self.residual.insert(filter, query))
    }

    pub(crate) fn add_entries(&mut self, specs: &[EntrySpec], query: u32) -> AccessPath {
        let entries: Vec<TrieEntry> = specs.iter().map(|spec| self.enter(spec, query)).collect();
        match entries.as_slice() {
            [only] => AccessPath::One(*only),
            several => match Cells::of(several) {
                Some(cells) => AccessPath::Cells(Box::new(cells)),
                None => AccessPath::Any(entries.into()),
            },
        }
    }

    fn enter(&mut self, spec: &EntrySpec, query: u32) -> TrieEntry {
        let node = self.trie.enter(&spec.path);
        let probe = spec.probe;
        if let Some(key) = probe.key(node) {
            self.postings.insert(key, query);
        }
        self.trie.wait(node, &probe, query);
        TrieEntry { node, probe }
    }

    /// Removes a query from the structures of its access path.
    pub(crate) fn take_out(&mut self, access: &AccessPath, query: u32) {
        match access {
            AccessPath::Everything => {
                self.everything.remove(&query);
            }
            AccessPath::Residual(id) => self.residual.remove(*id),
            AccessPath::One(_) | AccessPath::Any(_) | AccessPath::Cells(_) => {}
        }
        for entry in access.entries() {
            if let Some(key) = entry.probe.key(entry.node) {
                self.postings.remove(key, query);
            }
            self.trie.stop(entry.node, &entry.probe, query);
            self.trie.leave(entry.node);
        }
    }

    /// The entries as they were planned, in order.
    pub(crate) fn entry_specs(&self, access: &AccessPath) -> Vec<EntrySpec> {
        let entries = access.entries().into_iter();
        let mut specs: Vec<EntrySpec> = entries
            .map(|entry| EntrySpec {
                path: self.trie.path(entry.node),
                probe: entry.probe,
            })
            .collect();
        specs.sort_unstable();
        specs
    }

    pub(crate) fn paths(&self, access: &AccessPath) -> Vec<String> {
        let entries = access.entries().into_iter();
        let mut paths: Vec<String> = entries
            .map(|entry| FieldPath::text(&self.trie.path(entry.node)))
            .collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Whether an entry is below an array position.
    pub(crate) fn is_numeric(&self, access: &AccessPath) -> bool {
        let entries = access.entries().into_iter();
        let mut nodes = entries.filter_map(|entry| self.trie.node(entry.node));
        nodes.any(|node| node.numeric)
    }

    /// Passes on the candidates of a document. Returns false if entries below array positions had
    /// to be abandoned.
    pub(crate) fn candidates(
        &mut self,
        document: Document<'_>,
        number: u32,
        hashes: &Hashes,
        scratch: &mut WalkBuffers,
        candidates: &mut impl Candidates,
    ) -> bool {
        let Self { trie, postings, .. } = self;
        DocumentWalk::new(trie, postings, hashes, scratch, number, candidates).run(document)
    }

    pub(crate) fn everything(&self) -> impl Iterator<Item = u32> {
        self.everything.iter().copied()
    }

    /// Forgets the numbers of documents, which have wrapped around.
    pub(crate) fn restart(&mut self) {
        self.postings.restart();
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.trie.memory()
            + self.postings.memory()
            + self.everything.len() * 2 * size_of::<u32>()
            + self.residual.memory()
            + self.sample.memory()
            + size_of::<Self>()
    }
}
