//! Entries in the order of a rank that a caller computes from their zones: the newest, the nearest.
//!
//! The rank of a zone is a lower bound of the ranks of the entries that it covers. A priority queue
//! contains tables, partitions, blocks and entries by rank. The first item is taken: a table is
//! replaced by its partitions, a partition by its blocks, a block by its entries, and an entry is
//! returned. So nothing is read whose rank is greater than that of the last entry returned. A
//! partition without a zone of its own, as before version 4, is replaced with its table.
//!
//! - An item whose zone has no bound, such as a block with operands or a table that another
//!   extractor made, has the least rank.
//! - Among equal ranks, tables precede partitions, then blocks, then entries. When an entry is
//!   returned, all entries with its rank are in the queue, so that they are in key order.
//! - An entry is in the queue without its value. When it is taken, a point lookup decides whether it
//!   is the entry of its key that the snapshot reads.
//! - The entries of memtables are all added at the start.
//! - With the value of an attribute, only partitions and blocks are added that the table's attribute
//!   map names, or without a map those whose zone may contain the value.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::keyspace::SuperVersion;
use super::point_lookup::Visibility;
use super::search::{Visited, extract_entry, extractor_of};
use super::{Db, DbCore, DbSnapshot, Keyspace};
use crate::error::Result;
use crate::extract::{AttributeValue, Extractor, ExtractorVersion, ZoneMap};
use crate::key::{EntryKind, Sequence, Tag};
use crate::memtable::{Memtable, MemtableCursor};
use crate::table::builder::PARTITION_BLOCKS;
use crate::table::cursor::TableCursor;
use crate::table::frame::Handle;
use crate::table::reader::TableReader;
use crate::value::ValueBytes;
use crate::version::file::TableFile;

/// An entry that [`Ranked::next`] returned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RankedEntry<S> {
    /// Its key.
    pub key: Vec<u8>,
    /// Its value.
    pub value: ValueBytes,
    /// The sequence of its write; of the newest one if operands are folded.
    pub sequence: Sequence,
    /// Its rank.
    pub rank: S,
}

/// Something to read. The order of variants is the order among equal ranks.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum RankedPart {
    /// The number of a file.
    Table(usize),
    /// The number of a file, and that of the partition.
    Partition(usize, usize),
    /// The number of a file, and the offset and length of the block.
    Block(usize, u64, u64),
    Entry(Vec<u8>, Sequence),
}

/// An item with its rank, which is `None` if its zone has no bound.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RankedItem<S> {
    rank: Option<S>,
    item: RankedPart,
}

/// How a zone limits the ranks of what it covers.
enum ZoneRank<S> {
    AtLeast(S),
    /// Not at all.
    Any,
    /// There is nothing to return.
    Nothing,
}

/// The snapshot that is read.
#[derive(Debug)]
enum SnapshotRef<'a> {
    Own(DbSnapshot),
    Borrowed(&'a DbSnapshot),
}

impl SnapshotRef<'_> {
    fn get(&self) -> &DbSnapshot {
        match self {
            Self::Own(snapshot) => snapshot,
            Self::Borrowed(snapshot) => snapshot,
        }
    }
}

/// The entries of a keyspace in the order of their rank, as [`Db::ranked`] returns them. It reads
/// one snapshot, and retains what it reads.
pub struct Ranked<'a, S, F> {
    core: &'a DbCore,
    keyspace: Keyspace,
    view: Arc<SuperVersion>,
    /// Open as long as this, so that compactions drop nothing that lookups return.
    _snapshot: SnapshotRef<'a>,
    visibility: Visibility,
    extractor: Arc<dyn Extractor>,
    /// The version of the extractor from which on tables are read by their zones.
    required: u64,
    rank: F,
    /// The value of an attribute that entries must have.
    value: Option<AttributeValue>,
    files: Vec<Arc<TableFile>>,
    /// The blocks with the value in tables with an attribute map, by the number of the file.
    mapped: HashMap<usize, Vec<u32>>,
    /// Whether tables and memtables were added to the queue.
    is_started: bool,
    queue: BinaryHeap<Reverse<RankedItem<S>>>,
    /// The keys whose operands were folded and ranked.
    folded: HashSet<Vec<u8>>,
    /// The key of the last visible entry in the current memtable or block.
    newer: Option<Vec<u8>>,
    /// The key that was returned last.
    last: Option<Vec<u8>>,
    zone: ZoneMap,
    visited: Visited,
}

impl<S, F> fmt::Debug for Ranked<'_, S, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ranked")
            .field("keyspace", &self.keyspace.name())
            .field("queue", &self.queue.len())
            .field("visited", &self.visited)
            .finish_non_exhaustive()
    }
}

impl<'a, S: Ord, F: Fn(&ZoneMap) -> Option<S>> Ranked<'a, S, F> {
    fn new(
        core: &'a Arc<DbCore>,
        keyspace: &Keyspace,
        snapshot: Option<&'a DbSnapshot>,
        rank: F,
    ) -> Result<Self> {
        let extractor = Arc::clone(extractor_of(keyspace.options())?);
        let snapshot = match snapshot {
            Some(snapshot) => SnapshotRef::Borrowed(snapshot),
            None => SnapshotRef::Own(DbSnapshot::new(core)),
        };
        // After the snapshot, so that it contains everything that the snapshot reads.
        let view = keyspace.view();
        Ok(Self {
            core,
            keyspace: keyspace.clone(),
            visibility: Visibility::new(core, Some(snapshot.get())),
            _snapshot: snapshot,
            extractor,
            required: 0,
            rank,
            value: None,
            files: view.version.files().cloned().collect(),
            mapped: HashMap::new(),
            is_started: false,
            view,
            queue: BinaryHeap::new(),
            folded: HashSet::new(),
            newer: None,
            last: None,
            zone: ZoneMap::default(),
            visited: Visited::default(),
        })
    }

    /// Restricts the results to entries that have a value of an attribute, and starts again from the
    /// first one. Values are compared as by [`Db::lookup`], and of the blocks that it would read only
    /// those are read whose ranks require it.
    #[must_use]
    pub fn with_attribute(mut self, id: u8, value: &[u8]) -> Self {
        self.value = Some(AttributeValue::new(id, value));
        self.restarted()
    }

    /// Requires a version of the extractor, and starts again from the first entry: all entries are
    /// read of tables that an older version made, as of those that another extractor made. For
    /// ranks and attributes that the extractor adds from that version on.
    #[must_use]
    pub fn requiring(mut self, version: u64) -> Self {
        self.required = version;
        self.restarted()
    }

    fn restarted(mut self) -> Self {
        self.mapped.clear();
        self.last = None;
        self.is_started = false;
        self
    }

    /// The extractor whose zones are used.
    fn required(&self) -> ExtractorVersion<'static> {
        ExtractorVersion {
            name: self.extractor.name(),
            version: self.required,
        }
    }

    /// Adds all tables and memtables to the queue.
    fn start(&mut self) -> Result<()> {
        self.queue.clear();
        self.folded.clear();
        self.visited = Visited::default();
        for number in 0..self.files.len() {
            self.add_table(number)?;
        }
        let view = Arc::clone(&self.view);
        for memtable in view.memtables() {
            self.add_memtable(memtable)?;
        }
        self.is_started = true;
        Ok(())
    }

    /// The next entry; `None` after the last. Entries with equal ranks are in key order. After an
    /// error, the next call tries again.
    #[allow(
        clippy::should_implement_trait,
        reason = "as with scans, the caller decides whether to continue after an error"
    )]
    pub fn next(&mut self) -> Result<Option<RankedEntry<S>>> {
        if !self.is_started {
            self.start()?;
        }
        while let Some(Reverse(first)) = self.queue.pop() {
            match self.read(&first.item) {
                Err(error) => {
                    // What was added before the error is added again, which changes nothing:
                    // equal entries follow each other, and only the first is returned.
                    self.queue.push(Reverse(first));
                    return Err(error);
                }
                Ok(Some(value)) => {
                    if let RankedItem {
                        rank: Some(rank),
                        item: RankedPart::Entry(key, sequence),
                    } = first
                    {
                        self.last = Some(key.clone());
                        return Ok(Some(RankedEntry {
                            key,
                            value,
                            sequence,
                            rank,
                        }));
                    }
                }
                Ok(None) => {}
            }
        }
        Ok(None)
    }

    /// The cost so far. Items that are still in the queue count neither as read nor as skipped;
    /// blocks that only point lookups read are not counted.
    pub fn visited(&self) -> Visited {
        self.visited
    }

    /// The rank of a table, a partition or a block, from its zone if it has one.
    fn bound(&self, zone: Option<&ZoneMap>) -> ZoneRank<S> {
        let Some(zone) = zone.filter(|zone| !zone.has_unknown()) else {
            return ZoneRank::Any;
        };
        let value = self.value.as_ref();
        if value.is_some_and(|value| !value.may_be_in(zone)) {
            return ZoneRank::Nothing;
        }
        (self.rank)(zone).map_or(ZoneRank::Nothing, ZoneRank::AtLeast)
    }

    /// Adds a table, a partition or a block. Returns false if there is nothing to return in it.
    fn add(&mut self, bound: ZoneRank<S>, item: RankedPart) -> bool {
        let rank = match bound {
            ZoneRank::AtLeast(rank) => Some(rank),
            ZoneRank::Any => None,
            ZoneRank::Nothing => return false,
        };
        self.queue.push(Reverse(RankedItem { rank, item }));
        true
    }

    fn add_memtable(&mut self, memtable: &Arc<Memtable>) -> Result<()> {
        self.newer = None;
        let mut cursor = MemtableCursor::new(Arc::clone(memtable));
        cursor.first();
        while cursor.is_valid() {
            self.add_entry(cursor.key(), cursor.tag(), cursor.value())?;
            cursor.next();
        }
        Ok(())
    }

    fn add_table(&mut self, number: usize) -> Result<()> {
        let Some(table) = self.table(number)? else {
            return Ok(());
        };
        let bound = self.bound(table.zone(self.required()));
        if !self.add(bound, RankedPart::Table(number)) {
            self.visited.tables_skipped += 1;
        }
        Ok(())
    }

    fn table(&self, number: usize) -> Result<Option<Arc<TableReader>>> {
        let file = self.files.get(number);
        file.map(|file| self.core.tables.table(file)).transpose()
    }

    /// Adds the partitions of a table. Only the pages of its attribute map that contain the value
    /// are read, and the index of partitions without a zone.
    fn open_table(&mut self, number: usize) -> Result<()> {
        let Some(table) = self.table(number)? else {
            return Ok(());
        };
        self.visited.tables += 1;
        let required = self.required();
        if let Some(value) = &self.value
            && let Some(blocks) = table.blocks_with(required, value)?
        {
            let all = table.properties().data_blocks;
            self.visited.blocks_skipped += all.saturating_sub(blocks.len() as u64);
            self.mapped.insert(number, blocks);
        }
        for partition in 0..table.partitions.len() {
            let blocks = self.blocks_of(&table, number, partition);
            if blocks == 0 {
                continue;
            }
            let Some(zone) = table.partition_zone(partition, required) else {
                self.open_partition(number, partition)?;
                continue;
            };
            let bound = self.bound(Some(zone));
            if !self.add(bound, RankedPart::Partition(number, partition)) {
                self.visited.blocks_skipped += blocks;
            }
        }
        Ok(())
    }

    /// The number of blocks of a partition that may be read.
    fn blocks_of(&self, table: &TableReader, number: usize, partition: usize) -> u64 {
        match self.mapped_in(number, partition) {
            Some(blocks) => blocks.len() as u64,
            None => table.partition_blocks(partition),
        }
    }

    /// The blocks of a partition that the table's attribute map names, if it has one.
    fn mapped_in(&self, number: usize, partition: usize) -> Option<&[u32]> {
        let blocks = self.mapped.get(&number)?;
        let start = partition.saturating_mul(PARTITION_BLOCKS);
        let end = start.saturating_add(PARTITION_BLOCKS);
        let before = |bound: usize| blocks.partition_point(|&block| (block as usize) < bound);
        blocks.get(before(start)..before(end))
    }

    /// Adds the blocks of a partition. Only its index is read.
    fn open_partition(&mut self, number: usize, partition: usize) -> Result<()> {
        let Some(table) = self.table(number)? else {
            return Ok(());
        };
        let mut cursor = TableCursor::new(table, false);
        if let Some(blocks) = self.mapped_in(number, partition).map(<[u32]>::to_vec) {
            for block in blocks {
                cursor.enter_index_of(block as usize)?;
                self.add_block(number, &cursor)?;
            }
            return Ok(());
        }
        cursor.seek_index_in(partition, &[], Tag::NEWEST)?;
        while self.add_block(number, &cursor)? {
            cursor.next_index_in_partition()?;
        }
        Ok(())
    }

    /// Adds the block at the cursor's index. Returns false if there is none.
    fn add_block(&mut self, number: usize, cursor: &TableCursor) -> Result<bool> {
        let Some(Handle { offset, length }) = cursor.block_handle()? else {
            return Ok(false);
        };
        let bound = self.bound(cursor.block_zone(self.required()).as_ref());
        if !self.add(bound, RankedPart::Block(number, offset, length)) {
            self.visited.blocks_skipped += 1;
        }
        Ok(true)
    }

    /// Adds the entries of a block.
    fn open_block(&mut self, number: usize, handle: Handle) -> Result<()> {
        let Some(table) = self.table(number)? else {
            return Ok(());
        };
        self.newer = None;
        let mut cursor = TableCursor::new(table, false);
        cursor.enter_block_at(handle)?;
        self.visited.blocks += 1;
        while cursor.is_valid() {
            self.add_entry(cursor.key(), cursor.tag(), cursor.value())?;
            cursor.next_in_block()?;
        }
        Ok(())
    }

    /// Adds an entry, unless an entry before it in the same memtable or block hides it.
    fn add_entry(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        self.visited.entries += 1;
        if tag.sequence() > self.visibility.sequence || self.newer.as_deref() == Some(key) {
            return Ok(());
        }
        let newer = self.newer.get_or_insert_default();
        newer.clear();
        newer.extend_from_slice(key);
        if tag.kind() == Some(EntryKind::Merge) {
            return self.add_folded(key);
        }
        if extract_entry(self.extractor.as_ref(), (key, tag, value), &mut self.zone) {
            self.add_extracted(key, tag.sequence());
        }
        Ok(())
    }

    /// Adds the value of a key with operands, once.
    fn add_folded(&mut self, key: &[u8]) -> Result<()> {
        if self.folded.contains(key) {
            return Ok(());
        }
        if let Some((sequence, value)) = self.newest(key)? {
            self.zone.clear();
            self.extractor.extract(key, &value, &mut self.zone);
            self.add_extracted(key, sequence);
        }
        self.folded.insert(key.to_vec());
        Ok(())
    }

    /// Adds an entry whose zone was extracted, unless it lacks the value.
    fn add_extracted(&mut self, key: &[u8], sequence: Sequence) {
        let value = self.value.as_ref();
        if value.is_some_and(|value| !value.is_of(&self.zone)) {
            return;
        }
        if let Some(rank) = (self.rank)(&self.zone) {
            let item = RankedPart::Entry(key.to_vec(), sequence);
            self.add(ZoneRank::AtLeast(rank), item);
        }
    }

    fn newest(&self, key: &[u8]) -> Result<Option<(Sequence, ValueBytes)>> {
        let options = self.keyspace.options();
        self.core
            .get_with_sequence(&self.view, options, key, self.visibility)
    }

    /// Replaces a table, a partition or a block in the queue by its parts, or returns the value of an entry:
    /// `None` if the entry is hidden or was returned before.
    fn read(&mut self, item: &RankedPart) -> Result<Option<ValueBytes>> {
        match item {
            RankedPart::Table(number) => self.open_table(*number)?,
            RankedPart::Partition(number, partition) => self.open_partition(*number, *partition)?,
            RankedPart::Block(number, offset, length) => {
                let (offset, length) = (*offset, *length);
                self.open_block(*number, Handle { offset, length })?;
            }
            RankedPart::Entry(key, _) if self.last.as_ref() == Some(key) => {}
            RankedPart::Entry(key, sequence) => {
                let newest = self.newest(key)?;
                let own = newest.filter(|(newest, _)| newest == sequence);
                return Ok(own.map(|(_, value)| value));
            }
        }
        Ok(None)
    }
}

impl Db {
    /// The entries of a keyspace in ascending order of their rank, without those whose rank is
    /// `None`. They are read one by one, and only blocks whose zone has a rank that is not greater:
    /// for the newest entries, the nearest neighbours and the like.
    /// [`Ranked::with_attribute`] limits them to those with a value of an attribute.
    ///
    /// `rank` returns the rank of an entry from its exact zone, and from the zone of a block, a
    /// partition or a table a lower bound of the ranks of all entries in it, or `None` if all of them have none. It
    /// is not called with zones that cover unknown attributes: such blocks and tables are always
    /// read. It must return the same for the same zone. Fails if the keyspace has no extractor.
    pub fn ranked<'a, S, F>(
        &'a self,
        keyspace: &Keyspace,
        snapshot: Option<&'a DbSnapshot>,
        rank: F,
    ) -> Result<Ranked<'a, S, F>>
    where
        S: Ord,
        F: Fn(&ZoneMap) -> Option<S>,
    {
        Ranked::new(&self.core, keyspace, snapshot, rank)
    }
}
