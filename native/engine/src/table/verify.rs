//! Verifying a whole table.

use std::cmp::Ordering;
use std::sync::Arc;

use rillbase_binary_format::ByteReader;

use super::fetch::ReadAhead;
use super::frame::Handle;
use super::reader::{BlockType, TableReader};
use crate::block::cursor::BlockCursor;
use crate::block::{Block, MalformedBlock};
use crate::error::{Error, Result};
use crate::key::{Sequence, Tag, compare};

impl TableReader {
    /// Reads and verifies every block bypassing the cache, and reports progress.
    pub(crate) fn verify(self: &Arc<Self>, progress: &mut dyn FnMut(u64)) -> Result<u64> {
        let mut entries = 0;
        let mut ahead = ReadAhead::default();
        for partition in &self.partitions {
            if partition.filter.length > 0 {
                self.read_block(partition.filter, BlockType::Filter)?;
            }
            let index = self.read_block(partition.index, BlockType::Index)?;
            let mut cursor = BlockCursor::new(0);
            cursor.enter(Arc::new(index));
            cursor
                .first()
                .map_err(|_| self.malformed(partition.index))?;
            while cursor.is_valid() {
                let handle = Handle::decode(&mut ByteReader::new(cursor.value()))
                    .map_err(|_| self.malformed(partition.index))?;
                let block = self.block_ahead(handle, BlockType::Data, &mut ahead)?;
                entries += count_in_order(block, self.base_sequence())
                    .map_err(|MalformedBlock| self.malformed(handle))?;
                progress(handle.length);
                cursor.next().map_err(|_| self.malformed(partition.index))?;
            }
        }
        self.verify_map(progress)?;
        if entries != self.properties().entries {
            let counted = self.properties().entries;
            let detail = format!("found {entries} entries instead of {counted}");
            return Err(Error::corruption(self.path(), 0, detail));
        }
        Ok(entries)
    }
}

/// Counts the entries of a block, which must be in order.
fn count_in_order(block: Arc<Block>, base: Sequence) -> std::result::Result<u64, MalformedBlock> {
    let mut cursor = BlockCursor::new(base);
    cursor.enter(block);
    cursor.first()?;
    let mut count = 0;
    let mut last: Option<(Vec<u8>, Tag)> = None;
    while cursor.is_valid() {
        let here = (cursor.key(), cursor.tag());
        if last
            .as_ref()
            .is_some_and(|(key, tag)| compare((key, *tag), here) != Ordering::Less)
        {
            return Err(MalformedBlock);
        }
        last = Some((here.0.to_vec(), here.1));
        count += 1;
        cursor.next()?;
    }
    Ok(count)
}
