//! A cursor over a table.

use std::sync::Arc;

use rillbase_binary_format::ByteReader;

use super::builder::PARTITION_BLOCKS;
use super::fetch::ReadAhead;
use super::frame::Handle;
use super::reader::{BlockType, TableReader};
use crate::block::MalformedBlock;
use crate::block::cursor::BlockCursor;
use crate::error::Result;
use crate::extract::{ExtractorVersion, ZoneMap};
use crate::key::Tag;
use crate::table::zone_filter::ZoneFilter;

/// Iterates over a table in both directions.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<TableReader>,
    /// The partition that `index` is in.
    partition: usize,
    index: BlockCursor,
    data: BlockCursor,
    handle: Handle,
    /// Set when bypassing the cache.
    ahead: Option<ReadAhead>,
    filter: Option<Arc<ZoneFilter>>,
}

impl TableCursor {
    /// A cursor without a position. With `past_cache` it reads large pieces and bypasses the cache,
    /// for compactions.
    pub(crate) fn new(table: Arc<TableReader>, past_cache: bool) -> Self {
        let base = table.base_sequence();
        Self {
            table,
            partition: 0,
            index: BlockCursor::new(0),
            data: BlockCursor::new(base),
            handle: Handle {
                offset: 0,
                length: 0,
            },
            ahead: past_cache.then(ReadAhead::default),
            filter: None,
        }
    }

    /// A cursor that skips what the filter excludes when moving forward.
    pub(crate) fn filtered(mut self, filter: Option<Arc<ZoneFilter>>) -> Self {
        self.filter = filter;
        self
    }

    /// Advances to an index entry whose block is not skipped. Returns false after the last.
    fn pass_over(&mut self) -> Result<bool> {
        let Some(filter) = self.filter.clone() else {
            return Ok(self.index.is_valid());
        };
        while self.index.is_valid() && filter.skips_block(&self.table, self.zone_bytes()) {
            self.next_index()?;
        }
        Ok(self.index.is_valid())
    }

    /// Whether the filter skips the whole table.
    fn is_passed_over(&mut self) -> bool {
        let filter = self.filter.as_ref();
        let skipped = filter.is_some_and(|filter| filter.skips_table(&self.table));
        if skipped {
            self.data.leave();
        }
        skipped
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.data.is_valid()
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.data.key()
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.data.tag()
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.data.value()
    }

    /// Enters the index of a partition; false if there is no such partition.
    fn enter_partition(&mut self, number: usize) -> Result<bool> {
        let Some(partition) = self.table.partitions.get(number) else {
            self.index.leave();
            self.data.leave();
            return Ok(false);
        };
        let handle = partition.index;
        self.partition = number;
        self.handle = handle;
        let block = match &mut self.ahead {
            None => self.table.index_of(partition)?,
            Some(ahead) => self.table.block_ahead(handle, BlockType::Index, ahead)?,
        };
        self.index.enter(block);
        Ok(true)
    }

    /// Enters the index of the first partition from a number on that the filter does not skip; false
    /// if there is none.
    fn enter_partition_from(&mut self, mut number: usize) -> Result<bool> {
        if let Some(filter) = &self.filter {
            while filter.skips_partition(&self.table, number) {
                number += 1;
            }
        }
        self.enter_partition(number)
    }

    fn decode_handle(&self) -> Result<Handle> {
        Handle::decode(&mut ByteReader::new(self.index.value()))
            .map_err(|_| self.table.malformed(self.handle))
    }

    /// Enters the data block of the current index entry.
    fn enter_data(&mut self) -> Result<()> {
        let handle = self.decode_handle()?;
        self.enter_data_at(handle)
    }

    fn enter_data_at(&mut self, handle: Handle) -> Result<()> {
        self.handle = handle;
        let block = match &mut self.ahead {
            None => self.table.block(handle, BlockType::Data)?,
            Some(ahead) => self.table.block_ahead(handle, BlockType::Data, ahead)?,
        };
        self.data.enter(block);
        Ok(())
    }

    fn checked(&self, result: std::result::Result<(), MalformedBlock>) -> Result<()> {
        result.map_err(|MalformedBlock| self.table.malformed(self.handle))
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        if self.is_passed_over() || !self.enter_partition_from(0)? {
            return Ok(());
        }
        let moved = self.index.first();
        self.checked(moved)?;
        self.pass_over()?;
        self.enter_first_data()
    }

    pub(crate) fn last(&mut self) -> Result<()> {
        let Some(number) = self.table.partitions.len().checked_sub(1) else {
            self.data.leave();
            return Ok(());
        };
        self.enter_partition(number)?;
        let moved = self.index.last();
        self.checked(moved)?;
        self.enter_last_data()
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let number = self.table.partition_of(key, tag);
        if self.is_passed_over() || !self.enter_partition_from(number)? {
            return Ok(());
        }
        let moved = self.index.seek(key, tag);
        self.checked(moved)?;
        if !self.pass_over()? {
            self.data.leave();
            return Ok(());
        }
        self.enter_data()?;
        let moved = self.data.seek(key, tag);
        self.checked(moved)?;
        if self.data.is_valid() {
            return Ok(());
        }
        self.next_block()
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<()> {
        let moved = self.data.next();
        self.checked(moved)?;
        if self.data.is_valid() {
            return Ok(());
        }
        self.next_block()
    }

    /// Moves to the first index entry of a partition at or after `(key, tag)`; no data is read.
    pub(crate) fn seek_index_in(&mut self, number: usize, key: &[u8], tag: Tag) -> Result<()> {
        self.data.leave();
        if self.enter_partition(number)? {
            let moved = self.index.seek(key, tag);
            self.checked(moved)?;
        }
        Ok(())
    }

    /// Moves to the next index entry of the same partition; no data is read.
    pub(crate) fn next_index_in_partition(&mut self) -> Result<()> {
        let moved = self.index.next();
        self.checked(moved)
    }

    /// Moves to the index entry of the block with a number, counted from 0 in the table; no data is
    /// read.
    pub(crate) fn enter_index_of(&mut self, number: usize) -> Result<()> {
        self.data.leave();
        if self.enter_partition(number / PARTITION_BLOCKS)? {
            let moved = self.index.enter_restart(number % PARTITION_BLOCKS);
            self.checked(moved)?;
        }
        if self.index.is_valid() {
            return Ok(());
        }
        Err(self.table.malformed(self.handle))
    }

    /// Moves to the index entry of the next block; no data is read.
    pub(crate) fn next_index(&mut self) -> Result<()> {
        let moved = self.index.next();
        self.checked(moved)?;
        if !self.index.is_valid() && self.enter_partition_from(self.partition + 1)? {
            let moved = self.index.first();
            self.checked(moved)?;
        }
        Ok(())
    }

    /// The encoded zone in the current index entry; `None` after the last.
    pub(crate) fn zone_bytes(&self) -> Option<&[u8]> {
        if !self.index.is_valid() {
            return None;
        }
        let value = self.index.value();
        let mut reader = ByteReader::new(value);
        Handle::decode(&mut reader).ok()?;
        value.get(reader.offset()..)
    }

    /// The zone in the current index entry, if this extractor made it.
    pub(crate) fn block_zone(&self, extractor: ExtractorVersion<'_>) -> Option<ZoneMap> {
        self.table.zone(extractor)?;
        ZoneMap::decode(self.zone_bytes()?).ok()
    }

    /// The location of the block of the current index entry; `None` after the last.
    pub(crate) fn block_handle(&self) -> Result<Option<Handle>> {
        if !self.index.is_valid() {
            return Ok(None);
        }
        self.decode_handle().map(Some)
    }

    /// Reads the block at a location that [`Self::block_handle`] returned, and moves to its first
    /// entry. The position in the index does not change.
    pub(crate) fn enter_block_at(&mut self, handle: Handle) -> Result<()> {
        self.enter_data_at(handle)?;
        let moved = self.data.first();
        self.checked(moved)
    }

    /// Reads the block of the current index entry, and moves to its first entry at or after `(key,
    /// tag)`.
    pub(crate) fn enter_block(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        self.enter_data()?;
        let moved = self.data.seek(key, tag);
        self.checked(moved)
    }

    /// Moves to the next entry of the same block.
    pub(crate) fn next_in_block(&mut self) -> Result<()> {
        let moved = self.data.next();
        self.checked(moved)
    }

    /// Moves to the first entry of the next block, if any.
    pub(crate) fn next_block(&mut self) -> Result<()> {
        let moved = self.index.next();
        self.checked(moved)?;
        if !self.index.is_valid() {
            if !self.enter_partition_from(self.partition + 1)? {
                return Ok(());
            }
            let moved = self.index.first();
            self.checked(moved)?;
        }
        self.pass_over()?;
        self.enter_first_data()
    }

    fn enter_first_data(&mut self) -> Result<()> {
        if !self.index.is_valid() {
            self.data.leave();
            return Ok(());
        }
        self.enter_data()?;
        let moved = self.data.first();
        self.checked(moved)
    }

    fn enter_last_data(&mut self) -> Result<()> {
        if !self.index.is_valid() {
            self.data.leave();
            return Ok(());
        }
        self.enter_data()?;
        let moved = self.data.last();
        self.checked(moved)
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        let moved = self.data.previous();
        self.checked(moved)?;
        if self.data.is_valid() {
            return Ok(());
        }
        let moved = self.index.previous();
        self.checked(moved)?;
        if !self.index.is_valid() {
            let Some(number) = self.partition.checked_sub(1) else {
                self.data.leave();
                return Ok(());
            };
            self.enter_partition(number)?;
            let moved = self.index.last();
            self.checked(moved)?;
        }
        self.enter_last_data()
    }
}
