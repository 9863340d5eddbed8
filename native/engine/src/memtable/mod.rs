//! The newest entries, in memory.
//!
//! Entries are not copied: nodes of the [`skip_list`] point into the batches that were logged. A
//! memtable takes entries until it is full, then it is only read until it was flushed.

mod bloom;
mod skip_list;
mod slots;
mod sync;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::key::{Kind, Sequence, Tag};
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::table::hash;
use crate::value::Value;
use bloom::Bloom;
use skip_list::SkipList;

/// What an entry costs beside its bytes: its node and its share of links.
const ENTRY_OVERHEAD: usize = 88;

/// Entries of one keyspace that were not flushed yet.
#[derive(Debug)]
pub(crate) struct Memtable {
    list: SkipList,
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
    /// An empty one, which is full at about so many bytes. Its filter takes one percent more.
    pub(crate) fn new(full_bytes: usize) -> Self {
        Self {
            list: SkipList::new(),
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
        let bytes = batch.get(key.start as usize..key.end as usize);
        self.bloom.add(hash(bytes.unwrap_or_default()));
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
        self.list.len()
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
}

impl MemtableCursor {
    pub(crate) fn new(memtable: Arc<Memtable>) -> Self {
        Self { memtable, node: 0 }
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.node != 0
    }

    pub(crate) fn first(&mut self) {
        self.node = self.memtable.list.next(0);
    }

    pub(crate) fn last(&mut self) {
        self.node = self.memtable.list.last();
    }

    /// To the first entry at or behind `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) {
        self.node = self.memtable.list.seek(key, tag);
    }

    /// To the last entry before `(key, tag)`.
    pub(crate) fn seek_before(&mut self, key: &[u8], tag: Tag) {
        self.node = self.memtable.list.before(key, tag);
    }

    pub(crate) fn next(&mut self) {
        if self.node != 0 {
            self.node = self.memtable.list.next(self.node);
        }
    }

    pub(crate) fn previous(&mut self) {
        if let Some(node) = self.memtable.list.node(self.node) {
            self.node = self.memtable.list.before(node.key(), node.tag());
        }
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.memtable
            .list
            .node(self.node)
            .map_or(&[], |node| node.key())
    }

    pub(crate) fn tag(&self) -> Tag {
        self.memtable
            .list
            .node(self.node)
            .map_or(Tag::OLDEST, skip_list::Node::tag)
    }

    pub(crate) fn value(&self) -> &[u8] {
        self.memtable
            .list
            .node(self.node)
            .map_or(&[], |node| node.value())
    }
}

/// One entry of a memtable.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) tag: Tag,
    node: &'a skip_list::Node,
}

impl Found<'_> {
    pub(crate) fn value(&self) -> Value {
        let (batch, at, length) = self.node.place();
        Value::in_batch(batch, at, length)
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
        let mut number = if self.bloom.may_contain(hash) {
            self.list.seek(key, tag)
        } else {
            0
        };
        std::iter::from_fn(move || {
            let node = self.list.node(number)?;
            if node.key() != key {
                return None;
            }
            number = self.list.next(number);
            Some(Found {
                tag: node.tag(),
                node,
            })
        })
    }
}
