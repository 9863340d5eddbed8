//! Point lookups in a table.

use std::sync::Arc;

use super::cursor::TableCursor;
use super::filter;
use super::reader::{BlockType, TableReader, handle_of};
use crate::block::NextVersion;
use crate::error::Result;
use crate::head::{HashedKey, KeyHead};
use crate::key::{Tag, hash as hash_of_key};
use crate::value::ValueBytes;

/// Whether a lookup continues with older entries of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Visit {
    Older,
    Enough,
}

impl TableReader {
    /// Whether there may be keys whose head in the keyspace is `head`.
    pub(crate) fn may_have_head(&self, head: &[u8], of: &KeyHead) -> Result<bool> {
        if !self.head.is_by(of) {
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

    /// Passes the entries of a key at or after `tag`, newest first, until the visitor stops.
    pub(crate) fn get(
        self: &Arc<Self>,
        lookup: &HashedKey<'_>,
        tag: Tag,
        visit: &mut dyn FnMut(Tag, ValueBytes) -> Visit,
    ) -> Result<()> {
        let key = lookup.key;
        let Some(partition) = self.partitions.get(self.partition_of(key, tag)) else {
            return Ok(());
        };
        if partition.filter.length > 0
            && let Some(hash) = self.head.filter_hash(lookup)
        {
            let filter = self.block_ref(
                partition.filter,
                BlockType::Filter,
                &partition.pinned_filter,
            )?;
            if !filter::may_contain(filter.bytes(), hash) {
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
            .find(key, lookup.hash, tag, base)
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
