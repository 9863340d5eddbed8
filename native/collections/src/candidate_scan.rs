//! Reading: documents by key, and candidates for a query.
//!
//! Candidates are read from the documents in the order of their keys, or from an index in the order
//! of its entries. The entries of a unique index have keys of another form; both forms are read side
//! by side. Entries are in ascending order of documents also where the index is read backward, since
//! every sort ends with the ascending `_id`.

use std::collections::VecDeque;
use std::ops::Bound;

use rillbase_documents::bounds::EncodedRange;
use rillbase_documents::envelope::Meta;
use rillbase_documents::selection::CandidateRow;
use rillbase_engine::{DbSnapshot, Scan, Sequence};

use crate::error::Result;
use crate::format::{
    DOCUMENTS, DocumentHead, EntryForm, PREFIX_BYTES, decode_document, document_key, entry_bound,
    mark_bound, prefix, split_entry, unique_entry,
};
use crate::plan::ScanPlan;
use crate::store::Collections;

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
}

impl Candidate {
    /// It as a row for a selection.
    pub fn row(&self) -> CandidateRow<'_> {
        let head = &self.document.head;
        CandidateRow {
            key: &self.key,
            meta: Meta {
                version: head.version,
                created_ms: head.created_ms,
                updated_ms: head.updated_ms,
            },
            body: &self.document.body,
            entry: self.entry.as_deref(),
        }
    }

    /// Its position in the scan.
    pub fn position(&self) -> CandidatePosition {
        CandidatePosition {
            entry: self.entry.clone().unwrap_or_default(),
            document: self.key.clone(),
        }
    }
}

/// A position in a scan: an entry of an index, and a document's key. Scans of documents have no
/// entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CandidatePosition {
    /// The entry.
    pub entry: Vec<u8>,
    /// The document's key.
    pub document: Vec<u8>,
}

/// The candidates of some ranges, in order.
#[derive(Debug)]
pub struct CandidateScan<'a> {
    store: &'a Collections,
    snapshot: &'a DbSnapshot,
    collection: u64,
    /// 0 for the documents.
    index: u32,
    is_backward: bool,
    /// The ranges that are not read yet, in the order in which they are read.
    ranges: VecDeque<EncodedRange>,
    /// The scans of the current range: the documents, or the two forms of entries.
    scans: Vec<(EntryForm, Scan)>,
    /// Entries that are equal to the last one read, in the order of their documents.
    equal: VecDeque<CandidatePosition>,
    /// Candidates up to this position are skipped.
    after: CandidatePosition,
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
        let stored = stored.map(|(sequence, value)| document(sequence, &value));
        stored.transpose()
    }

    /// The candidates of a plan after a position, from the beginning by default. A document is
    /// returned for each of its entries.
    pub fn candidates<'a>(
        &'a self,
        collection: u64,
        plan: &ScanPlan,
        after: Option<CandidatePosition>,
        snapshot: &'a DbSnapshot,
    ) -> CandidateScan<'a> {
        let mut ranges: VecDeque<EncodedRange> = plan.ranges.clone().into();
        if plan.is_backward {
            ranges.make_contiguous().reverse();
        }
        let mut scan = CandidateScan {
            store: self,
            snapshot,
            collection,
            index: plan.index,
            is_backward: plan.is_backward,
            ranges,
            scans: Vec::new(),
            equal: VecDeque::new(),
            after: CandidatePosition::default(),
        };
        if let Some(after) = after {
            scan.skip_to(after);
        }
        scan
    }
}

impl Iterator for CandidateScan<'_> {
    type Item = Result<Candidate>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_candidate().transpose()
    }
}

impl CandidateScan<'_> {
    /// Skips candidates up to a position.
    fn skip_to(&mut self, after: CandidatePosition) {
        let is_by_document = self.index == DOCUMENTS;
        let key = if is_by_document {
            &after.document
        } else {
            &after.entry
        };
        let is_read = |range: &EncodedRange| {
            if self.is_backward {
                range.low > *key
            } else {
                range.high.as_ref().is_some_and(|high| high <= key)
            }
        };
        self.ranges.retain(|range| !is_read(range));
        if let Some(range) = self.ranges.front_mut() {
            if self.is_backward {
                let end = after_entry(key);
                let high = range.high.take().filter(|high| *high < end);
                range.high = high.or(Some(end));
            } else if is_by_document {
                // Keys are prefix-free: this is the next one.
                let next = [key.as_slice(), &[0]].concat();
                range.low = std::mem::take(&mut range.low).max(next);
            } else if range.low < *key {
                range.low.clone_from(key);
            }
        }
        self.after = after;
    }

    fn next_candidate(&mut self) -> Result<Option<Candidate>> {
        if self.index == DOCUMENTS {
            return self.next_document();
        }
        while let Some(CandidatePosition { entry, document }) = self.next_entry()? {
            let (store, collection) = (self.store, self.collection);
            let stored = store.get(collection, &document, Some(self.snapshot))?;
            // The entries of a batch are visible with its documents.
            if let Some(stored) = stored {
                return Ok(Some(Candidate {
                    key: document,
                    entry: Some(entry),
                    document: stored,
                }));
            }
        }
        Ok(None)
    }

    /// The number of entries, up to a limit.
    pub(crate) fn count_entries(&mut self, most: usize) -> Result<usize> {
        let mut count = 0;
        while count < most && self.next_entry()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn next_document(&mut self) -> Result<Option<Candidate>> {
        loop {
            let Some((_, scan)) = self.scans.first_mut() else {
                if !self.next_range()? {
                    return Ok(None);
                }
                continue;
            };
            if !scan.is_valid() {
                self.scans.clear();
                continue;
            }
            let stored = document(scan.sequence(), scan.value())?;
            let key = scan.key().get(PREFIX_BYTES..).unwrap_or_default().to_vec();
            scan.advance()?;
            if !stored.head.is_tombstone {
                return Ok(Some(Candidate {
                    key,
                    entry: None,
                    document: stored,
                }));
            }
        }
    }

    /// Opens the scans of the next range; false if there is none.
    fn next_range(&mut self) -> Result<bool> {
        let Some(range) = self.ranges.pop_front() else {
            return Ok(false);
        };
        let place = (self.collection, self.index);
        if self.index == DOCUMENTS {
            let start = document_key(self.collection, &range.low);
            let end = match &range.high {
                Some(high) => document_key(self.collection, high),
                None => prefix(self.collection, DOCUMENTS + 1).to_vec(),
            };
            return self.open(EntryForm::Composite, &start, &end).map(|()| true);
        }
        for form in [EntryForm::Composite, EntryForm::Unique] {
            // A range from the beginning includes the marks.
            let start = if range.low.is_empty() && form == EntryForm::Composite {
                mark_bound(place)
            } else {
                entry_bound(place, form, &range.low)
            };
            let end = match &range.high {
                Some(high) => entry_bound(place, form, high),
                None => after_form(place, form),
            };
            self.open(form, &start, &end)?;
        }
        Ok(true)
    }

    fn open(&mut self, form: EntryForm, start: &[u8], end: &[u8]) -> Result<()> {
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let store = self.store;
        let mut scan = store
            .db
            .scan(&store.entries, bounds.0, bounds.1, Some(self.snapshot))?;
        if self.is_backward {
            scan.last()?;
        } else {
            scan.first()?;
        }
        self.scans.push((form, scan));
        Ok(())
    }

    fn next_entry(&mut self) -> Result<Option<CandidatePosition>> {
        loop {
            if let Some(next) = self.equal.pop_front() {
                return Ok(Some(next));
            }
            let Some(entry) = self.next_key()? else {
                self.scans.clear();
                if !self.next_range()? {
                    return Ok(None);
                }
                continue;
            };
            self.take_equal(&entry)?;
        }
    }

    /// The first of the entries at which the scans are.
    fn next_key(&mut self) -> Result<Option<Vec<u8>>> {
        let mut first: Option<Vec<u8>> = None;
        for (form, scan) in self.scans.iter().filter(|(_, scan)| scan.is_valid()) {
            let (entry, _) = entry_of(*form, scan)?;
            let is_first = first.as_ref().is_none_or(|first| {
                if self.is_backward {
                    entry.as_slice() > first.as_slice()
                } else {
                    entry.as_slice() < first.as_slice()
                }
            });
            if is_first {
                first = Some(entry);
            }
        }
        Ok(first)
    }

    /// Takes all entries that are equal to this one from the scans.
    fn take_equal(&mut self, equal: &[u8]) -> Result<()> {
        let is_backward = self.is_backward;
        let mut entries = Vec::new();
        for (form, scan) in &mut self.scans {
            while scan.is_valid() {
                let (entry, document) = entry_of(*form, scan)?;
                if entry != equal {
                    break;
                }
                let is_read = entry == self.after.entry && document <= self.after.document;
                if !is_read {
                    entries.push(CandidatePosition { entry, document });
                }
                if is_backward {
                    scan.retreat()?;
                } else {
                    scan.advance()?;
                }
            }
        }
        entries.sort_unstable_by(|one, other| one.document.cmp(&other.document));
        self.equal = entries.into();
        Ok(())
    }
}

/// Where the keys of an entry with all its documents end. Keys of documents begin with a type, which
/// is less than this byte; marks come before all entries.
fn after_entry(entry: &[u8]) -> Vec<u8> {
    let end: &[u8] = if entry.is_empty() { &[0] } else { &[0xff] };
    [entry, end].concat()
}

/// Where the keys of a form end.
fn after_form((collection, index): (u64, u32), form: EntryForm) -> Vec<u8> {
    match form {
        EntryForm::Composite => entry_bound((collection, index), EntryForm::Unique, &[]),
        EntryForm::Unique => prefix(collection, index.saturating_add(1)).to_vec(),
    }
}

fn entry_of(form: EntryForm, scan: &Scan) -> Result<(Vec<u8>, Vec<u8>)> {
    match form {
        EntryForm::Composite => {
            let (entry, document) = split_entry(scan.key())?;
            Ok((entry.to_vec(), document.to_vec()))
        }
        EntryForm::Unique => Ok((unique_entry(scan.key())?.to_vec(), scan.value().to_vec())),
    }
}

fn document(sequence: Sequence, value: &[u8]) -> Result<DocumentRecord> {
    let (head, body) = decode_document(value)?;
    Ok(DocumentRecord {
        head,
        batch: sequence.saturating_sub(u64::from(head.ordinal)),
        body: body.to_vec(),
    })
}
