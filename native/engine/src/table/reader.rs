//! Reads a table: point lookups, and blocks for cursors.

use std::cmp::Ordering;
use std::ops::Deref;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use rillbase_binary_format::ByteReader;

use super::builder::PARTITION_BLOCKS;
use super::fetch::{ReadAhead, damaged, read_frame};
use super::footer::{FOOTER_BYTES, Footer, PARTITION_ZONES_VERSION, SHAPES_VERSION};
use super::frame::{self, Handle};
use super::properties::TableProperties;
use crate::block::cursor::BlockCursor;
use crate::block::{Block, BlockEntry, MalformedBlock};
use crate::cache::{BlockCache, BlockId};
use crate::coding::to_usize;
use crate::error::{Error, Result};
use crate::extract::{ExtractorVersion, ZoneMap};
use crate::head::RecordedHead;
use crate::key::{EntryKind, Sequence, Tag, compare, position_by_number, prefix_number};
use crate::range_delete::{RangeDelete, RangeDeletes};
use crate::vfs::RandomRead;

/// A sequence of data blocks with one index block and one filter.
#[derive(Debug)]
pub(crate) struct Partition {
    /// At or after all entries of the partition, and before those of the next.
    pub(super) key: Box<[u8]>,
    tag: Tag,
    pub(crate) index: Handle,
    pub(super) filter: Handle,
    /// In version 4, if the table was written with an extractor.
    zone: Option<Box<ZoneMap>>,
    pinned_index: OnceLock<Arc<Block>>,
    pub(super) pinned_filter: OnceLock<Arc<Block>>,
}

/// A block that a table keeps, or would keep. Reading a kept block writes nothing, not even a
/// reference count, for which readers on other cores would contend.
pub(super) enum BlockRef<'a> {
    Pinned(&'a Arc<Block>),
    Own(Arc<Block>),
}

impl Deref for BlockRef<'_> {
    type Target = Block;

    fn deref(&self) -> &Block {
        match self {
            Self::Pinned(block) => block,
            Self::Own(block) => block,
        }
    }
}

/// An open table.
#[derive(Debug)]
pub(crate) struct TableReader {
    file: Box<dyn RandomRead>,
    /// The table's number in the cache.
    number: u64,
    cache: Arc<BlockCache>,
    pub(crate) partitions: Vec<Partition>,
    /// The numbers of the partitions' keys.
    numbers: Vec<u64>,
    pub(super) properties: TableProperties,
    /// What the filters contain.
    pub(super) head: RecordedHead,
    range_deletes: Option<Arc<RangeDeletes>>,
    plain_range_deletes: Vec<RangeDelete>,
    /// Whether entries may have the shape of the previous one.
    has_shapes: bool,
    data_end: u64,
}

impl TableReader {
    pub(crate) fn open(
        file: Box<dyn RandomRead>,
        number: u64,
        cache: &Arc<BlockCache>,
    ) -> Result<Arc<Self>> {
        let size = file.len()?;
        let start = size.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| {
            Error::corruption(file.path(), 0, "the file is shorter than a table's footer")
        })?;
        let mut bytes = vec![0; FOOTER_BYTES];
        file.read_exact_at(start, &mut bytes)?;
        let footer = Footer::decode(&bytes)
            .map_err(|detail| Error::corruption(file.path(), start, detail))?;
        let bytes = read_frame(file.as_ref(), footer.properties)?;
        let mut properties = TableProperties::decode(&bytes)
            .map_err(|_| damaged(file.as_ref(), footer.properties, "properties"))?;
        let has_zones = footer.version >= PARTITION_ZONES_VERSION && properties.zone.is_some();
        let mut partitions = read_top(file.as_ref(), footer.top, has_zones)?;
        set_filters(&mut partitions, &std::mem::take(&mut properties.filters))
            .ok_or_else(|| damaged(file.as_ref(), footer.properties, "properties"))?;
        let plain_range_deletes = read_range_deletes(file.as_ref(), footer.range_deletes)?;
        let range_deletes = (!plain_range_deletes.is_empty())
            .then(|| Arc::new(RangeDeletes::new(&plain_range_deletes)));
        let numbers = partitions
            .iter()
            .map(|partition| prefix_number(&partition.key));
        Ok(Arc::new(Self {
            numbers: numbers.collect(),
            file,
            number,
            cache: Arc::clone(cache),
            partitions,
            head: RecordedHead::new(
                to_usize(properties.tail_bytes),
                properties.head_function.as_deref(),
            ),
            properties,
            range_deletes,
            plain_range_deletes,
            has_shapes: footer.version >= SHAPES_VERSION,
            data_end: start,
        }))
    }

    /// The zone of its entries, if this extractor made it in this version or a later one.
    pub(crate) fn zone(&self, extractor: ExtractorVersion<'_>) -> Option<&ZoneMap> {
        let is_made_by = self.is_made_by(extractor);
        self.properties.zone.as_ref().filter(|_| is_made_by)
    }

    /// Whether its attributes are those of this extractor in this version or a later one.
    pub(crate) fn is_made_by(&self, extractor: ExtractorVersion<'_>) -> bool {
        let properties = &self.properties;
        properties.extractor == extractor.name && properties.extractor_version >= extractor.version
    }

    /// The zone of a partition's entries, if it has one that this extractor made.
    pub(crate) fn partition_zone(
        &self,
        number: usize,
        extractor: ExtractorVersion<'_>,
    ) -> Option<&ZoneMap> {
        self.zone(extractor)?;
        self.partitions.get(number)?.zone.as_deref()
    }

    /// The number of data blocks of a partition.
    pub(crate) fn partition_blocks(&self, number: usize) -> u64 {
        let before = number.saturating_mul(PARTITION_BLOCKS) as u64;
        let rest = self.properties.data_blocks.saturating_sub(before);
        rest.min(PARTITION_BLOCKS as u64)
    }

    pub(crate) fn properties(&self) -> &TableProperties {
        &self.properties
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    pub(crate) fn range_deletes(&self) -> Option<&Arc<RangeDeletes>> {
        self.range_deletes.as_ref()
    }

    pub(crate) fn plain_range_deletes(&self) -> &[RangeDelete] {
        &self.plain_range_deletes
    }

    pub(crate) fn base_sequence(&self) -> Sequence {
        self.properties.base_sequence
    }

    /// The memory of the open table.
    pub(crate) fn memory(&self) -> usize {
        let keys: usize = self
            .partitions
            .iter()
            .map(|partition| {
                let zone = partition.zone.as_ref().map_or(0, |zone| zone.memory());
                partition.key.len() + zone + 80
            })
            .sum();
        let ranges: usize = self
            .range_deletes
            .iter()
            .map(|ranges| 2 * ranges.bytes())
            .sum();
        keys + ranges + 512
    }

    /// The number of the first partition with an entry at or after `(key, tag)`.
    #[inline]
    pub(crate) fn partition_of(&self, key: &[u8], tag: Tag) -> usize {
        position_by_number(&self.numbers, key, |at| {
            let partition = self.partitions.get(at);
            partition.is_some_and(|partition| {
                compare((&partition.key, partition.tag), (key, tag)) == Ordering::Less
            })
        })
    }

    /// The ends of partitions, in order.
    pub(crate) fn partition_keys(&self) -> impl Iterator<Item = &[u8]> {
        self.partitions
            .iter()
            .map(|partition| partition.key.as_ref())
    }

    pub(crate) fn malformed(&self, handle: Handle) -> Error {
        damaged(self.file.as_ref(), handle, "block")
    }

    /// A block through the cache.
    pub(crate) fn block(&self, handle: Handle, what: BlockType) -> Result<Arc<Block>> {
        let name = BlockId {
            table: self.number,
            offset: handle.offset,
        };
        if let Some(block) = self.cache.get(name) {
            return Ok(block);
        }
        let block = Arc::new(self.read_block(handle, what)?);
        self.cache.insert(name, &block, what != BlockType::Data);
        Ok(block)
    }

    /// A block that the table keeps, if the budget allows.
    #[inline]
    pub(super) fn block_ref<'a>(
        &self,
        handle: Handle,
        what: BlockType,
        pin: &'a OnceLock<Arc<Block>>,
    ) -> Result<BlockRef<'a>> {
        if let Some(block) = pin.get() {
            return Ok(BlockRef::Pinned(block));
        }
        self.keep(handle, what, pin).map(BlockRef::Own)
    }

    fn keep(
        &self,
        handle: Handle,
        what: BlockType,
        pin: &OnceLock<Arc<Block>>,
    ) -> Result<Arc<Block>> {
        let bytes = to_usize(handle.length);
        if !self.cache.pins.take(bytes) {
            return self.block(handle, what);
        }
        let read = self.read_block(handle, what).map(Arc::new);
        let block = match read {
            Ok(block) => block,
            Err(error) => {
                self.cache.pins.release(bytes);
                return Err(error);
            }
        };
        if pin.set(Arc::clone(&block)).is_err() {
            // Another reader was faster.
            self.cache.pins.release(bytes);
        }
        Ok(block)
    }

    #[inline]
    pub(super) fn kept_index<'a>(&self, partition: &'a Partition) -> Result<BlockRef<'a>> {
        self.block_ref(partition.index, BlockType::Index, &partition.pinned_index)
    }

    /// The index block of a partition.
    pub(crate) fn index_of(&self, partition: &Partition) -> Result<Arc<Block>> {
        Ok(match self.kept_index(partition)? {
            BlockRef::Pinned(block) => Arc::clone(block),
            BlockRef::Own(block) => block,
        })
    }

    pub(super) fn read_block(&self, handle: Handle, what: BlockType) -> Result<Block> {
        self.to_block(read_frame(self.file.as_ref(), handle)?, handle, what)
    }

    fn to_block(&self, bytes: Vec<u8>, handle: Handle, what: BlockType) -> Result<Block> {
        if matches!(what, BlockType::Filter | BlockType::Map) {
            return Ok(Block::raw(bytes));
        }
        Block::parse(bytes, self.has_shapes).map_err(|MalformedBlock| self.malformed(handle))
    }

    /// A block bypassing the cache; data blocks are read ahead.
    pub(crate) fn block_ahead(
        &self,
        handle: Handle,
        what: BlockType,
        ahead: &mut ReadAhead,
    ) -> Result<Arc<Block>> {
        if what != BlockType::Data {
            return self.read_block(handle, what).map(Arc::new);
        }
        let frame = ahead.frame(self.file.as_ref(), handle, self.data_end)?;
        let bytes = frame::read(frame, handle.offset)
            .map_err(|detail| Error::corruption(self.path(), handle.offset, detail))?;
        self.to_block(bytes, handle, what).map(Arc::new)
    }
}

impl Drop for TableReader {
    fn drop(&mut self) {
        for partition in &self.partitions {
            for (handle, pin) in [
                (partition.index, &partition.pinned_index),
                (partition.filter, &partition.pinned_filter),
            ] {
                if pin.get().is_some() {
                    self.cache.pins.release(to_usize(handle.length));
                }
            }
        }
    }
}

/// The parts of a table that are cached blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockType {
    Data,
    Index,
    Filter,
    /// A page of an attribute map, or its directory.
    Map,
}

pub(crate) fn handle_of(block: &Block, entry: &BlockEntry) -> Option<Handle> {
    let value = block
        .bytes()
        .get(entry.value_at..entry.value_at + entry.value_length)?;
    Handle::decode(&mut ByteReader::new(value)).ok()
}

/// The entries of a block that is read whole.
fn entries(
    file: &dyn RandomRead,
    handle: Handle,
    mut each: impl FnMut(&[u8], Tag, &[u8]) -> Option<()>,
) -> Result<()> {
    let block = Block::parse(read_frame(file, handle)?, false);
    let walk = |block: Block| {
        let mut cursor = BlockCursor::new(0);
        cursor.enter(Arc::new(block));
        cursor.first()?;
        while cursor.is_valid() {
            each(cursor.key(), cursor.tag(), cursor.value()).ok_or(MalformedBlock)?;
            cursor.next()?;
        }
        Ok(())
    };
    block
        .and_then(walk)
        .map_err(|MalformedBlock| damaged(file, handle, "block"))
}

fn read_top(file: &dyn RandomRead, handle: Handle, has_zones: bool) -> Result<Vec<Partition>> {
    let mut partitions = Vec::new();
    entries(file, handle, |key, tag, value| {
        let mut reader = ByteReader::new(value);
        let index = Handle::decode(&mut reader).ok()?;
        let filter = Handle::decode(&mut reader).ok()?;
        let zone = has_zones.then(|| ZoneMap::decode(value.get(reader.offset()..)?).ok());
        partitions.push(Partition {
            key: key.into(),
            tag,
            index,
            filter,
            zone: match zone {
                Some(zone) => Some(Box::new(zone?)),
                None => None,
            },
            pinned_index: OnceLock::new(),
            pinned_filter: OnceLock::new(),
        });
        Some(())
    })?;
    Ok(partitions)
}

/// Adds the filters that the properties locate, one for each partition.
fn set_filters(partitions: &mut [Partition], filters: &[Handle]) -> Option<()> {
    if filters.is_empty() {
        return Some(());
    }
    if filters.len() != partitions.len() {
        return None;
    }
    for (partition, filter) in partitions.iter_mut().zip(filters) {
        partition.filter = *filter;
    }
    Some(())
}

fn read_range_deletes(file: &dyn RandomRead, handle: Handle) -> Result<Vec<RangeDelete>> {
    let mut deletes = Vec::new();
    if handle.length == 0 {
        return Ok(deletes);
    }
    entries(file, handle, |start, tag, end| {
        if tag.kind() != Some(EntryKind::RangeDelete) {
            return None;
        }
        deletes.push(RangeDelete {
            start: start.to_vec(),
            end: end.to_vec(),
            sequence: tag.sequence(),
        });
        Some(())
    })?;
    Ok(deletes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::head::{HashedKey, HeadFunction, KeyHead};
    use crate::options::{KeyspaceOptions, TableVersion};
    use crate::table::builder::{TableBuilder, TableSettings};
    use crate::table::lookup::Visit;
    use crate::vfs::{MemoryVfs, Vfs as _};

    /// The head of every key is its first byte.
    #[derive(Debug)]
    struct FirstLetter;

    impl HeadFunction for FirstLetter {
        fn name(&self) -> &'static str {
            "first-letter"
        }

        fn head_len(&self, _: &[u8]) -> usize {
            1
        }
    }

    /// An open table of 300 blocks with one entry each, and what top says about its partitions.
    fn table_with(head: &KeyHead) -> Result<(Arc<TableReader>, Vec<Partition>)> {
        let options = KeyspaceOptions {
            head: head.clone(),
            block_bytes: 1,
            ..KeyspaceOptions::default()
        };
        let (vfs, path) = (MemoryVfs::new(), Path::new("/000001.table"));
        let settings = TableSettings::new(&options, 0, 0, 0, TableVersion::Three);
        let mut builder = TableBuilder::new(vfs.create(path)?, settings);
        for number in 0..300 {
            let key = format!("a{number:03}").into_bytes();
            builder.add(&key, Tag::new(1, EntryKind::Put), b"value")?;
        }
        builder.finish()?;
        let file = vfs.open_read(path)?;
        let mut footer = vec![0; FOOTER_BYTES];
        file.read_exact_at(file.len()? - FOOTER_BYTES as u64, &mut footer)?;
        let footer = Footer::decode(&footer).unwrap();
        let top = read_top(file.as_ref(), footer.top, false)?;
        let cache = Arc::new(BlockCache::new(0, 0));
        Ok((TableReader::open(file, 1, &cache)?, top))
    }

    #[test]
    fn top_locates_no_filter_of_heads_that_a_function_determines() {
        let function = KeyHead::Function(Arc::new(FirstLetter));
        for (head, in_top) in [(function, 0), (KeyHead::FixedTail(3), 5)] {
            let (table, top) = table_with(&head).unwrap();
            let filters = |partitions: &[Partition]| {
                let lengths = partitions.iter().map(|partition| partition.filter.length);
                lengths.filter(|&length| length > 0).count()
            };
            assert_eq!((filters(&top), filters(&table.partitions)), (in_top, 5));
            for (of, may_be) in [(b"a", true), (b"b", false)] {
                assert_eq!(table.may_have_head(of, &head).unwrap(), may_be);
            }
            let mut entries = 0;
            let key = HashedKey::new(b"a200", &head);
            let visit = &mut |_, _| {
                entries += 1;
                Visit::Enough
            };
            table.get(&key, Tag::NEWEST, visit).unwrap();
            assert_eq!(entries, 1);
        }
    }

    #[test]
    fn each_partition_has_one_filter_of_those_that_properties_locate() {
        let function = KeyHead::Function(Arc::new(FirstLetter));
        let (table, mut top) = table_with(&function).unwrap();
        let filters = table.partitions.iter().map(|partition| partition.filter);
        let filters: Vec<Handle> = filters.collect();
        assert_eq!(set_filters(&mut top, &filters[1..]), None);
        assert_eq!(set_filters(&mut top, &filters), Some(()));
    }
}
