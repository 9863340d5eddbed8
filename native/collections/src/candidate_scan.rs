//! Reading: documents by key, and candidates for a query.
//!
//! Candidates are read from the documents in the order of their keys, or from an index: in the order
//! of its entries, in that of the documents' times, or in any.

use std::collections::{HashSet, VecDeque};
use std::ops::Bound;

use rillbase_documents::bounds::EncodedRange;
use rillbase_documents::envelope::Meta;
use rillbase_documents::selection::CandidateRow;
use rillbase_engine::{DbSnapshot, Scan, Sequence};

use crate::definition::IndexTechnique;
use crate::embedded_entries::{EmbeddedEntries, EmbeddedRead};
use crate::error::{Error, Result};
use crate::format::{
    DOCUMENTS, DocumentHead, EntryForm, PREFIX_BYTES, decode_document, document_key, prefix,
};
use crate::newest_entries::{NewestEntries, position_of};
use crate::ordered_entries::OrderedEntries;
use crate::plan::{PlanOrder, ScanPlan};
use crate::store::Collections;
use crate::unordered_entries::UnorderedEntries;

/// The bytes of the keys of documents that a scan remembers, and how many of their further entries
/// it skips at a time: a caller checks its time after each candidate.
const REMEMBERED_BYTES: usize = 1 << 20;
const SKIPPED_AT_ONCE: usize = 1_000;

/// A document as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRecord {
    /// Version and times.
    pub head: DocumentHead,
    /// The sequence of the first write of its batch.
    pub batch: Sequence,
    /// BSON.
    pub body: Vec<u8>,
}

/// A document that may match a query.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Its key.
    pub key: Vec<u8>,
    /// The entry by which it was found.
    pub entry: Option<Vec<u8>>,
    /// The document.
    pub document: DocumentRecord,
    /// Its position in the scan.
    pub position: CandidatePosition,
}

impl DocumentRecord {
    pub(crate) fn decode(sequence: Sequence, value: &[u8]) -> Result<Self> {
        let (head, body) = decode_document(value)?;
        Ok(Self {
            head,
            batch: sequence.saturating_sub(u64::from(head.ordinal)),
            body: body.to_vec(),
        })
    }

    /// It as a row for a selection, with its key and the entry by which it was found.
    pub fn row<'r>(&'r self, key: &'r [u8], entry: Option<&'r [u8]>) -> CandidateRow<'r> {
        let head = &self.head;
        CandidateRow {
            key,
            meta: Meta {
                version: head.version,
                created_ms: head.created_ms,
                updated_ms: head.updated_ms,
            },
            body: &self.body,
            entry,
        }
    }
}

impl Candidate {
    /// It as a row for a selection.
    pub fn row(&self) -> CandidateRow<'_> {
        self.document.row(&self.key, self.entry.as_deref())
    }
}

/// An entry of a document.
#[derive(Debug)]
pub(crate) struct DocumentEntry {
    /// The entry, or the time if documents are read in the order of times.
    pub(crate) entry: Vec<u8>,
    pub(crate) document: Vec<u8>,
    pub(crate) position: CandidatePosition,
}

/// A position in a scan, which it continues after: what the scan is ordered by, and a document's key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidatePosition {
    /// The entry of an index that gives the order, or the time; the key of the entry if the order
    /// does not matter; empty in scans of documents.
    pub entry: Vec<u8>,
    /// The document's key.
    pub document: Vec<u8>,
}

/// The candidates of some ranges.
#[derive(Debug)]
pub struct CandidateScan<'a> {
    store: &'a Collections,
    collection: u64,
    snapshot: &'a DbSnapshot,
    source: CandidateSource<'a>,
}

/// What candidates are read from.
#[derive(Debug)]
enum CandidateSource<'a> {
    /// The ranges of documents that are not read yet, and the scan of the current one.
    Documents(VecDeque<EncodedRange>, Option<Scan>),
    Ordered(OrderedEntries<'a>),
    /// Without repetitions, with the documents that were read.
    Unordered(UnorderedEntries<'a>, Option<ReadDocuments>),
    Newest(NewestEntries),
    Embedded(EmbeddedEntries<'a>),
}

/// The last documents that were read by one of their entries.
#[derive(Debug, Default)]
struct ReadDocuments {
    keys: HashSet<Vec<u8>>,
    bytes: usize,
}

impl ReadDocuments {
    fn contains(&self, key: &[u8]) -> bool {
        self.keys.contains(key)
    }

    fn add(&mut self, key: &[u8]) {
        if self.bytes + key.len() > REMEMBERED_BYTES {
            *self = Self::default();
        }
        if self.keys.insert(key.to_vec()) {
            self.bytes += key.len();
        }
    }
}

impl Collections {
    /// A document, unless it does not exist.
    pub fn get(
        &self,
        collection: u64,
        key: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Option<DocumentRecord>> {
        let stored = self.get_or_tombstone(collection, key, snapshot)?;
        Ok(stored.filter(|document| !document.head.is_tombstone))
    }

    /// A document, or the tombstone of a deleted one, unless it has expired.
    pub fn get_or_tombstone(
        &self,
        collection: u64,
        key: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<Option<DocumentRecord>> {
        let key = document_key(collection, key);
        let stored = self.db.get_with_sequence(&self.entries, &key, snapshot)?;
        let stored = stored.map(|(sequence, value)| DocumentRecord::decode(sequence, &value));
        stored.transpose()
    }

    /// The candidates of a plan after a position, from the beginning by default. A document is
    /// returned for each of its entries, unless the newest ones are read.
    pub fn candidates<'a>(
        &'a self,
        collection: u64,
        plan: &ScanPlan,
        after: Option<CandidatePosition>,
        snapshot: &'a DbSnapshot,
    ) -> Result<CandidateScan<'a>> {
        Ok(CandidateScan {
            store: self,
            collection,
            snapshot,
            source: self.source(collection, plan, after, snapshot)?,
        })
    }

    fn source<'a>(
        &'a self,
        collection: u64,
        plan: &ScanPlan,
        after: Option<CandidatePosition>,
        snapshot: &'a DbSnapshot,
    ) -> Result<CandidateSource<'a>> {
        if plan.index == DOCUMENTS {
            let ranges = plan.ranges.iter().cloned();
            let ranges = match &after {
                Some(after) => ranges
                    .filter_map(|range| behind(range, &after.document))
                    .collect(),
                None => ranges.collect(),
            };
            return Ok(CandidateSource::Documents(ranges, None));
        }
        let installed = self.installed(collection)?;
        let index = installed.definition.index(plan.index);
        let index = index.ok_or(Error::NoIndex)?;
        if index.technique == IndexTechnique::Embedded {
            let read = EmbeddedRead {
                is_by_time: plan.order == PlanOrder::ByTime,
                ..EmbeddedRead::of(collection, index, plan.has_entries)
            };
            let after = after.as_ref();
            return Ok(CandidateSource::Embedded(EmbeddedEntries::new(
                self,
                snapshot,
                read,
                &plan.ranges,
                after,
            )));
        }
        let forms = index.forms();
        let index = ((collection, plan.index), forms);
        let ranges = &plan.ranges;
        Ok(match plan.order {
            PlanOrder::ByIndex => CandidateSource::Ordered(OrderedEntries::new(
                self,
                snapshot,
                index,
                (ranges, plan.is_backward),
                after,
            )),
            PlanOrder::ByTime => CandidateSource::Newest(NewestEntries::open(
                self,
                snapshot,
                index,
                ranges,
                after.as_ref(),
            )?),
            PlanOrder::ById | PlanOrder::Unordered => CandidateSource::Unordered(
                UnorderedEntries::new(self, snapshot, index, ranges, after),
                None,
            ),
        })
    }

    /// The number of entries in ranges of an index, up to a limit.
    pub(crate) fn count_entries(
        &self,
        index: ((u64, u32), &'static [EntryForm]),
        ranges: &[EncodedRange],
        most: usize,
        snapshot: &DbSnapshot,
    ) -> Result<usize> {
        let mut entries = UnorderedEntries::new(self, snapshot, index, ranges, None);
        let mut count = 0;
        while count < most && entries.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

impl Iterator for CandidateScan<'_> {
    type Item = Result<Candidate>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_candidate().transpose()
    }
}

impl CandidateScan<'_> {
    /// The scan without most of the repetitions of documents, if their order does not matter.
    #[must_use]
    pub fn without_repetitions(mut self) -> Self {
        if let CandidateSource::Unordered(_, read) = &mut self.source {
            *read = Some(ReadDocuments::default());
        }
        self
    }

    fn next_candidate(&mut self) -> Result<Option<Candidate>> {
        match &mut self.source {
            CandidateSource::Documents(..) => return self.next_document(),
            CandidateSource::Embedded(entries) => return entries.next(),
            _ => {}
        }
        while let Some(next) = self.next_entry()? {
            let stored = self
                .store
                .get(self.collection, &next.document, Some(self.snapshot))?;
            // The entries of a batch are visible with its documents.
            if let Some(stored) = stored {
                return Ok(Some(Candidate {
                    key: next.document,
                    entry: Some(next.entry),
                    document: stored,
                    position: next.position,
                }));
            }
        }
        Ok(None)
    }

    fn next_entry(&mut self) -> Result<Option<DocumentEntry>> {
        let position = match &mut self.source {
            CandidateSource::Documents(..) | CandidateSource::Embedded(_) => None,
            CandidateSource::Unordered(entries, read) => {
                let mut next = entries.next()?;
                let Some(read) = read else {
                    return Ok(next);
                };
                for _ in 0..SKIPPED_AT_ONCE {
                    match &next {
                        Some(entry) if read.contains(&entry.document) => next = entries.next()?,
                        _ => break,
                    }
                }
                if let Some(entry) = &next {
                    read.add(&entry.document);
                }
                return Ok(next);
            }
            CandidateSource::Ordered(entries) => entries.next()?,
            CandidateSource::Newest(entries) => entries.next()?.as_ref().map(position_of),
        };
        Ok(position.map(|position| DocumentEntry {
            entry: position.entry.clone(),
            document: position.document.clone(),
            position,
        }))
    }

    fn next_document(&mut self) -> Result<Option<Candidate>> {
        let CandidateSource::Documents(ranges, current) = &mut self.source else {
            return Ok(None);
        };
        loop {
            let Some(scan) = current.as_mut().filter(|scan| scan.is_valid()) else {
                let Some(range) = ranges.pop_front() else {
                    return Ok(None);
                };
                let store = self.store;
                *current = Some(store.scan_documents(self.collection, &range, self.snapshot)?);
                continue;
            };
            let stored = DocumentRecord::decode(scan.sequence(), scan.value())?;
            let key = scan.key().get(PREFIX_BYTES..).unwrap_or_default().to_vec();
            scan.advance()?;
            if !stored.head.is_tombstone {
                let position = CandidatePosition {
                    entry: Vec::new(),
                    document: key.clone(),
                };
                return Ok(Some(Candidate {
                    key,
                    entry: None,
                    document: stored,
                    position,
                }));
            }
        }
    }
}

impl Collections {
    fn scan_documents(
        &self,
        collection: u64,
        range: &EncodedRange,
        snapshot: &DbSnapshot,
    ) -> Result<Scan> {
        let start = document_key(collection, &range.low);
        let end = match &range.high {
            Some(high) => document_key(collection, high),
            None => prefix(collection, DOCUMENTS + 1).to_vec(),
        };
        let (start, end) = (Bound::Included(&*start), Bound::Excluded(&*end));
        let mut scan = self.db.scan(&self.entries, start, end, Some(snapshot))?;
        scan.first()?;
        Ok(scan)
    }
}

/// The part of a range after a document's key.
fn behind(mut range: EncodedRange, key: &[u8]) -> Option<EncodedRange> {
    if range.high.as_ref().is_some_and(|high| **high <= *key) {
        return None;
    }
    // Keys are prefix-free: this is the next one.
    let next = [key, &[0]].concat();
    range.low = range.low.max(next);
    Some(range)
}
