//! The entries of a composite index in their order, in both directions.
//!
//! The entries of a unique index have keys of another form; both forms are read side by side.
//! Entries are in ascending order of documents also where the index is read backward, since every
//! sort ends with the ascending `_id`.

use std::collections::VecDeque;
use std::ops::Bound;

use rillbase_documents::bounds::EncodedRange;
use rillbase_engine::{DbSnapshot, Scan};

use crate::candidate_scan::CandidatePosition;
use crate::error::Result;
use crate::format::{EntryForm, range_end, range_start, split_entry, whole_entry};
use crate::store::Collections;

/// The entries of some ranges, in order.
#[derive(Debug)]
pub(crate) struct OrderedEntries<'a> {
    store: &'a Collections,
    snapshot: &'a DbSnapshot,
    place: (u64, u32),
    forms: &'static [EntryForm],
    is_backward: bool,
    /// The ranges that are not read yet, in the order in which they are read.
    ranges: VecDeque<EncodedRange>,
    /// The scans of the current range.
    scans: Vec<(EntryForm, Scan)>,
    /// Entries that are equal to the last one read, in the order of their documents.
    equal: VecDeque<CandidatePosition>,
    /// Entries up to this position are skipped.
    after: CandidatePosition,
}

impl<'a> OrderedEntries<'a> {
    /// The entries after a position.
    pub(crate) fn new(
        store: &'a Collections,
        snapshot: &'a DbSnapshot,
        (place, forms): ((u64, u32), &'static [EntryForm]),
        (ranges, is_backward): (&[EncodedRange], bool),
        after: Option<CandidatePosition>,
    ) -> Self {
        let mut ranges: VecDeque<EncodedRange> = ranges.to_vec().into();
        if is_backward {
            ranges.make_contiguous().reverse();
        }
        let mut entries = Self {
            store,
            snapshot,
            place,
            forms,
            is_backward,
            ranges,
            scans: Vec::new(),
            equal: VecDeque::new(),
            after: CandidatePosition::default(),
        };
        if let Some(after) = after {
            entries.skip_to(after);
        }
        entries
    }

    fn skip_to(&mut self, after: CandidatePosition) {
        let key = &after.entry;
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
            } else if range.low < *key {
                range.low.clone_from(key);
            }
        }
        self.after = after;
    }

    /// The next entry with its document.
    pub(crate) fn next(&mut self) -> Result<Option<CandidatePosition>> {
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

    /// Opens the scans of the next range; false if there is none.
    fn next_range(&mut self) -> Result<bool> {
        let Some(range) = self.ranges.pop_front() else {
            return Ok(false);
        };
        for &form in self.forms {
            let start = range_start(self.place, form, &range.low);
            let end = range_end(self.place, form, range.high.as_deref());
            let (start, end) = (Bound::Included(&*start), Bound::Excluded(&*end));
            let store = self.store;
            let mut scan = store
                .db
                .scan(&store.entries, start, end, Some(self.snapshot))?;
            if self.is_backward {
                scan.last()?;
            } else {
                scan.first()?;
            }
            self.scans.push((form, scan));
        }
        Ok(true)
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

/// Where an entry with all its documents ends, among entries. Keys of documents begin with a type,
/// which is less than this byte; marks come before all entries.
fn after_entry(entry: &[u8]) -> Vec<u8> {
    let end: &[u8] = if entry.is_empty() { &[0] } else { &[0xff] };
    [entry, end].concat()
}

fn entry_of(form: EntryForm, scan: &Scan) -> Result<(Vec<u8>, Vec<u8>)> {
    if form == EntryForm::Unique {
        return Ok((whole_entry(scan.key())?.to_vec(), scan.value().to_vec()));
    }
    let (entry, document) = split_entry(scan.key())?;
    Ok((entry.to_vec(), document.to_vec()))
}
