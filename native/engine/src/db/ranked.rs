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
//! - Among equal ranks, tables precede partitions, then blocks, values, entries. When an entry is
//!   returned, all entries with its rank are in the queue, so that they are in key order.
//! - An entry is in the queue without its value. When it is taken, a point lookup decides whether it
//!   is the entry of its key that the snapshot reads.
//! - The entries of memtables are all added at the start. With a range of an attribute, only those
//!   are added that the memtable's list of attributes names, and with one value not even all of
//!   them: the list has them in descending order of time, so that the time of the next one bounds
//!   the times, and thereby the rank, of the rest. The queue contains the rest with this rank. When
//!   it is taken, the next entry is added.
//! - With a value of an attribute, only partitions and blocks are added that the table's attribute
//!   map names, or without a map those whose zone may contain the value.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::keyspace::SuperVersion;
use super::point_lookup::Visibility;
use super::search::{Visited, extractor_of};
use super::{Db, DbCore, DbSnapshot, Keyspace};
use crate::error::Result;
use crate::extract::{AttributeBounds, Extractor, ExtractorVersion, ZoneMap, extract_entry};
use crate::key::{EntryKind, Millis, Sequence, Tag};
use crate::memtable::{AttributeCursor, AttributeEntry, AttributeList, Memtable, MemtableCursor};
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
    /// The entries of a memtable with the value that are not in the queue, by their number in
    /// `Ranked::listed`.
    Values(usize),
    Entry(Vec<u8>, Sequence),
}

/// An item with its rank, which is `None` if its zone has no bound.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RankedItem<S> {
    rank: Option<S>,
    item: RankedPart,
}

/// The entries of a memtable with one value, in descending order of time.
#[derive(Debug)]
struct ListedValues {
    memtable: Arc<Memtable>,
    cursor: AttributeCursor,
    /// Covers all entries of the memtable that have attributes.
    zone: ZoneMap,
}

impl ListedValues {
    /// An upper bound of the times of the rest; `None` at the end.
    fn last_time(&self) -> Option<Millis> {
        let list = self.memtable.attributes_so_far()?;
        list.peek(&self.cursor).map(|entry| entry.time)
    }
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
    /// The keys that are read, from the first one up to the second one.
    keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries must have a value of an attribute within these.
    bounds: Option<Arc<AttributeBounds>>,
    files: Vec<Arc<TableFile>>,
    /// What is not in the queue yet of the entries of memtables with the value.
    listed: Vec<ListedValues>,
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
            keys: None,
            rank,
            bounds: None,
            files: view.version.files().cloned().collect(),
            listed: Vec::new(),
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
    pub fn with_attribute(self, id: u8, value: &[u8]) -> Self {
        self.within(AttributeBounds::new(id, value, value))
    }

    /// Restricts the results to entries that have a value of an attribute from `low` to `high`,
    /// inclusive, and starts again from the first one. Only blocks whose zone may contain such a
    /// value are read, and only entries of memtables with one.
    #[must_use]
    pub fn with_attribute_range(self, id: u8, low: &[u8], high: &[u8]) -> Self {
        self.within(AttributeBounds::new(id, low, high))
    }

    fn within(mut self, bounds: Arc<AttributeBounds>) -> Self {
        self.zone = bounds.zone();
        self.bounds = Some(bounds);
        self.restarted()
    }

    /// Restricts the results to keys from `start` up to `end`, and starts again from the first one.
    /// Other memtable entries and tables are not read.
    #[must_use]
    pub fn between(mut self, start: &[u8], end: &[u8]) -> Self {
        self.keys = Some((start.to_vec(), end.to_vec()));
        self.restarted()
    }

    /// Requires a version of the extractor, for ranks and attributes that the extractor adds from
    /// that version on, and starts again from the first entry. All entries are read of tables that an
    /// older version made, as of those that another extractor made, and of memtables that were
    /// created before the extractor had the version.
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
        self.listed.clear();
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
        let bounds = self.bounds.as_ref();
        if bounds.is_some_and(|bounds| !bounds.may_be_in(zone)) {
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
        let attributes = memtable.attributes(self.required);
        if let (Some(bounds), Some(list)) = (self.bounds.clone(), attributes) {
            return self.add_list(memtable, list, &bounds);
        }
        self.newer = None;
        let mut cursor = MemtableCursor::new(Arc::clone(memtable));
        match &self.keys {
            Some((start, _)) => cursor.seek(start, Tag::NEWEST),
            None => cursor.first(),
        }
        while cursor.is_valid() && !self.is_behind(cursor.key()) {
            self.add_entry(cursor.key(), cursor.tag(), cursor.value())?;
            cursor.next();
        }
        Ok(())
    }

    /// Adds the entries of a memtable that its list of attributes names.
    fn add_list(
        &mut self,
        memtable: &Arc<Memtable>,
        list: &AttributeList,
        bounds: &AttributeBounds,
    ) -> Result<()> {
        let mut unknown = list.unknown();
        while let Some(entry) = list.next(&mut unknown) {
            self.add_listed(memtable, entry)?;
        }
        let mut cursor = list.within(bounds);
        if bounds.is_value() {
            self.listed.push(ListedValues {
                memtable: Arc::clone(memtable),
                cursor,
                zone: list.outline(),
            });
            self.add_values(self.listed.len() - 1);
            return Ok(());
        }
        // An entry has a place in the list for each of its values, and all values are extracted for
        // any of them.
        let mut added = HashSet::new();
        while let Some(entry) = list.next(&mut cursor) {
            if added.insert((entry.key, entry.tag)) {
                self.add_listed(memtable, entry)?;
            }
        }
        Ok(())
    }

    /// Adds the entries of a memtable with the value that are not in the queue yet.
    fn add_values(&mut self, number: usize) {
        let Some(values) = self.listed.get_mut(number) else {
            return;
        };
        let Some(last) = values.last_time() else {
            return;
        };
        values.zone.limit_times(last);
        if let Some(rank) = (self.rank)(&values.zone) {
            self.add(ZoneRank::AtLeast(rank), RankedPart::Values(number));
        }
    }

    /// Adds the latest of these entries, and then the others.
    fn open_values(&mut self, number: usize) -> Result<()> {
        let Some(values) = self.listed.get_mut(number) else {
            return Ok(());
        };
        let memtable = Arc::clone(&values.memtable);
        let list = memtable.attributes_so_far();
        if let Some(entry) = list.and_then(|list| list.next(&mut values.cursor)) {
            self.add_listed(&memtable, entry)?;
        }
        self.add_values(number);
        Ok(())
    }

    /// Adds an entry of a memtable that its list of attributes names, unless a newer one there
    /// hides it.
    fn add_listed(&mut self, memtable: &Memtable, entry: AttributeEntry<'_>) -> Result<()> {
        self.visited.entries += 1;
        let (key, tag, sequence) = (entry.key, entry.tag, self.visibility.sequence);
        if tag.sequence() > sequence || !self.is_within(key) {
            return Ok(());
        }
        if tag.kind() == Some(EntryKind::Merge) {
            return self.add_folded(key);
        }
        let newest = memtable.newest(key, sequence);
        if let Some((_, value)) = newest.filter(|(newest, _)| *newest == tag)
            && extract_entry(self.extractor.as_ref(), (key, tag, value), &mut self.zone)
        {
            self.add_extracted(key, tag.sequence());
        }
        Ok(())
    }

    fn add_table(&mut self, number: usize) -> Result<()> {
        if !self.overlaps(number) {
            self.visited.tables_skipped += 1;
            return Ok(());
        }
        let Some(table) = self.table(number)? else {
            return Ok(());
        };
        let bound = self.bound(table.zone(self.required()));
        if !self.add(bound, RankedPart::Table(number)) {
            self.visited.tables_skipped += 1;
        }
        Ok(())
    }

    /// Whether a file may contain keys within the bounds.
    fn overlaps(&self, number: usize) -> bool {
        let file = self.files.get(number);
        file.is_some_and(|file| {
            self.keys.as_ref().is_none_or(|(start, _)| {
                !file.meta.largest.is_before(start) && !self.is_behind(&file.meta.smallest)
            })
        })
    }

    fn is_within(&self, key: &[u8]) -> bool {
        let is_before = |(start, _): &(Vec<u8>, Vec<u8>)| key < start.as_slice();
        !self.keys.as_ref().is_some_and(is_before) && !self.is_behind(key)
    }

    /// Whether a key is at or after the end of the bounds.
    fn is_behind(&self, key: &[u8]) -> bool {
        let keys = self.keys.as_ref();
        keys.is_some_and(|(_, end)| key >= end.as_slice())
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
        if let Some(bounds) = &self.bounds
            && let Some(blocks) = table.blocks_with(required, bounds)?
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
        let is_visible = tag.sequence() <= self.visibility.sequence;
        if !is_visible || !self.is_within(key) || self.newer.as_deref() == Some(key) {
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
        if self.bounds.is_some() && !self.zone.is_within_bounds() {
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

    /// Replaces an item of the queue by its parts, or returns the value of an entry: `None` if the
    /// entry is hidden or was returned before.
    fn read(&mut self, item: &RankedPart) -> Result<Option<ValueBytes>> {
        match item {
            RankedPart::Table(number) => self.open_table(*number)?,
            RankedPart::Partition(number, partition) => self.open_partition(*number, *partition)?,
            RankedPart::Block(number, offset, length) => {
                let (offset, length) = (*offset, *length);
                self.open_block(*number, Handle { offset, length })?;
            }
            RankedPart::Values(number) => self.open_values(*number)?,
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
    /// partition, a table or a part of a memtable a lower bound of the ranks of all entries in it, or
    /// `None` if all of them have none. It is not called with zones that cover unknown attributes:
    /// such blocks and tables are always read. It must return the same for the same zone. Fails if
    /// the keyspace has no extractor.
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
