//! The newest entries, in memory.
//!
//! Entries are not copied: nodes of the [`skip_list`] point into the batches that were logged. A
//! memtable takes entries until it is full, then it is only read until it was flushed. Where a
//! keyspace accumulates, its entries are [`rows`] instead, whose operands are folded early.

mod bloom;
pub(crate) mod rows;
mod skip_list;
mod slots;
mod sync;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::db::snapshots::Horizon;
use crate::key::{Kind, Sequence, Tag};
use crate::merge::Merge;
use crate::options::KeyspaceOptions;
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::hash;
use crate::value::Value;
use bloom::Bloom;
use rows::{Rows, RowsCursor};
use skip_list::SkipList;

/// What an entry costs beside its bytes: its node and its share of links.
const ENTRY_OVERHEAD: usize = 88;

/// Entries of one keyspace that were not flushed yet.
#[derive(Debug)]
pub(crate) struct Memtable {
    list: SkipList,
    /// In place of the list.
    rows: Option<Rows>,
    bloom: Bloom,
    range_deletes: RwLock<Option<Arc<RangeDeletes>>>,
    bytes: AtomicUsize,
    /// Where the log must be kept from, as long as this was not flushed.
    first_record: AtomicU64,
    oldest_sequence: AtomicU64,
    /// Set when no more is added: all of the keyspace up to here is here or in what is older.
    sealed_at: AtomicU64,
}

impl Memtable {
    /// An empty one for a keyspace. Its filter takes one percent more than it is full at.
    pub(crate) fn of(options: &KeyspaceOptions) -> Self {
        Self {
            rows: options.accumulates.then(Rows::default),
            ..Self::new(options.memtable_bytes)
        }
    }

    fn new(full_bytes: usize) -> Self {
        Self {
            list: SkipList::new(),
            rows: None,
            bloom: Bloom::new(full_bytes),
            range_deletes: RwLock::default(),
            bytes: AtomicUsize::new(0),
            first_record: AtomicU64::new(u64::MAX),
            oldest_sequence: AtomicU64::new(u64::MAX),
            sealed_at: AtomicU64::new(0),
        }
    }

    /// Adds an entry whose key and value are ranges of a logged batch. Each tag comes once.
    pub(crate) fn insert(
        &self,
        batch: &Arc<[u8]>,
        key: &Range<u32>,
        value: &Range<u32>,
        tag: Tag,
    ) -> bool {
        let size = (key.end - key.start) as usize + (value.end - value.start) as usize;
        self.bytes
            .fetch_add(size + ENTRY_OVERHEAD, Ordering::Relaxed);
        self.oldest_sequence
            .fetch_min(tag.sequence(), Ordering::Relaxed);
        if tag.kind() == Some(Kind::RangeDelete) {
            let bytes = |range: &Range<u32>| {
                batch
                    .get(range.start as usize..range.end as usize)
                    .unwrap_or_default()
                    .to_vec()
            };
            let mut ranges = self.range_deletes.write();
            // Readers that still hold what was there before keep it as it was.
            Arc::make_mut(ranges.get_or_insert_default()).add(&RangeDelete {
                start: bytes(key),
                end: bytes(value),
                sequence: tag.sequence(),
            });
            return true;
        }
        let slice = |range: &Range<u32>| {
            let bytes = batch.get(range.start as usize..range.end as usize);
            bytes.unwrap_or_default()
        };
        self.bloom.add(hash(slice(key)));
        if let Some(rows) = &self.rows {
            rows.insert(slice(key), slice(value), tag);
            return true;
        }
        self.list.insert(batch, key, value, tag)
    }

    /// A rough size in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A record of the log has entries for this. Called before they are added.
    pub(crate) fn keep_log_from(&self, record: u64) {
        self.first_record.fetch_min(record, Ordering::Relaxed);
    }

    /// The first record of the log that has entries for this; `u64::MAX` if none has.
    pub(crate) fn first_record(&self) -> u64 {
        self.first_record.load(Ordering::Relaxed)
    }

    /// No more is added.
    pub(crate) fn seal(&self, sequence: Sequence) {
        self.sealed_at.store(sequence, Ordering::Release);
    }

    pub(crate) fn sealed_at(&self) -> Sequence {
        self.sealed_at.load(Ordering::Acquire)
    }

    /// All sequences here are at or above this.
    pub(crate) fn oldest_sequence(&self) -> Sequence {
        self.oldest_sequence.load(Ordering::Relaxed)
    }

    /// Whether the log has nothing for this.
    pub(crate) fn is_empty(&self) -> bool {
        self.first_record() == u64::MAX
    }

    pub(crate) fn entries(&self) -> u32 {
        self.rows.as_ref().map_or(self.list.len(), Rows::added)
    }

    /// Whether entries are folded early.
    pub(crate) fn accumulates(&self) -> bool {
        self.rows.is_some()
    }

    /// Folds the entries of a key, as far as what is visible, and held, allows.
    pub(crate) fn fold(&self, key: &[u8], merge: &dyn Merge, moment: (Sequence, &Horizon)) {
        let Some(rows) = &self.rows else { return };
        let ranges = self.range_deletes();
        let is_covered = |older: Tag, newer: Tag| {
            let ranges = ranges.as_ref();
            ranges.is_some_and(|all| all.covering(key, newer.sequence()) >= older.sequence())
        };
        let smaller = rows.fold(key, merge, moment, &is_covered);
        self.bytes.fetch_sub(smaller, Ordering::Relaxed);
    }

    /// The range deletes as they stand now.
    pub(crate) fn range_deletes(&self) -> Option<Arc<RangeDeletes>> {
        let ranges = self.range_deletes.read();
        ranges.as_ref().filter(|ranges| !ranges.is_empty()).cloned()
    }
}

/// A place among the entries of a memtable.
#[derive(Debug, Clone)]
pub(crate) struct MemtableCursor {
    memtable: Arc<Memtable>,
    /// 0 is nowhere.
    node: u32,
    /// Where the memtable has rows.
    row: RowsCursor,
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self {
            memtable,
            node: 0,
            row: RowsCursor::default(),
        }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.node != 0 || self.row.is_valid()
    }

    pub(crate) fn first(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.first(rows),
            None => self.node = self.memtable.list.next(0),
        }
    }

    pub(crate) fn last(&mut self) {
        match &self.memtable.rows {
            Some(rows) => self.row.last(rows),
            None => self.node = self.memtable.list.last(),
        }
    }

    /// To the first entry at or behind `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) {
        match &self.memtable.rows {
            Some(rows) => self.row.seek(rows, key, tag),
            None => self.node = self.memtable.list.seek(key, tag),
        }
    }

    /// To the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) {
        match &self.memtable.rows {
            Some(rows) => self.row.seek_before(rows, key, tag),
            None => self.node = self.memtable.list.before(key, tag),
        }
    }

    pub(crate) fn next(&mut self) {
        if let Some(rows) = &self.memtable.rows {
            self.row.next(rows);
        } else if self.node != 0 {
            self.node = self.memtable.list.next(self.node);
        }
    }

    pub(crate) fn previous(&mut self) {
        if let Some(rows) = &self.memtable.rows {
            self.row.previous(rows);
        } else if let Some(node) = self.memtable.list.node(self.node) {
            self.node = self.memtable.list.before(node.key(), node.tag());
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        let node = self.memtable.list.node(self.node);
        node.map_or_else(|| self.row.key(), |node| node.key())
    }

    pub(crate) fn tag(&self) -> Tag {
        let node = self.memtable.list.node(self.node);
        node.map_or_else(|| self.row.tag(), skip_list::Node::tag)
    }

    pub(crate) fn value(&self) -> &[u8] {
        let node = self.memtable.list.node(self.node);
        node.map_or_else(|| self.row.value(), |node| node.value())
    }
}

/// One entry of a memtable.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) tag: Tag,
    place: Place<'a>,
}

#[derive(Debug)]
enum Place<'a> {
    Node(&'a skip_list::Node),
    Row(Value),
}

impl Found<'_> {
    pub(crate) fn value(&self) -> Value {
        match &self.place {
            Place::Row(value) => value.clone(),
            Place::Node(node) => {
                let (batch, at, length) = node.place();
                Value::in_batch(batch, at, length)
            }
        }
    }
}

impl Memtable {
    /// The entries of a key, whose hash is given, that are at or behind `tag`, the newest first.
    pub(crate) fn versions<'a>(
        &'a self,
        key: &'a [u8],
        hash: u64,
        tag: Tag,
    ) -> impl Iterator<Item = Found<'a>> {
        let is_here = self.bloom.may_contain(hash);
        let rows = self.rows.as_ref().filter(|_| is_here);
        let row = rows.map_or_else(Vec::new, |rows| rows.versions(key, tag));
        let row = row.into_iter().map(|(tag, value)| Found {
            tag,
            place: Place::Row(value),
        });
        let mut number = if is_here && self.rows.is_none() {
            self.list.seek(key, tag)
        } else {
            0
        };
        let nodes = std::iter::from_fn(move || {
            let node = self.list.node(number)?;
            if node.key() != key {
                return None;
            }
            number = self.list.next(number);
            Some(Found {
                tag: node.tag(),
                place: Place::Node(node),
            })
        });
        row.chain(nodes)
    }
}
