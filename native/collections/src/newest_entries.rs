//! The documents of some entries, the one that was changed last first, by lazy and eager indexes.
//!
//! Each entry is a *head*, whose documents are stored in the order of their times. A queue contains
//! the next document of each head; so no more is read of a head than what is returned.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Bound;
use std::vec;

use rillbase_documents::bounds::EncodedRange;
use rillbase_engine::{DbSnapshot, Scan};

use crate::candidate_scan::CandidatePosition;
use crate::entry_list::EntryList;
use crate::error::Result;
use crate::format::{
    EntryForm, TimedDocument, entry_end, entry_head, list_key, prefix, range_end, range_start,
    split_timed, timed_key, whole_entry,
};
use crate::store::Collections;

/// More heads are not worthwhile: each is looked up.
const MAX_HEADS: usize = 1_000;
/// The maximum size of the lists that are read together.
const MAX_LISTS_BYTES: usize = 16 << 20;

/// An entry whose documents are read.
#[derive(Debug)]
struct EntryHead {
    entry: Vec<u8>,
    /// Its documents, if they are in a list.
    listed: Option<vec::IntoIter<TimedDocument>>,
}

/// The documents of some heads, the newest first, then by key, each once.
#[derive(Debug)]
pub(crate) struct NewestEntries {
    place: (u64, u32),
    /// Over all timed entries of the index.
    scan: Scan,
    heads: Vec<EntryHead>,
    /// The next document of each head, with its number.
    queue: BinaryHeap<Reverse<(TimedDocument, usize)>>,
    /// The head within which the scan is.
    scanned: Option<usize>,
    /// A document has several heads if it has several values.
    last: Option<TimedDocument>,
}

impl NewestEntries {
    /// The documents of the heads at which ranges start, after a position.
    pub(crate) fn open(
        store: &Collections,
        snapshot: &DbSnapshot,
        (place, forms): ((u64, u32), &'static [EntryForm]),
        ranges: &[EncodedRange],
        after: Option<&CandidatePosition>,
    ) -> Result<Self> {
        let (start, end) = (
            prefix(place.0, place.1),
            range_end(place, EntryForm::Timed, None),
        );
        let (start, end) = (Bound::Included(&start[..]), Bound::Excluded(&*end));
        let mut newest = Self {
            place,
            scan: store.db.scan(&store.entries, start, end, Some(snapshot))?,
            heads: Vec::new(),
            queue: BinaryHeap::new(),
            scanned: None,
            last: after.and_then(timed_document),
        };
        let has_lists = forms.contains(&EntryForm::List);
        for range in ranges {
            let entry = range.low.clone();
            let mut listed = None;
            if has_lists {
                let key = list_key(place, &entry);
                let value = store.db.get_at(&store.entries, &key, snapshot)?;
                let list = value.map(|value| EntryList::decode(&value)).transpose()?;
                if let Some(EntryList::Listed(documents)) = list {
                    listed = Some(documents.into_iter());
                }
            }
            newest.heads.push(EntryHead { entry, listed });
            newest.advance(newest.heads.len() - 1)?;
        }
        Ok(newest)
    }

    /// The next document.
    pub(crate) fn next(&mut self) -> Result<Option<TimedDocument>> {
        while let Some(Reverse((document, head))) = self.queue.pop() {
            let is_repeated = self.last.as_ref() == Some(&document);
            self.last = Some(document.clone());
            self.advance(head)?;
            if !is_repeated {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    /// Adds the next document of a head, after the last one that was returned, to the queue.
    fn advance(&mut self, number: usize) -> Result<()> {
        let last = self.last.as_ref();
        let is_new = |document: &TimedDocument| last.is_none_or(|last| document > last);
        let head = self.heads.get_mut(number);
        let next = match head.and_then(|head| head.listed.as_mut()) {
            Some(listed) => listed.find(is_new),
            None => self.scan_head(number)?,
        };
        self.queue.extend(next.map(|next| Reverse((next, number))));
        Ok(())
    }

    /// The next document of a head by its timed entries.
    fn scan_head(&mut self, number: usize) -> Result<Option<TimedDocument>> {
        let Some(head) = self.heads.get(number) else {
            return Ok(None);
        };
        if self.scanned == Some(number) {
            self.scan.advance()?;
        } else {
            let start = self.last.clone().unwrap_or_default();
            let start = timed_key(self.place, &head.entry, &start);
            let common = entry_head(self.place, EntryForm::Timed, &head.entry);
            self.scan.seek_heads(&start, &[&common])?;
            self.scanned = Some(number);
        }
        let end = entry_end(self.place, EntryForm::Timed, &head.entry);
        while self.scan.is_valid() && *self.scan.key() < *end {
            let (_, document) = split_timed(self.scan.key())?;
            if self.last.as_ref().is_none_or(|last| document > *last) {
                return Ok(Some(document));
            }
            self.scan.advance()?;
        }
        Ok(None)
    }
}

/// The position of a document that [`NewestEntries`] returned.
pub(crate) fn position_of(document: &TimedDocument) -> CandidatePosition {
    CandidatePosition {
        entry: document.reversed_ms.to_be_bytes().to_vec(),
        document: document.key.clone(),
    }
}

fn timed_document(position: &CandidatePosition) -> Option<TimedDocument> {
    let time = position.entry.as_slice().try_into().ok()?;
    Some(TimedDocument {
        reversed_ms: u64::from_be_bytes(time),
        key: position.document.clone(),
    })
}

impl Collections {
    /// The ranges of the heads within some ranges of an index by time; `None` if there are too many.
    pub(crate) fn heads(
        &self,
        (place, forms): ((u64, u32), &'static [EntryForm]),
        ranges: &[EncodedRange],
        snapshot: &DbSnapshot,
    ) -> Result<Option<Vec<EncodedRange>>> {
        // Each entry of an eager index has a list, if only a split one.
        let form = forms.first().copied().unwrap_or(EntryForm::Timed);
        let (mut heads, mut bytes) = (Vec::new(), 0);
        for range in ranges {
            let start = range_start(place, form, &range.low);
            let end = range_end(place, form, range.high.as_deref());
            let (start, end) = (Bound::Included(&*start), Bound::Excluded(&*end));
            let mut scan = self.db.scan(&self.entries, start, end, Some(snapshot))?;
            scan.first()?;
            while scan.is_valid() {
                let entry = match form {
                    EntryForm::List => whole_entry(scan.key())?.to_vec(),
                    _ => split_timed(scan.key())?.0.to_vec(),
                };
                bytes += scan.value().len();
                if heads.len() >= MAX_HEADS || bytes > MAX_LISTS_BYTES {
                    return Ok(None);
                }
                scan.seek(&entry_end(place, form, &entry))?;
                heads.push(EncodedRange {
                    high: Some([entry.as_slice(), &[0xff]].concat()),
                    low: entry,
                });
            }
        }
        Ok(Some(heads))
    }
}
