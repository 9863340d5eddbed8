//! The entries of an index where their order does not matter: the ranges one after another, and each
//! range form by form.

use std::collections::VecDeque;
use std::ops::Bound;
use std::vec;

use rillbase_documents::bounds::EncodedRange;
use rillbase_engine::{DbSnapshot, Scan};

use crate::candidate_scan::{CandidatePosition, DocumentEntry};
use crate::entry_list::EntryList;
use crate::error::Result;
use crate::format::{
    EntryForm, PREFIX_BYTES, prefix, range_end, range_start, split_entry, split_timed, whole_entry,
};
use crate::store::Collections;

/// A part of the keys of an index.
#[derive(Debug)]
struct FormRange {
    form: EntryForm,
    start: Vec<u8>,
    end: Vec<u8>,
}

/// The scan of a part.
#[derive(Debug)]
struct FormScan {
    form: EntryForm,
    scan: Scan,
    /// The documents of the list at which the scan is that were not returned yet.
    listed: vec::IntoIter<Vec<u8>>,
    /// Whether the scan is at an entry that was returned.
    is_read: bool,
}

/// The entries of some ranges.
#[derive(Debug)]
pub(crate) struct UnorderedEntries<'a> {
    store: &'a Collections,
    snapshot: &'a DbSnapshot,
    /// What is not read yet.
    ranges: VecDeque<FormRange>,
    current: Option<FormScan>,
    /// The key and the document after which reading starts.
    after: Option<(Vec<u8>, Vec<u8>)>,
}

impl<'a> UnorderedEntries<'a> {
    /// The entries after a position.
    pub(crate) fn new(
        store: &'a Collections,
        snapshot: &'a DbSnapshot,
        (place, forms): ((u64, u32), &'static [EntryForm]),
        ranges: &[EncodedRange],
        after: Option<CandidatePosition>,
    ) -> Self {
        let by_form = |range| {
            forms
                .iter()
                .map(move |&form| form_range(place, form, range))
        };
        let mut ranges: VecDeque<FormRange> = ranges.iter().flat_map(by_form).collect();
        let after = after.map(|after| {
            let key = [&prefix(place.0, place.1), after.entry.as_slice()].concat();
            (key, after.document)
        });
        if let Some((key, _)) = &after {
            let contains = |range: &FormRange| range.start <= *key && *key < range.end;
            let read = ranges.iter().position(contains).unwrap_or(ranges.len());
            ranges.drain(..read);
        }
        Self {
            store,
            snapshot,
            ranges,
            current: None,
            after,
        }
    }

    pub(crate) fn next(&mut self) -> Result<Option<DocumentEntry>> {
        loop {
            if self.current.is_none() && !self.next_range()? {
                return Ok(None);
            }
            if let Some(current) = &mut self.current {
                if let Some(entry) = current.next()? {
                    return Ok(Some(entry));
                }
                self.current = None;
            }
        }
    }

    fn next_range(&mut self) -> Result<bool> {
        let Some(FormRange { form, start, end }) = self.ranges.pop_front() else {
            return Ok(false);
        };
        let after = self.after.take();
        let start = after.as_ref().map_or(&start, |(key, _)| key);
        let (start, end) = (Bound::Included(start.as_slice()), Bound::Excluded(&*end));
        let store = self.store;
        let mut scan = store
            .db
            .scan(&store.entries, start, end, Some(self.snapshot))?;
        scan.first()?;
        let mut current = FormScan {
            form,
            scan,
            listed: Vec::new().into_iter(),
            is_read: false,
        };
        if let Some((key, document)) = after {
            current.skip(&key, &document)?;
        }
        self.current = Some(current);
        Ok(true)
    }
}

impl FormScan {
    /// Skips the entry of a document under a key; in a list also the documents before it.
    fn skip(&mut self, key: &[u8], document: &[u8]) -> Result<()> {
        if !self.scan.is_valid() || self.scan.key() != key {
            return Ok(());
        }
        self.is_read = true;
        if self.form == EntryForm::List {
            let documents = listed(&self.scan)?;
            let read = documents.iter().position(|listed| listed == document);
            let after = read.map_or(0, |at| at + 1);
            self.listed = documents.into_iter();
            if let Some(last) = after.checked_sub(1) {
                self.listed.nth(last);
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Option<DocumentEntry>> {
        loop {
            if let Some(document) = self.listed.next() {
                let entry = whole_entry(self.scan.key())?.to_vec();
                return Ok(Some(self.entry(entry, document)));
            }
            if self.is_read {
                self.scan.advance()?;
            }
            if !self.scan.is_valid() {
                return Ok(None);
            }
            self.is_read = true;
            let key = self.scan.key();
            let (entry, document) = match self.form {
                EntryForm::List => {
                    self.listed = listed(&self.scan)?.into_iter();
                    continue;
                }
                EntryForm::Unique => (whole_entry(key)?, self.scan.value().to_vec()),
                EntryForm::Composite => {
                    let (entry, document) = split_entry(key)?;
                    (entry, document.to_vec())
                }
                EntryForm::Timed => {
                    let (entry, timed) = split_timed(key)?;
                    (entry, timed.key)
                }
            };
            return Ok(Some(self.entry(entry.to_vec(), document)));
        }
    }

    fn entry(&self, entry: Vec<u8>, document: Vec<u8>) -> DocumentEntry {
        let key = self.scan.key().get(PREFIX_BYTES..).unwrap_or_default();
        DocumentEntry {
            entry,
            position: CandidatePosition {
                entry: key.to_vec(),
                document: document.clone(),
            },
            document,
        }
    }
}

fn form_range(place: (u64, u32), form: EntryForm, range: &EncodedRange) -> FormRange {
    FormRange {
        form,
        start: range_start(place, form, &range.low),
        end: range_end(place, form, range.high.as_deref()),
    }
}

/// The documents of the list at which a scan is; none if they have timed entries.
fn listed(scan: &Scan) -> Result<Vec<Vec<u8>>> {
    Ok(match EntryList::decode(scan.value())? {
        EntryList::Listed(documents) => {
            documents.into_iter().map(|document| document.key).collect()
        }
        EntryList::Split => Vec::new(),
    })
}
