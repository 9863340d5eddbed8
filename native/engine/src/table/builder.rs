//! Writes a table from ordered entries.

use std::sync::Arc;

use super::attribute_map::MapBuilder;
use super::filter;
use super::footer::{FOOTER_BYTES, Footer};
use super::frame::{self, Handle};
use super::properties::TableProperties;
use crate::block::builder::BlockBuilder;
use crate::error::{Error, Result};
use crate::extract::{Extractor, ZoneMap};
use crate::head::KeyHead;
use crate::key::{EntryKind, Millis, Sequence, Tag, hash, separator, split_expiry};
use crate::lifetime::Lifetime;
use crate::options::{KeyspaceOptions, TableVersion};
use crate::range_delete::RangeDelete;
use crate::table::codec::Compression;
use crate::vfs::AppendFile;

/// The number of data blocks that share one index block and one filter, except in the last
/// partition, which may have fewer.
pub(crate) const PARTITION_BLOCKS: usize = 64;
/// The file is written in pieces of this size.
const WRITE_BYTES: usize = 512 << 10;

/// The settings of a table.
#[derive(Debug, Clone)]
pub(crate) struct TableSettings {
    block_bytes: usize,
    restart_interval: usize,
    filter_bits: usize,
    head: KeyHead,
    compression: Compression,
    extractor: Option<Arc<dyn Extractor>>,
    lifetime: Option<Arc<dyn Lifetime>>,
    base_sequence: Sequence,
    written_until: Millis,
    version: TableVersion,
}

impl TableSettings {
    /// For a table of a level whose entries are all at or above `base_sequence`.
    pub(crate) fn new(
        options: &KeyspaceOptions,
        level: usize,
        base_sequence: Sequence,
        written_until: Millis,
        version: TableVersion,
    ) -> Self {
        Self {
            version,
            block_bytes: options.block_bytes,
            restart_interval: options.restart_interval,
            filter_bits: options.filter_bits,
            head: options.head.clone(),
            compression: options.compression_of(level),
            extractor: options.extractor.clone(),
            lifetime: options.lifetime.clone(),
            base_sequence,
            written_until,
        }
    }
}

/// A finished table.
#[derive(Debug)]
pub(crate) struct BuiltTable {
    pub(crate) size: u64,
    /// First and last key of the entries; `None` if there are only range deletes.
    pub(crate) keys: Option<(Vec<u8>, Vec<u8>)>,
    pub(crate) properties: TableProperties,
}

/// A data block that waits for the next key, so that its separator can be short.
#[derive(Debug)]
struct Unindexed {
    value: Vec<u8>,
}

/// Writes one table.
#[derive(Debug)]
pub(crate) struct TableBuilder {
    file: Box<dyn AppendFile>,
    settings: TableSettings,
    /// Bytes that are not in the file yet.
    pending: Vec<u8>,
    offset: u64,
    data: BlockBuilder,
    index: BlockBuilder,
    index_entries: usize,
    top: BlockBuilder,
    hashes: Vec<u64>,
    unindexed: Option<Unindexed>,
    first_key: Option<Vec<u8>>,
    last_key: Vec<u8>,
    last_tag: Tag,
    zone: ZoneMap,
    /// The zone of the partition, and the map; only in version 4 with an extractor.
    partition_zone: Option<ZoneMap>,
    map: Option<MapBuilder>,
    properties: TableProperties,
    range_deletes: BlockBuilder,
}

impl TableBuilder {
    pub(crate) fn new(file: Box<dyn AppendFile>, settings: TableSettings) -> Self {
        let base = settings.base_sequence;
        let mut properties = TableProperties::new(base, settings.written_until);
        properties.tail_bytes = settings.head.tail_bytes() as u64;
        if settings.filter_bits > 0 {
            properties.head_function = settings.head.function_name().map(str::to_owned);
        }
        if let Some(extractor) = &settings.extractor {
            properties.zone = Some(ZoneMap::default());
            extractor.name().clone_into(&mut properties.extractor);
            properties.extractor_version = extractor.version();
        }
        let is_mapped = settings.extractor.is_some() && settings.version == TableVersion::Four;
        Self {
            file,
            data: BlockBuilder::new(settings.restart_interval, base, true),
            index: BlockBuilder::new(1, 0, false),
            top: BlockBuilder::new(1, 0, false),
            range_deletes: BlockBuilder::new(1, 0, false),
            settings,
            pending: Vec::new(),
            offset: 0,
            index_entries: 0,
            hashes: Vec::new(),
            unindexed: None,
            first_key: None,
            last_key: Vec::new(),
            last_tag: Tag::NEWEST,
            zone: ZoneMap::default(),
            partition_zone: is_mapped.then(ZoneMap::default),
            map: is_mapped.then(MapBuilder::default),
            properties,
        }
    }

    /// Adds an entry after all previous ones.
    pub(crate) fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) -> Result<()> {
        self.index_waiting_block(Some(key))?;
        if self.settings.filter_bits > 0 {
            let hash = hash(self.settings.head.of(key));
            if self.hashes.last() != Some(&hash) {
                self.hashes.push(hash);
            }
        }
        let lifetime = self.settings.lifetime.as_ref();
        let expiry = lifetime.and_then(|lifetime| lifetime.expiry(key));
        self.properties.count(key, tag, value, expiry);
        self.note_zone(key, tag, value);
        self.data.add(key, tag, value);
        if self.first_key.is_none() {
            self.first_key = Some(key.to_vec());
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.last_tag = tag;
        if self.data.size() >= self.settings.block_bytes {
            self.finish_data_block()?;
        }
        Ok(())
    }

    fn note_zone(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        let Some(extractor) = &self.settings.extractor else {
            return;
        };
        match tag.kind() {
            Some(kind @ (EntryKind::Put | EntryKind::PutExpiring | EntryKind::DeleteWith)) => {
                let value = split_expiry(kind, value).map_or(value, |(_, value)| value);
                let indexed = self.zone.indexed_values();
                extractor.extract(key, value, &mut self.zone);
                if kind == EntryKind::DeleteWith {
                    // Lookups return no deletes.
                    self.zone.truncate_indexed(indexed);
                }
            }
            Some(EntryKind::Merge) => self.zone.add_unknown(),
            _ => {}
        }
    }

    /// Adds a range delete; they are ordered by start, then newest first.
    pub(crate) fn add_range_delete(&mut self, delete: &RangeDelete) {
        let tag = Tag::new(delete.sequence, EntryKind::RangeDelete);
        self.range_deletes.add(&delete.start, tag, &delete.end);
        self.properties.count_range_delete(delete.sequence);
    }

    /// The current size of the file.
    pub(crate) fn size(&self) -> u64 {
        self.offset + self.data.size() as u64
    }

    fn finish_data_block(&mut self) -> Result<()> {
        if self.data.is_empty() {
            return Ok(());
        }
        let block = self.data.finish();
        let handle = frame::write(
            &mut self.pending,
            self.offset,
            block,
            self.settings.compression,
        );
        self.data.clear();
        if let Some(map) = &mut self.map {
            map.add(self.properties.data_blocks, &mut self.zone);
        }
        if let Some(partition) = &mut self.partition_zone {
            partition.add_zone(&self.zone);
        }
        self.properties.data_blocks += 1;
        let mut value = Vec::new();
        handle.encode(&mut value);
        if let Some(whole) = &mut self.properties.zone {
            whole.add_zone(&self.zone);
            self.zone.encode(&mut value);
            self.zone.clear();
        }
        self.unindexed = Some(Unindexed { value });
        self.moved(handle)
    }

    /// Records that a frame was written, and writes full pieces to the file.
    fn moved(&mut self, handle: Handle) -> Result<()> {
        self.offset = handle.offset + handle.length + frame::FRAME_BYTES as u64;
        if self.pending.len() >= WRITE_BYTES {
            self.file.append(&self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// Adds the waiting data block to the index, now that the next key is known.
    fn index_waiting_block(&mut self, next_key: Option<&[u8]>) -> Result<()> {
        let Some(block) = self.unindexed.take() else {
            return Ok(());
        };
        let (key, tag) = match next_key {
            Some(next) if next == self.last_key => (self.last_key.clone(), self.last_tag),
            Some(next) => (separator(&self.last_key, next), Tag::OLDEST),
            None => (self.last_key.clone(), Tag::OLDEST),
        };
        self.index.add(&key, tag, &block.value);
        self.index_entries += 1;
        if self.index_entries >= PARTITION_BLOCKS || next_key.is_none() {
            self.finish_partition(&key, tag)?;
        }
        Ok(())
    }

    fn finish_partition(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let mut value = Vec::new();
        let index = self.index.finish();
        // Indexes and filters are read often and are small: they are not compressed.
        let handle = frame::write(&mut self.pending, self.offset, index, Compression::None);
        handle.encode(&mut value);
        self.index.clear();
        self.index_entries = 0;
        self.moved(handle)?;
        self.write_filter()?.encode(&mut value);
        if let Some(zone) = &mut self.partition_zone {
            zone.encode(&mut value);
            zone.clear();
        }
        self.top.add(key, tag, &value);
        Ok(())
    }

    /// Writes the filter of a partition, and returns its location for top.
    fn write_filter(&mut self) -> Result<Handle> {
        let none = Handle {
            offset: 0,
            length: 0,
        };
        if self.settings.filter_bits == 0 {
            return Ok(none);
        }
        let filter = filter::build(&self.hashes, self.settings.filter_bits);
        self.hashes.clear();
        let handle = frame::write(&mut self.pending, self.offset, &filter, Compression::None);
        self.moved(handle)?;
        if self.properties.head_function.is_none() {
            return Ok(handle);
        }
        self.properties.filters.push(handle);
        Ok(none)
    }

    fn write_map(&mut self) -> Result<()> {
        let Some(map) = self.map.take() else {
            return Ok(());
        };
        let written = map.finish(&mut |part| {
            let handle = frame::write(&mut self.pending, self.offset, part, Compression::None);
            self.moved(handle)?;
            Ok(handle)
        })?;
        self.properties.map = written.directory;
        self.properties.unmapped = written.unmapped;
        Ok(())
    }

    /// Finishes a table whose entries were added at sequence 0, and sets them all to this one.
    pub(crate) fn finish_at(mut self, sequence: Sequence) -> Result<BuiltTable> {
        self.properties.base_sequence = sequence;
        self.properties.first_sequence = sequence;
        self.properties.last_sequence = sequence;
        self.finish()
    }

    /// Writes the rest, makes the file durable and returns a description of it.
    pub(crate) fn finish(mut self) -> Result<BuiltTable> {
        self.finish_data_block()?;
        self.index_waiting_block(None)?;
        self.write_map()?;
        let mut range_deletes = Handle {
            offset: 0,
            length: 0,
        };
        if !self.range_deletes.is_empty() {
            let block = self.range_deletes.finish();
            range_deletes = frame::write(&mut self.pending, self.offset, block, Compression::None);
            self.moved(range_deletes)?;
        }
        let encoded = self.properties.encode();
        let properties = frame::write(&mut self.pending, self.offset, &encoded, Compression::None);
        self.moved(properties)?;
        let top = frame::write(
            &mut self.pending,
            self.offset,
            self.top.finish(),
            Compression::None,
        );
        self.moved(top)?;
        let footer = Footer {
            top,
            properties,
            range_deletes,
            version: self.settings.version.number(),
        };
        self.pending.extend_from_slice(&footer.encode());
        self.file.append(&self.pending)?;
        self.file.sync()?;
        let size = self.offset + FOOTER_BYTES as u64;
        if self.file.len() != size {
            return Err(Error::InvalidArgument {
                what: format!("a table of {size} bytes came to {}", self.file.len()),
            });
        }
        let last_key = self.last_key;
        Ok(BuiltTable {
            size,
            keys: self.first_key.map(|first| (first, last_key)),
            properties: self.properties,
        })
    }
}
