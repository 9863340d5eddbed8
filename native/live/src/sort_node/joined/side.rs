//! What is known of a collection that is looked up.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use crate::lookups::Join;
use crate::message::{
    AfterImage, FetchedDocument, Foreign, ImageContent, QueryDefinition, QueryHash, ResultRow,
};

/// The maximum number of documents of a side that nothing refers to, and their bytes.
const SPARE: usize = 1_000;
const SPARE_BYTES: usize = 4 * 1024 * 1024;
/// The maximum number of documents of a side while all of it is read.
const GATHERED: usize = 100_000;

/// A document of a side.
#[derive(Debug, Default)]
struct SideDocument {
    /// Its version, and its content if it is visible; `None` if it is unknown.
    known: Option<(u64, Option<Arc<[u8]>>)>,
    /// The own documents that refer to it.
    referrers: HashSet<Arc<[u8]>>,
    /// While it is unknown: what was read of it, until that counts.
    fetched: Option<FetchedDocument>,
    /// If none refers to it: its position among the spare ones, and its bytes.
    spare: Option<(u64, usize)>,
}

impl SideDocument {
    fn bytes(&self) -> usize {
        let body = self.known.as_ref().and_then(|(_, body)| body.as_ref());
        128 + body.map_or(0, |body| body.len())
    }
}

/// Whether a document that was read may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum FetchVerdict {
    /// Everything that its transaction wrote was reported.
    Taken,
    /// More of its transaction is still to be reported.
    Early,
    /// It is older than what was reported.
    Outdated,
}

/// Judges a document of a side that was read.
pub(in super::super) type Judge<'j> = dyn Fn(&QueryHash, &FetchedDocument) -> FetchVerdict + 'j;

/// What is known of a collection that is looked up.
#[derive(Debug)]
pub(super) struct JoinedSide {
    pub(super) hash: QueryHash,
    pub(super) rules_version: u64,
    others: HashMap<Arc<[u8]>, SideDocument>,
    /// Documents that nothing refers to, oldest first.
    spare: BTreeMap<u64, Arc<[u8]>>,
    spare_bytes: usize,
    spared: u64,
    /// Whether no other visible document exists.
    pub(super) complete: bool,
    /// Unknown documents that are referred to.
    unknown: BTreeSet<Arc<[u8]>>,
}

impl JoinedSide {
    fn new(hash: QueryHash, rules_version: u64, complete: bool) -> Self {
        Self {
            hash,
            rules_version,
            others: HashMap::new(),
            spare: BTreeMap::new(),
            spare_bytes: 0,
            spared: 0,
            complete,
            unknown: BTreeSet::new(),
        }
    }

    /// Adds a document that was read.
    fn read(&mut self, row: &ResultRow) {
        if self.others.len() >= GATHERED {
            self.complete = false;
            return;
        }
        let other = self.others.entry(Arc::clone(&row.key)).or_default();
        other.known = Some((row.version, Some(Arc::clone(&row.body))));
    }

    /// An own document refers to it. `absent`: if it is unknown, it does not exist.
    pub(super) fn refer(&mut self, key: Arc<[u8]>, own: &Arc<[u8]>, absent: bool) {
        let unknown = &mut self.unknown;
        let other = self.others.entry(Arc::clone(&key)).or_insert_with(|| {
            if !absent {
                unknown.insert(key);
            }
            SideDocument {
                known: absent.then_some((0, None)),
                ..SideDocument::default()
            }
        });
        other.referrers.insert(Arc::clone(own));
        if let Some((place, bytes)) = other.spare.take() {
            self.spare.remove(&place);
            self.spare_bytes -= bytes;
        }
    }

    /// An own document no longer refers to it.
    pub(super) fn release(&mut self, key: &Arc<[u8]>, own: &Arc<[u8]>) {
        let Some(other) = self.others.get_mut(key) else {
            return;
        };
        other.referrers.remove(own);
        if !other.referrers.is_empty() {
            return;
        }
        if other.known.is_some() {
            self.spare(key);
        } else {
            self.others.remove(key);
            self.unknown.remove(key);
        }
    }

    /// Nothing refers to a document.
    fn spare(&mut self, key: &Arc<[u8]>) {
        let Some(other) = self.others.get_mut(key) else {
            return;
        };
        let bytes = other.bytes();
        let (place, before) = other.spare.unwrap_or((self.spared, 0));
        if before == 0 {
            self.spared += 1;
            self.spare.insert(place, Arc::clone(key));
        }
        other.spare = Some((place, bytes));
        self.spare_bytes = self.spare_bytes - before + bytes;
        while self.spare.len() > SPARE || self.spare_bytes > SPARE_BYTES {
            let oldest = self.spare.pop_first();
            let Some(gone) = oldest.and_then(|(_, key)| self.others.remove(&key)) else {
                return;
            };
            self.spare_bytes -= gone.spare.map_or(0, |(_, bytes)| bytes);
            self.complete = false;
        }
    }

    /// Makes all documents spare that nothing refers to.
    pub(super) fn settle(&mut self) {
        let unused = self
            .others
            .iter()
            .filter(|(_, other)| other.referrers.is_empty());
        let unused: Vec<_> = unused.map(|(key, _)| Arc::clone(key)).collect();
        for key in unused {
            self.spare(&key);
        }
    }

    /// Applies a write; `may` says whether the document is visible now. Returns the own documents
    /// that must be shown again.
    pub(super) fn write(&mut self, image: &AfterImage, may: bool) -> Vec<Arc<[u8]>> {
        let body = match &image.content {
            ImageContent::Document(body) if may => Some(Arc::clone(body)),
            _ => None,
        };
        let other = self.others.entry(Arc::clone(&image.key)).or_default();
        let held = other.known.as_ref().map(|(version, _)| *version);
        if held.is_some_and(|held| held >= image.version) {
            return Vec::new();
        }
        if held.is_none() {
            self.unknown.remove(&image.key);
            other.fetched = None;
        }
        other.known = Some((image.version, body));
        let shown_by: Vec<_> = other.referrers.iter().cloned().collect();
        if shown_by.is_empty() {
            self.spare(&image.key);
        }
        shown_by
    }

    /// Unknown documents that have not been read yet.
    pub(super) fn unread(&self) -> Vec<Arc<[u8]>> {
        let unread = self.unknown.iter().filter(|key| {
            let other = self.others.get(*key);
            other.is_some_and(|other| other.fetched.is_none())
        });
        unread.cloned().collect()
    }

    pub(super) fn has_unknown_references(&self) -> bool {
        !self.unknown.is_empty()
    }

    /// Takes a document that was requested.
    pub(super) fn fetched(&mut self, document: FetchedDocument) {
        if let Some(other) = self.others.get_mut(&document.key)
            && other.known.is_none()
        {
            other.fetched = Some(document);
        }
    }

    /// Uses documents that were read and count. Returns the own documents that must be shown again.
    pub(super) fn resolve(&mut self, judge: &Judge<'_>) -> Vec<Arc<[u8]>> {
        let mut shown_by = Vec::new();
        for key in self.unknown.clone() {
            let Some(other) = self.others.get_mut(&key) else {
                continue;
            };
            let worth = other.fetched.as_ref().map(|read| judge(&self.hash, read));
            if worth.is_none_or(|worth| worth == FetchVerdict::Early) {
                continue;
            }
            let read = other.fetched.take();
            if worth == Some(FetchVerdict::Taken) {
                other.known = read.map(|read| (read.version, read.body));
                shown_by.extend(other.referrers.iter().cloned());
                self.unknown.remove(&key);
            }
        }
        shown_by
    }

    pub(super) fn body(&self, key: &[u8]) -> Option<Arc<[u8]>> {
        let (_, body) = self.others.get(key)?.known.as_ref()?;
        body.clone()
    }
}

/// The sides of a query while they are being read.
#[derive(Debug)]
pub(in super::super) struct JoinedSides {
    pub(super) join: Arc<Join>,
    pub(super) all: Vec<JoinedSide>,
    /// Whether everything that the query's documents refer to was read, if it exists.
    pub(super) all_read: bool,
}

impl JoinedSides {
    /// Nothing yet; `complete` says for each side whether all of it will be read.
    pub(in super::super) fn new(
        query: &QueryDefinition,
        join: Arc<Join>,
        complete: impl Fn(usize) -> bool,
    ) -> Self {
        let sides = query.sides.iter().enumerate();
        let sides =
            sides.map(|(at, side)| JoinedSide::new(side.hash, side.rules_version, complete(at)));
        Self {
            join,
            all: sides.collect(),
            all_read: false,
        }
    }

    /// The sides of a registration.
    pub(in super::super) fn read(
        query: &QueryDefinition,
        join: Arc<Join>,
        foreign: &[Foreign],
    ) -> Self {
        let complete = |at: usize| foreign.get(at).is_some_and(|side| side.complete);
        let mut sides = Self::new(query, join, complete);
        sides.all_read = true;
        for (side, read) in sides.all.iter_mut().zip(foreign) {
            for row in &read.rows {
                side.read(row);
            }
        }
        sides
    }

    pub(in super::super) fn push(&mut self, side: &QueryHash, row: &ResultRow) {
        for known in self.all.iter_mut().filter(|known| known.hash == *side) {
            known.read(row);
        }
    }
}
