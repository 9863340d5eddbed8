//! The documents that match ranges of an embedded index, the one that was changed last first.
//!
//! The engine reads blocks in the order of the newest document in them, and only those whose zone or
//! attribute map may contain a value of the range.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::fmt;

use rillbase_documents::bounds::EncodedRange;
use rillbase_engine::{DbSnapshot, Ranked, RankedEntry, ZoneMap};

use crate::candidate_scan::{Candidate, CandidatePosition, DocumentRecord};
use crate::definition::NativeIndex;
use crate::embedded::{attribute_of, attribute_value};
use crate::error::Result;
use crate::format::{DOCUMENTS, PREFIX_BYTES, TimedDocument, prefix};
use crate::store::Collections;

/// The rank of a document is the complement of its time.
type TimeRank = Box<dyn Fn(&ZoneMap) -> Option<u64>>;

const TIME_BYTES: usize = 8;

/// What is read of an embedded index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmbeddedRead {
    pub(crate) place: (u64, u32),
    /// The version of the extractor since which it has the index's attributes.
    pub(crate) since: u64,
    /// Whether each range is a single entry.
    pub(crate) has_entries: bool,
    /// Whether all ranges are read together, in the order of times.
    pub(crate) is_by_time: bool,
}

impl EmbeddedRead {
    /// A read of ranges one after another.
    pub(crate) fn of(collection: u64, index: &NativeIndex, has_entries: bool) -> Self {
        Self {
            place: (collection, index.number),
            since: index.embedded_since,
            has_entries,
            is_by_time: false,
        }
    }
}

/// The documents of some ranges.
pub(crate) struct EmbeddedEntries<'a> {
    store: &'a Collections,
    snapshot: &'a DbSnapshot,
    read: EmbeddedRead,
    /// The ranges that are not read yet.
    ranges: VecDeque<EncodedRange>,
    /// The ranges that are read: one, or all by time.
    ranked: Vec<Ranked<'a, u64, TimeRank>>,
    /// The next document of each of them.
    queue: BinaryHeap<Reverse<(TimedDocument, usize)>>,
    /// What is stored of them.
    entries: Vec<Option<RankedEntry<u64>>>,
    /// The start of the current range, which is a part of positions.
    low: Vec<u8>,
    /// The last document that was returned of the current ranges.
    last: Option<TimedDocument>,
}

impl fmt::Debug for EmbeddedEntries<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("EmbeddedEntries")
            .field("read", &self.read)
            .field("ranges", &self.ranges)
            .finish_non_exhaustive()
    }
}

impl<'a> EmbeddedEntries<'a> {
    /// The documents after a position.
    pub(crate) fn new(
        store: &'a Collections,
        snapshot: &'a DbSnapshot,
        read: EmbeddedRead,
        ranges: &[EncodedRange],
        after: Option<&CandidatePosition>,
    ) -> Self {
        let mut entries = Self {
            store,
            snapshot,
            read,
            ranges: ranges.to_vec().into(),
            ranked: Vec::new(),
            queue: BinaryHeap::new(),
            entries: Vec::new(),
            low: Vec::new(),
            last: None,
        };
        if let Some((document, low)) = after.and_then(split_position) {
            if !read.is_by_time {
                entries.ranges.retain(|range| *range.low >= *low);
            }
            entries.last = Some(document);
        }
        entries
    }

    /// The next document.
    pub(crate) fn next(&mut self) -> Result<Option<Candidate>> {
        loop {
            let Some(Reverse((document, number))) = self.queue.pop() else {
                if !self.open_next()? {
                    return Ok(None);
                }
                continue;
            };
            let entry = self.entries.get_mut(number).and_then(Option::take);
            // A document is in several ranges if it has several values.
            let is_repeated = self.last.as_ref() == Some(&document);
            self.last = Some(document.clone());
            self.advance(number)?;
            if let Some(entry) = entry.filter(|_| !is_repeated) {
                return self.candidate(document, &entry).map(Some);
            }
        }
    }

    /// Starts the next range, or all of them; false if there is none.
    fn open_next(&mut self) -> Result<bool> {
        if !self.ranked.is_empty() {
            // Positions are those of a range.
            self.last = None;
        }
        self.ranked.clear();
        self.entries.clear();
        let count = if self.read.is_by_time {
            self.ranges.len()
        } else {
            1
        };
        for _ in 0..count {
            let Some(range) = self.ranges.pop_front() else {
                break;
            };
            self.open(&range)?;
            self.low = range.low;
        }
        Ok(!self.ranked.is_empty())
    }

    fn open(&mut self, range: &EncodedRange) -> Result<()> {
        let EmbeddedRead { place, since, .. } = self.read;
        let attribute = attribute_of(place.1);
        let low = attribute_value(place, &range.low);
        let high = match &range.high {
            Some(high) => attribute_value(place, high),
            None => prefix(place.0, place.1.saturating_add(1)).to_vec(),
        };
        let after = self.last.as_ref().map_or(0, |last| last.reversed_ms);
        let rank = time_rank(after, attribute, (low.clone(), high.clone()));
        let ranked = self
            .store
            .db
            .ranked(&self.store.entries, Some(self.snapshot), rank)?
            .between(&prefix(place.0, DOCUMENTS), &prefix(place.0, DOCUMENTS + 1))
            .requiring(since);
        self.ranked.push(if self.read.has_entries {
            ranked.with_attribute(attribute, &low)
        } else {
            ranked.with_attribute_range(attribute, &low, &high)
        });
        self.entries.push(None);
        self.advance(self.ranked.len() - 1)
    }

    /// Adds the next document of a range to the queue.
    fn advance(&mut self, number: usize) -> Result<()> {
        let Some(ranked) = self.ranked.get_mut(number) else {
            return Ok(());
        };
        while let Some(entry) = ranked.next()? {
            let key = entry.key.get(PREFIX_BYTES..).unwrap_or_default();
            let document = TimedDocument {
                reversed_ms: entry.rank,
                key: key.to_vec(),
            };
            let is_new = self.last.as_ref().is_none_or(|last| document > *last);
            if is_new {
                self.queue.push(Reverse((document, number)));
                if let Some(slot) = self.entries.get_mut(number) {
                    *slot = Some(entry);
                }
                return Ok(());
            }
        }
        Ok(())
    }

    fn candidate(&self, document: TimedDocument, entry: &RankedEntry<u64>) -> Result<Candidate> {
        let time = document.reversed_ms.to_be_bytes();
        let position = if self.read.is_by_time {
            time.to_vec()
        } else {
            [&time, self.low.as_slice()].concat()
        };
        Ok(Candidate {
            entry: Some(time.to_vec()),
            document: DocumentRecord::decode(entry.sequence, &entry.value)?,
            position: CandidatePosition {
                entry: position,
                document: document.key.clone(),
            },
            key: document.key,
        })
    }
}

impl Collections {
    /// The number of documents in ranges of an embedded index, up to a limit.
    pub(crate) fn count_embedded(
        &self,
        read: EmbeddedRead,
        ranges: &[EncodedRange],
        most: usize,
        snapshot: &DbSnapshot,
    ) -> Result<usize> {
        let mut entries = EmbeddedEntries::new(self, snapshot, read, ranges, None);
        let mut count = 0;
        while count < most && entries.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }
}

/// The document of a position, and where its range starts.
fn split_position(position: &CandidatePosition) -> Option<(TimedDocument, &[u8])> {
    let (time, low) = position.entry.split_first_chunk::<TIME_BYTES>()?;
    let document = TimedDocument {
        reversed_ms: u64::from_be_bytes(*time),
        key: position.document.clone(),
    };
    Some((document, low))
}

/// Ranks documents and zones by their newest time. Those before a rank are excluded: they were
/// returned.
fn time_rank(after: u64, attribute: u8, (low, high): (Vec<u8>, Vec<u8>)) -> TimeRank {
    Box::new(move |zone| {
        let (oldest, newest) = zone.times()?;
        if !oldest < after || !zone.may_have(attribute, &low, &high) {
            return None;
        }
        Some((!newest).max(after))
    })
}
