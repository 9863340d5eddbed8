//! Point lookups in a table.

use std::sync::Arc;

use super::cursor::TableCursor;
use super::filter;
use super::reader::{BlockType, TableReader, handle_of};
use crate::block::NextVersion;
use crate::coding::to_usize;
use crate::error::Result;
use crate::key::{Tag, hash as hash_of_key, head_of};
use crate::value::ValueBytes;

/// Whether a lookup continues with older entries of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Older,
    Enough,
}

impl TableReader {
    /// The hash that filters use for a key with this hash.
    #[inline]
    fn filter_hash(&self, key: &[u8], hash: u64) -> u64 {
        match to_usize(self.properties.tail_bytes) {
            0 => hash,
            tail_bytes => hash_of_key(head_of(key, tail_bytes)),
        }
    }

    /// Whether there may be keys that are `head` plus a tail of this length.
    pub(crate) fn may_have_head(&self, head: &[u8], tail_bytes: usize) -> Result<bool> {
        if to_usize(self.properties.tail_bytes) != tail_bytes {
            return Ok(true);
        }
        let hash = hash_of_key(head);
        let first = self.partition_of(head, Tag::NEWEST);
        for partition in self.partitions.iter().skip(first) {
            if partition.filter.length == 0 {
                return Ok(true);
            }
            let filter = self.block_ref(
                partition.filter,
                BlockType::Filter,
                &partition.pinned_filter,
            )?;
            if filter::may_contain(filter.bytes(), hash) {
                return Ok(true);
            }
            // Keys that start with `head` continue in the next partition only before its end.
            if !partition.key.starts_with(head) {
                return Ok(false);
            }
        }
        Ok(false)
    }

    /// Passes the entries of `key` at or after `tag`, newest first, until the visitor stops.
    pub(crate) fn get(
        self: &Arc<Self>,
        key: &[u8],
        hash: u64,
        tag: Tag,
        visit: &mut dyn FnMut(Tag, ValueBytes) -> Visit,
    ) -> Result<()> {
        let Some(partition) = self.partitions.get(self.partition_of(key, tag)) else {
            return Ok(());
        };
        if partition.filter.length > 0 {
            let filter = self.block_ref(
                partition.filter,
                BlockType::Filter,
                &partition.pinned_filter,
            )?;
            if !filter::may_contain(filter.bytes(), self.filter_hash(key, hash)) {
                return Ok(());
            }
        }
        let index = self.kept_index(partition)?;
        let candidate = index
            .lower_bound(key, tag)
            .map_err(|_| self.malformed(partition.index))?;
        let Some(entry) = candidate else {
            return Ok(());
        };
        let handle = handle_of(&index, &entry).ok_or_else(|| self.malformed(partition.index))?;
        let block = self.block(handle, BlockType::Data)?;
        let base = self.base_sequence();
        let candidate = block
            .find(key, hash, tag, base)
            .map_err(|_| self.malformed(handle))?;
        let Some(mut entry) = candidate else {
            return Ok(());
        };
        loop {
            let value =
                ValueBytes::in_block(Arc::clone(&block), entry.value_at, entry.value_length);
            if visit(entry.tag, value) == Visit::Enough {
                return Ok(());
            }
            let next = block
                .next_version(key, &entry, base)
                .map_err(|_| self.malformed(handle))?;
            match next {
                NextVersion::Entry(older) => entry = older,
                NextVersion::OtherKey => return Ok(()),
                NextVersion::EndOfBlock => return self.get_older(key, entry.tag, visit),
            }
        }
    }

    /// Continues with versions in later blocks.
    fn get_older(
        self: &Arc<Self>,
        key: &[u8],
        after: Tag,
        visit: &mut dyn FnMut(Tag, ValueBytes) -> Visit,
    ) -> Result<()> {
        let mut cursor = TableCursor::new(Arc::clone(self), false);
        cursor.seek(key, Tag(after.0.saturating_sub(1)))?;
        while cursor.is_valid() && cursor.key() == key {
            if visit(cursor.tag(), ValueBytes::from(cursor.value().to_vec())) == Visit::Enough {
                return Ok(());
            }
            cursor.next()?;
        }
        Ok(())
    }
}
