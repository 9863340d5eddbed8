//! Scans by attributes of entries: blocks whose zone cannot match are skipped unread.
//!
//! Each memtable and table is searched separately for entries that may match; their keys are then
//! looked up as by any read. So an entry that was overwritten, deleted or has expired since is not
//! returned, wherever its successor is.
//!
//! A lookup is a search for one value of an attribute. Of memtables it visits the entries that their
//! list of attributes names, and of tables whose attribute map is complete it
//! reads only the blocks that the map names: the newest visible entry of a key that it returns is a
//! put with the value, whose block is in the map, or an operand, and tables with operands have no
//! map.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::point_lookup::Visibility;
use super::{Db, DbCore, DbSnapshot, Keyspace};
use crate::error::{Error, Result};
use crate::extract::{AttributeBounds, Extractor, ExtractorVersion, ZoneMap, extract_entry};
use crate::key::{Sequence, Tag};
use crate::memtable::{AttributeEntry, Memtable, MemtableCursor};
use crate::options::KeyspaceOptions;
use crate::table::cursor::TableCursor;
use crate::table::reader::TableReader;
use crate::value::ValueBytes;
use crate::version::file::TableFile;

/// The cost of a search, to verify that it skips what it can.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visited {
    /// Tables that were opened.
    pub tables: u64,
    /// Tables that were skipped by their properties.
    pub tables_skipped: u64,
    /// Data blocks that were read.
    pub blocks: u64,
    /// Data blocks that were skipped by their zones, those of their partitions, or attribute maps.
    pub blocks_skipped: u64,
    /// Entries that were examined.
    pub entries: u64,
}

/// The result of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchResult {
    /// Matching keys and values, in key order.
    pub hits: Vec<(Vec<u8>, ValueBytes)>,
    /// Its cost.
    pub visited: Visited,
}

/// The keyspace's extractor.
pub(super) fn extractor_of(options: &KeyspaceOptions) -> Result<&Arc<dyn Extractor>> {
    let extractor = options.extractor.as_ref();
    extractor.ok_or_else(|| Error::InvalidArgument {
        what: "this keyspace has no extractor".into(),
    })
}

/// What a search returns.
#[derive(Clone, Copy)]
pub(crate) struct SearchCriteria<'a> {
    lower: Bound<&'a [u8]>,
    upper: Bound<&'a [u8]>,
    may_match: &'a dyn Fn(&ZoneMap) -> bool,
    /// The value that is looked up, which `may_match` compares with ranges.
    bounds: Option<&'a Arc<AttributeBounds>>,
    /// The version of the extractor from which on tables are read by their zones.
    version: u64,
}

/// A search in progress.
struct Search<'a> {
    extractor: &'a dyn Extractor,
    /// The extractor whose zones are used.
    required: ExtractorVersion<'a>,
    criteria: SearchCriteria<'a>,
    sequence: Sequence,
    candidates: BTreeSet<Vec<u8>>,
    visited: Visited,
    zone: ZoneMap,
}

impl Search<'_> {
    fn is_above(&self, key: &[u8]) -> bool {
        match self.criteria.upper {
            Bound::Unbounded => false,
            Bound::Included(bound) => key > bound,
            Bound::Excluded(bound) => key >= bound,
        }
    }

    /// Where the search starts.
    fn start(&self) -> (&[u8], Tag) {
        match self.criteria.lower {
            Bound::Unbounded => (&[], Tag::NEWEST),
            Bound::Included(key) => (key, Tag::NEWEST),
            Bound::Excluded(key) => (key, Tag::OLDEST),
        }
    }

    /// Examines one entry.
    fn take(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        self.visited.entries += 1;
        if tag.sequence() > self.sequence || self.candidates.contains(key) {
            return;
        }
        if extract_entry(self.extractor, (key, tag, value), &mut self.zone)
            && self.matches(&self.zone)
        {
            self.candidates.insert(key.to_vec());
        }
    }

    fn in_memtable(&mut self, memtable: &Arc<Memtable>) {
        let attributes = memtable.attributes(self.criteria.version);
        if let (Some(bounds), Some(list)) = (self.criteria.bounds, attributes) {
            for mut cursor in [list.unknown(), list.within(bounds)] {
                while let Some(entry) = list.next(&mut cursor) {
                    self.take_listed(entry);
                }
            }
            return;
        }
        let mut cursor = MemtableCursor::new(Arc::clone(memtable));
        let (key, tag) = self.start();
        cursor.seek(key, tag);
        while cursor.is_valid() && !self.is_above(cursor.key()) {
            self.take(cursor.key(), cursor.tag(), cursor.value());
            cursor.next();
        }
    }

    /// Adds an entry with one of the values that are looked up.
    fn take_listed(&mut self, entry: AttributeEntry<'_>) {
        self.visited.entries += 1;
        let is_below = match self.criteria.lower {
            Bound::Unbounded => false,
            Bound::Included(bound) => entry.key < bound,
            Bound::Excluded(bound) => entry.key <= bound,
        };
        let is_visible = entry.tag.sequence() <= self.sequence;
        if is_visible
            && !is_below
            && !self.is_above(entry.key)
            && !self.candidates.contains(entry.key)
        {
            self.candidates.insert(entry.key.to_vec());
        }
    }

    /// Whether the zone of an entry matches.
    fn matches(&self, zone: &ZoneMap) -> bool {
        (self.criteria.may_match)(zone)
            && (self.criteria.bounds.is_none() || zone.is_within_bounds())
    }

    /// Whether the zone of a table, partition or block, if it has one, excludes a match.
    fn rules_out(&self, zone: Option<&ZoneMap>) -> bool {
        zone.is_some_and(|zone| !(self.criteria.may_match)(zone))
    }

    fn in_table(&mut self, table: &Arc<TableReader>) -> Result<()> {
        if self.rules_out(table.zone(self.required)) {
            self.visited.tables_skipped += 1;
            return Ok(());
        }
        self.visited.tables += 1;
        if let Some(bounds) = self.criteria.bounds
            && let Some(blocks) = table.blocks_with(self.required, bounds)?
        {
            return self.in_blocks(table, &blocks);
        }
        let mut cursor = TableCursor::new(Arc::clone(table), false);
        let (key, tag) = self.start();
        let (key, tag) = (key.to_vec(), tag);
        for number in table.partition_of(&key, tag)..table.partitions.len() {
            if self.rules_out(table.partition_zone(number, self.required)) {
                self.visited.blocks_skipped += table.partition_blocks(number);
                continue;
            }
            cursor.seek_index_in(number, &key, tag)?;
            while cursor.zone_bytes().is_some() {
                if !self.in_block(&mut cursor, (&key, tag))? {
                    return Ok(());
                }
                cursor.next_index_in_partition()?;
            }
        }
        Ok(())
    }

    /// Examines some blocks of a table, by their numbers.
    fn in_blocks(&mut self, table: &Arc<TableReader>, blocks: &[u32]) -> Result<()> {
        let all = table.properties().data_blocks;
        self.visited.blocks_skipped += all.saturating_sub(blocks.len() as u64);
        let mut cursor = TableCursor::new(Arc::clone(table), false);
        for &number in blocks {
            cursor.enter_index_of(number as usize)?;
            if !self.in_block(&mut cursor, (&[], Tag::NEWEST))? {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Examines the block at the cursor's index, unless its zone rules out a match. Returns false
    /// after the upper bound.
    fn in_block(&mut self, cursor: &mut TableCursor, start: (&[u8], Tag)) -> Result<bool> {
        let zone = cursor.block_zone(self.required);
        if self.rules_out(zone.as_ref()) {
            self.visited.blocks_skipped += 1;
            return Ok(true);
        }
        self.visited.blocks += 1;
        cursor.enter_block(start.0, start.1)?;
        while cursor.is_valid() {
            if self.is_above(cursor.key()) {
                return Ok(false);
            }
            self.take(cursor.key(), cursor.tag(), cursor.value());
            cursor.next_in_block()?;
        }
        Ok(true)
    }
}

impl DbCore {
    /// Finds the entries that match.
    pub(crate) fn search(
        &self,
        keyspace: &Keyspace,
        snapshot: Option<&DbSnapshot>,
        criteria: SearchCriteria<'_>,
    ) -> Result<SearchResult> {
        let options = keyspace.options();
        let extractor = extractor_of(options)?.as_ref();
        let view = keyspace.view();
        let visibility = Visibility::new(self, snapshot);
        let mut search = Search {
            extractor,
            required: ExtractorVersion {
                name: extractor.name(),
                version: criteria.version,
            },
            criteria,
            sequence: visibility.sequence,
            candidates: BTreeSet::new(),
            visited: Visited::default(),
            zone: criteria
                .bounds
                .map_or_else(ZoneMap::default, AttributeBounds::zone),
        };
        for memtable in view.memtables() {
            search.in_memtable(memtable);
        }
        let within = |file: &&Arc<TableFile>| {
            !search_ends_before(criteria.upper, &file.meta.smallest)
                && !starts_behind(criteria.lower, file)
        };
        for file in view.version.files().filter(within) {
            search.in_table(&self.tables.table(file)?)?;
        }
        let mut result = SearchResult {
            hits: Vec::new(),
            visited: search.visited,
        };
        let mut zone = std::mem::take(&mut search.zone);
        for key in std::mem::take(&mut search.candidates) {
            let Some(value) = self.get_in(&view, options, &key, visibility)? else {
                continue;
            };
            zone.clear();
            extractor.extract(&key, &value, &mut zone);
            if search.matches(&zone) {
                result.hits.push((key, value));
            }
        }
        Ok(result)
    }
}

fn search_ends_before(upper: Bound<&[u8]>, smallest: &[u8]) -> bool {
    match upper {
        Bound::Unbounded => false,
        Bound::Included(bound) => smallest > bound,
        Bound::Excluded(bound) => smallest >= bound,
    }
}

fn starts_behind(lower: Bound<&[u8]>, file: &TableFile) -> bool {
    match lower {
        Bound::Unbounded => false,
        Bound::Included(bound) | Bound::Excluded(bound) => file.meta.largest.is_before(bound),
    }
}

impl Db {
    /// Finds the entries within bounds whose zone `may_match`, without reading blocks that contain
    /// none. An entry's own zone is exact, a block's covers all its entries.
    pub fn search(
        &self,
        keyspace: &Keyspace,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        snapshot: Option<&DbSnapshot>,
        may_match: &dyn Fn(&ZoneMap) -> bool,
    ) -> Result<SearchResult> {
        let criteria = SearchCriteria {
            lower,
            upper,
            may_match,
            bounds: None,
            version: 0,
        };
        self.core.search(keyspace, snapshot, criteria)
    }

    /// The entries that have a value of an attribute, in key order. In tables in version 4 only the
    /// blocks that contain it are read if the keyspace's extractor adds it with
    /// [`ZoneMap::add_indexed`]; in others, those whose zone may contain it.
    ///
    /// Of memtables, only entries with the value are visited, or with one that has the same first
    /// 32 bytes, unless the keyspace accumulates. Entries with unknown attributes are returned.
    /// Fails if the keyspace has no extractor.
    pub fn lookup(
        &self,
        keyspace: &Keyspace,
        id: u8,
        value: &[u8],
        snapshot: Option<&DbSnapshot>,
    ) -> Result<SearchResult> {
        self.lookup_requiring(keyspace, id, value, snapshot, 0)
    }

    /// The entries that have a value of an attribute, as [`Self::lookup`] returns them, if the
    /// extractor adds the attribute from a version on: all entries are read of tables that an older
    /// version made.
    pub fn lookup_requiring(
        &self,
        keyspace: &Keyspace,
        id: u8,
        value: &[u8],
        snapshot: Option<&DbSnapshot>,
        version: u64,
    ) -> Result<SearchResult> {
        let bounds = AttributeBounds::new(id, value, value);
        let criteria = SearchCriteria {
            lower: Bound::Unbounded,
            upper: Bound::Unbounded,
            may_match: &|zone| bounds.may_be_in(zone),
            bounds: Some(&bounds),
            version,
        };
        let own = self.hold(keyspace, snapshot);
        let snapshot = snapshot.or(own.as_ref());
        self.core.search(keyspace, snapshot, criteria)
    }
}
