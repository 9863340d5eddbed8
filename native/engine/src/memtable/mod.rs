//! The newest entries, in memory.
//!
//! Entries are copied from the logged batches into a [`SkipList`], where an entry has little
//! overhead, so that a memtable becomes a run of nearly the same size. A memtable accepts entries
//! until it is full; then it is read-only until it has been flushed. If a keyspace accumulates, its
//! entries are [`rows`] instead, whose operands are folded early. With an extractor, it also lists the
//! [`attributes`] of its entries.

mod attributes;
mod bloom;
mod key_filter;
pub(crate) mod rows;
mod sync;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;
use rillbase_skip_list::{ListCursor, SkipList, SkipListEntry};

use crate::horizon::Horizon;
use crate::key::hash;
use crate::key::{EntryKind, Sequence, Tag};
use crate::merge::Merge;
use crate::options::KeyspaceOptions;
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::value::ValueBytes;
pub(crate) use attributes::{AttributeCursor, AttributeEntry, AttributeList};
use key_filter::KeyFilter;
use rows::{MergedRows, RowsCursor};

/// The approximate overhead of a row's entry or a range delete.
const ROW_OVERHEAD: usize = 88;

/// Entries of one keyspace that were not flushed yet.
#[derive(Debug)]
pub(crate) struct Memtable {
    list: SkipList,
    /// Replaces the list.
    rows: Option<MergedRows>,
    /// With an extractor, unless there are rows.
    attributes: Option<Box<AttributeList>>,
    /// Of whole keys, also if the filters of tables contain heads by a function, for which some keys
    /// are looked up whole. With fixed tails lookups are scans, which do not use it.
    filter: Option<KeyFilter>,
    range_deletes: RwLock<Option<Arc<RangeDeletes>>>,
    bytes: AtomicUsize,
    /// The first log record that must be kept until this is flushed.
    first_record: AtomicU64,
    oldest_sequence: AtomicU64,
    /// Set when it is sealed: everything of the keyspace up to here is here or in older data.
    sealed_at: AtomicU64,
    /// Entries after this belong to writes for which the log had no space, and are invisible.
    cut: AtomicU64,
}

impl Memtable {
    /// An empty one for a keyspace. Filled, its filter takes one percent of its limit.
    pub(crate) fn of(options: &KeyspaceOptions) -> Self {
        Self {
            list: SkipList::new(),
            rows: options.accumulates.then(MergedRows::default),
            attributes: AttributeList::of(options),
            filter: (options.head.tail_bytes() == 0)
                .then(|| KeyFilter::new(options.memtable_bytes)),
            range_deletes: RwLock::default(),
            bytes: AtomicUsize::new(0),
            first_record: AtomicU64::new(u64::MAX),
            oldest_sequence: AtomicU64::new(u64::MAX),
            sealed_at: AtomicU64::new(0),
            cut: AtomicU64::new(Sequence::MAX),
        }
    }

    /// Adds an entry. Tags are unique. Returns false if it is full.
    pub(crate) fn insert(&self, key: &[u8], value: &[u8], tag: Tag) -> bool {
        self.oldest_sequence
            .fetch_min(tag.sequence(), Ordering::Relaxed);
        let taken = if tag.kind() == Some(EntryKind::RangeDelete) {
            self.add_range_delete(key, value, tag.sequence());
            Some(key.len() + value.len() + ROW_OVERHEAD)
        } else {
            if let Some(filter) = &self.filter {
                filter.add(hash(key), self.bytes());
            }
            if let Some(rows) = &self.rows {
                rows.insert(key, value, tag);
                Some(key.len() + value.len() + ROW_OVERHEAD)
            } else {
                self.insert_listed(key, value, tag)
            }
        };
        self.bytes.fetch_add(taken.unwrap_or(0), Ordering::Relaxed);
        taken.is_some()
    }

    fn insert_listed(&self, key: &[u8], value: &[u8], tag: Tag) -> Option<usize> {
        let bytes = self.list.insert(key, value, tag.0)?;
        let attributes = self.attributes.as_ref();
        Some(bytes + attributes.map_or(0, |list| list.insert(key, value, tag)))
    }

    /// The attributes of its entries, if all are listed that a version of the extractor adds.
    pub(crate) fn attributes(&self, version: u64) -> Option<&AttributeList> {
        let attributes = self.attributes.as_deref();
        attributes.filter(|list| list.is_complete_in(version))
    }

    /// The list of attributes, also if it has become incomplete: what was visible before is there.
    pub(crate) fn attributes_so_far(&self) -> Option<&AttributeList> {
        self.attributes.as_deref()
    }

    /// The newest entry of a key up to a sequence, if there are no rows.
    pub(crate) fn newest(&self, key: &[u8], sequence: Sequence) -> Option<(Tag, &[u8])> {
        let at = self.list.seek(key, Tag::seek(sequence.min(self.cut())).0);
        let entry = self.list.entry(at)?;
        (entry.key() == key).then(|| (Tag(entry.tag()), entry.value()))
    }

    fn add_range_delete(&self, start: &[u8], end: &[u8], sequence: Sequence) {
        let mut ranges = self.range_deletes.write();
        if sequence > self.cut() {
            return;
        }
        // Readers of the previous value keep it unchanged.
        Arc::make_mut(ranges.get_or_insert_default()).add(&RangeDelete {
            start: start.to_vec(),
            end: end.to_vec(),
            sequence,
        });
    }

    /// The memory of its entries.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Records that a log record has entries for this. Called before they are added.
    pub(crate) fn keep_log_from(&self, record: u64) {
        self.first_record.fetch_min(record, Ordering::Relaxed);
    }

    /// The first log record that has entries for this; `u64::MAX` if none has.
    pub(crate) fn first_record(&self) -> u64 {
        self.first_record.load(Ordering::Relaxed)
    }

    /// Seals it against further entries.
    pub(crate) fn seal(&self, sequence: Sequence) {
        self.sealed_at.store(sequence, Ordering::Release);
    }

    pub(crate) fn sealed_at(&self) -> Sequence {
        self.sealed_at.load(Ordering::Acquire).min(self.cut())
    }

    /// Hides the entries after a sequence, also those that are still being added. Called before any
    /// sequence after it can become visible.
    pub(crate) fn cut_at(&self, sequence: Sequence) {
        self.cut.fetch_min(sequence, Ordering::AcqRel);
        let mut ranges = self.range_deletes.write();
        if let Some(all) = ranges.as_mut() {
            *all = Arc::new(all.up_to(sequence));
        }
    }

    #[inline]
    fn cut(&self) -> Sequence {
        self.cut.load(Ordering::Acquire)
    }

    /// A lower bound of all sequences here.
    pub(crate) fn oldest_sequence(&self) -> Sequence {
        self.oldest_sequence.load(Ordering::Relaxed)
    }

    /// Whether no log record has entries for this.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_record() == u64::MAX
    }

    pub(crate) fn entries(&self) -> u32 {
        self.rows
            .as_ref()
            .map_or(self.list.len(), MergedRows::added)
    }

    /// Whether entries are folded early.
    pub(crate) fn accumulates(&self) -> bool {
        self.rows.is_some()
    }

    /// Folds the entries of a key, as far as visibility and open snapshots allow.
    pub(crate) fn fold(&self, key: &[u8], merge: &dyn Merge, moment: (Sequence, &Horizon)) {
        let Some(rows) = &self.rows else { return };
        let ranges = self.range_deletes();
        let is_covered = |older: Tag, newer: Tag| {
            let ranges = ranges.as_ref();
            ranges.is_some_and(|all| all.covering(key, newer.sequence()) >= older.sequence())
        };
        let (visible, horizon) = moment;
        let moment = (visible.min(self.cut()), horizon);
        let smaller = rows.fold(key, merge, moment, &is_covered);
        self.bytes.fetch_sub(smaller, Ordering::Relaxed);
    }

    /// The current range deletes.
    pub(crate) fn range_deletes(&self) -> Option<Arc<RangeDeletes>> {
        let ranges = self.range_deletes.read();
        ranges.as_ref().filter(|ranges| !ranges.is_empty()).cloned()
    }
}

/// A cursor over a memtable.
#[derive(Debug, Clone)]
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    at: ListCursor,
    /// If the memtable has rows.
    row: RowsCursor,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self {
            memtable,
            at: ListCursor::NOWHERE,
            row: RowsCursor::default(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.at.is_entry() || self.row.is_valid()
    }

    pub(crate) fn first(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.first(rows),
            None => self.at = self.memtable.list.first(),
        }
        self.skip_hidden(Self::step);
    }

    pub(crate) fn last(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.last(rows),
            None => self.at = self.memtable.list.last(),
        }
        self.skip_hidden(Self::step_back);
    }

    /// Skips entries for which the log had no space.
    #[inline]
    fn skip_hidden(&mut self, step: fn(&mut Self)) {
        let cut = self.memtable.cut();
        if cut == Sequence::MAX {
            return;
        }
        while self.is_valid() && self.tag().sequence() > cut {
            step(self);
        }
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) {
        match &self.memtable.rows {
            Some(rows) => self.row.seek(rows, key, tag),
            None => self.at = self.memtable.list.seek(key, tag.0),
        }
        self.skip_hidden(Self::step);
    }

    /// Moves to the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) {
        match &self.memtable.rows {
            Some(rows) => self.row.seek_before(rows, key, tag),
            None => self.at = self.memtable.list.seek_before(key, tag.0),
        }
        self.skip_hidden(Self::step_back);
    }

    pub(crate) fn next(&mut self) {
        self.step();
        self.skip_hidden(Self::step);
    }

    pub(crate) fn previous(&mut self) {
        self.step_back();
        self.skip_hidden(Self::step_back);
    }

    fn step(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.next(rows),
            None => self.at = self.memtable.list.next(self.at),
        }
    }

    fn step_back(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.previous(rows),
            None => self.at = self.memtable.list.previous(self.at),
        }
    }

    fn entry(&self) -> Option<SkipListEntry<'_>> {
        self.memtable.list.entry(self.at)
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.entry()
            .map_or_else(|| self.row.key(), SkipListEntry::key)
    }

    pub(crate) fn tag(&self) -> Tag {
        let tag = |entry: SkipListEntry<'_>| Tag(entry.tag());
        self.entry().map_or_else(|| self.row.tag(), tag)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.entry()
            .map_or_else(|| self.row.value(), SkipListEntry::value)
    }
}

/// One entry of a memtable.
#[derive(Debug)]
pub(crate) struct MemtableEntry<'a> {
    pub(crate) tag: Tag,
    location: EntryLocation<'a>,
}

#[derive(Debug)]
enum EntryLocation<'a> {
    Listed(SkipListEntry<'a>),
    Row(ValueBytes),
}

impl MemtableEntry<'_> {
    pub(crate) fn value(&self) -> ValueBytes {
        match &self.location {
            EntryLocation::Row(value) => value.clone(),
            EntryLocation::Listed(entry) => ValueBytes::copied(entry.value()),
        }
    }
}

impl Memtable {
    /// The entries of a key, with its hash, that are at or after `tag`, newest first.
    pub(crate) fn versions<'a>(
        &'a self,
        key: &'a [u8],
        hash: u64,
        tag: Tag,
    ) -> impl Iterator<Item = MemtableEntry<'a>> {
        let filter = self.filter.as_ref();
        let is_here = filter.is_none_or(|filter| filter.may_contain(hash));
        let rows = self.rows.as_ref().filter(|_| is_here);
        let row = rows.map_or_else(Vec::new, |rows| rows.versions(key, tag));
        let row = row.into_iter().map(|(tag, value)| MemtableEntry {
            tag,
            location: EntryLocation::Row(value),
        });
        let mut at = if is_here && self.rows.is_none() {
            self.list.seek(key, tag.0)
        } else {
            ListCursor::NOWHERE
        };
        let listed = std::iter::from_fn(move || {
            let entry = self.list.entry(at).filter(|entry| entry.key() == key)?;
            at = self.list.next(at);
            Some(MemtableEntry {
                tag: Tag(entry.tag()),
                location: EntryLocation::Listed(entry),
            })
        });
        let cut = self.cut();
        let versions = row.chain(listed);
        versions.filter(move |entry| entry.tag.sequence() <= cut)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{AttributeBounds, Extractor, ZoneMap};
    use crate::head::{HeadFunction, KeyHead};

    /// The head of every key is its first byte.
    #[derive(Debug)]
    struct FirstByte;

    impl HeadFunction for FirstByte {
        fn name(&self) -> &'static str {
            "first-byte"
        }

        fn head_len(&self, _: &[u8]) -> usize {
            1
        }
    }

    /// The attribute of an entry is its value.
    #[derive(Debug)]
    struct WholeValue;

    impl Extractor for WholeValue {
        fn name(&self) -> &'static str {
            "whole_value"
        }

        fn version(&self) -> u64 {
            4
        }

        fn is_listed(&self) -> bool {
            true
        }

        fn extract(&self, _: &[u8], value: &[u8], about: &mut ZoneMap) {
            about.add_indexed(1, value);
        }
    }

    #[test]
    fn entries_are_listed_by_attribute_and_hidden_after_a_cut() {
        let options = KeyspaceOptions {
            extractor: Some(Arc::new(WholeValue)),
            ..KeyspaceOptions::default()
        };
        let memtable = Memtable::of(&options);
        assert!(memtable.attributes(5).is_none());
        let list = memtable.attributes(4).unwrap();
        let mut bytes = memtable.bytes();
        for (key, value, sequence) in [(b"a", b"x", 1), (b"b", b"y", 2), (b"a", b"x", 3)] {
            memtable.insert(key, value, Tag::new(sequence, EntryKind::Put));
            assert!(memtable.bytes() > bytes + 48, "two entries");
            bytes = memtable.bytes();
        }
        memtable.insert(b"b", b"", Tag::new(4, EntryKind::Merge));
        memtable.insert(b"a", b"", Tag::new(5, EntryKind::Delete));
        let listed = |mut cursor| {
            let entries = std::iter::from_fn(|| list.next(&mut cursor));
            entries.map(|entry| entry.tag.sequence()).collect()
        };
        let within = |low: &[u8], high: &[u8]| -> Vec<u64> {
            listed(list.within(&AttributeBounds::new(1, low, high)))
        };
        assert_eq!(
            (within(b"x", b"x"), within(b"", b"x\0")),
            (vec![3, 1], vec![3, 1])
        );
        assert_eq!(
            (within(b"x", b"z"), within(b"y", b"x")),
            (vec![3, 1, 2], vec![])
        );
        assert_eq!(listed(list.unknown()), [4]);
        let newest = |sequence| {
            memtable
                .newest(b"a", sequence)
                .map(|(tag, _)| tag.sequence())
        };
        assert_eq!((newest(4), newest(9), newest(0)), (Some(3), Some(5), None));
        memtable.cut_at(2);
        assert_eq!(newest(9), Some(1));
    }

    #[test]
    fn a_filter_of_whole_keys_is_omitted_only_with_fixed_tails() {
        let has_filter = |head| {
            let options = KeyspaceOptions {
                head,
                ..KeyspaceOptions::default()
            };
            let memtable = Memtable::of(&options);
            memtable.insert(b"key", b"value", Tag::new(1, EntryKind::Put));
            let count = |key| memtable.versions(key, hash(key), Tag::NEWEST).count();
            assert_eq!([count(b"key"), count(b"k")], [1, 0]);
            let filter = memtable.filter.as_ref();
            filter.is_some_and(|filter| !filter.may_contain(hash(b"k")))
        };
        assert!(has_filter(KeyHead::Whole));
        assert!(has_filter(KeyHead::FixedTail(0)));
        assert!(has_filter(KeyHead::Function(Arc::new(FirstByte))));
        assert!(!has_filter(KeyHead::FixedTail(1)));
    }
}
