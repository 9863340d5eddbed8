//! A place among the entries of a table.

use std::sync::Arc;

use super::block::{BlockCursor, Malformed};
use super::frame::Handle;
use super::reader::{Part, ReadAhead, Table};
use crate::coding::Reader;
use crate::error::Result;
use crate::key::Tag;

/// Walks a table in both directions.
#[derive(Debug)]
pub(crate) struct TableCursor {
    table: Arc<Table>,
    /// The partition that `index` is in.
    partition: usize,
    index: BlockCursor,
    data: BlockCursor,
    handle: Handle,
    /// Set when reading past the cache.
    ahead: Option<ReadAhead>,
}

impl TableCursor {
    /// A cursor nowhere. One that reads `past_cache` reads large pieces and leaves the cache as
    /// it is, for compactions.
    pub(crate) fn new(table: Arc<Table>, past_cache: bool) -> Self {
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
        }
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

    fn block(&mut self, handle: Handle, part: Part) -> Result<Arc<super::block::Block>> {
        match &mut self.ahead {
            None => self.table.block(handle, part),
            Some(ahead) => self.table.block_ahead(handle, part, ahead),
        }
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
        let block = self.block(handle, Part::Index)?;
        self.index.enter(block);
        Ok(true)
    }

    /// Enters the data block that the index stands at.
    fn enter_data(&mut self) -> Result<()> {
        let handle = Handle::decode(&mut Reader::new(self.index.value()))
            .ok_or_else(|| self.table.malformed(self.handle))?;
        self.handle = handle;
        let block = self.block(handle, Part::Data)?;
        self.data.enter(block);
        Ok(())
    }

    fn checked(&self, result: std::result::Result<(), Malformed>) -> Result<()> {
        result.map_err(|Malformed| self.table.malformed(self.handle))
    }

    pub(crate) fn first(&mut self) -> Result<()> {
        if !self.enter_partition(0)? {
            return Ok(());
        }
        let moved = self.index.first();
        self.checked(moved)?;
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

    /// To the first entry at or behind `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<()> {
        let number = self.table.partition_of(key, tag);
        if !self.enter_partition(number)? {
            return Ok(());
        }
        let moved = self.index.seek(key, tag);
        self.checked(moved)?;
        if !self.index.is_valid() {
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

    /// To the first entry of the block behind, if any.
    pub(crate) fn next_block(&mut self) -> Result<()> {
        let moved = self.index.next();
        self.checked(moved)?;
        if !self.index.is_valid() {
            if !self.enter_partition(self.partition + 1)? {
                return Ok(());
            }
            let moved = self.index.first();
            self.checked(moved)?;
        }
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
