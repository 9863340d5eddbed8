//! A cursor over a block.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{Block, EntryShape, MalformedBlock};
use crate::key::{Sequence, Tag, compare};

/// A cursor over a block.
#[derive(Debug, Clone)]
pub(crate) struct BlockCursor {
    block: Option<Arc<Block>>,
    base: Sequence,
    at: usize,
    next_at: usize,
    key: Vec<u8>,
    tag: Tag,
    value_at: usize,
    value_length: usize,
}

impl BlockCursor {
    pub(crate) fn new(base: Sequence) -> Self {
        Self {
            block: None,
            base,
            at: usize::MAX,
            next_at: 0,
            key: Vec::new(),
            tag: Tag::OLDEST,
            value_at: 0,
            value_length: 0,
        }
    }

    /// Enters a block, without a position.
    pub(crate) fn enter(&mut self, block: Arc<Block>) {
        self.block = Some(block);
        self.at = usize::MAX;
    }

    pub(crate) fn leave(&mut self) {
        self.block = None;
        self.at = usize::MAX;
    }

    #[inline]
    pub(crate) fn is_valid(&self) -> bool {
        self.at != usize::MAX
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    #[inline]
    pub(crate) fn tag(&self) -> Tag {
        self.tag
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let Some(block) = &self.block else {
            return &[];
        };
        block
            .bytes()
            .get(self.value_at..self.value_at + self.value_length)
            .unwrap_or_default()
    }

    /// Decodes the entry at `at`, whose predecessor is the current one unless it is a restart.
    #[inline]
    fn load(&mut self, at: usize) -> Result<(), MalformedBlock> {
        let Some(block) = &self.block else {
            return Err(MalformedBlock);
        };
        if at >= block.entries_end {
            self.at = usize::MAX;
            return Ok(());
        }
        let before = EntryShape::new(self.key.len(), self.value_length, self.tag);
        let head = block.head(at, before, self.base)?;
        if head.shared > self.key.len() {
            return Err(MalformedBlock);
        }
        self.key.truncate(head.shared);
        self.key.extend_from_slice(block.key_rest(&head)?);
        self.tag = head.tag;
        self.value_at = head.value_at();
        self.value_length = head.value_length;
        self.next_at = head.next();
        self.at = at;
        Ok(())
    }

    /// Moves to the restart with a number, counted from 0; to none if there are fewer.
    pub(crate) fn enter_restart(&mut self, number: usize) -> Result<(), MalformedBlock> {
        let Some(block) = &self.block else {
            return Err(MalformedBlock);
        };
        if number >= block.restarts {
            self.at = usize::MAX;
            return Ok(());
        }
        let start = block.restart(number)?;
        self.key.clear();
        self.load(start)
    }

    pub(crate) fn first(&mut self) -> Result<(), MalformedBlock> {
        self.key.clear();
        self.load(0)
    }

    pub(crate) fn last(&mut self) -> Result<(), MalformedBlock> {
        let restarts = self.block.as_ref().map_or(0, |block| block.restarts);
        self.scan_to_end(restarts)
    }

    /// Moves to the last entry after the restarts before `restarts`.
    fn scan_to_end(&mut self, restarts: usize) -> Result<(), MalformedBlock> {
        let Some(block) = &self.block else {
            return Err(MalformedBlock);
        };
        let Some(number) = restarts.checked_sub(1) else {
            self.at = usize::MAX;
            return Ok(());
        };
        let start = block.restart(number)?;
        let end = if restarts < block.restarts {
            block.restart(restarts)?
        } else {
            block.entries_end
        };
        self.scan_before(start, end)
    }

    /// Moves from a restart to the last entry that starts before `end`.
    fn scan_before(&mut self, start: usize, end: usize) -> Result<(), MalformedBlock> {
        self.key.clear();
        self.load(start)?;
        while self.is_valid() && self.next_at < end {
            self.load(self.next_at)?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<(), MalformedBlock> {
        self.load(self.next_at)
    }

    pub(crate) fn previous(&mut self) -> Result<(), MalformedBlock> {
        let Some(block) = &self.block else {
            return Err(MalformedBlock);
        };
        let end = self.at;
        let (mut low, mut high) = (0, block.restarts);
        while low < high {
            let middle = usize::midpoint(low, high);
            if block.restart(middle)? < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let Some(number) = low.checked_sub(1) else {
            self.at = usize::MAX;
            return Ok(());
        };
        let start = block.restart(number)?;
        self.scan_before(start, end)
    }

    /// Moves to the first entry at or after `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<(), MalformedBlock> {
        let Some(block) = &self.block else {
            return Err(MalformedBlock);
        };
        if block.restarts == 0 {
            self.at = usize::MAX;
            return Ok(());
        }
        let start = block.restart(block.restart_before(key, tag, self.base)?)?;
        self.key.clear();
        self.load(start)?;
        while self.is_valid() && compare((&self.key, self.tag), (key, tag)) == Ordering::Less {
            self.load(self.next_at)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::builder::BlockBuilder;
    use crate::block::{BlockEntry, NextVersion};
    use crate::key::EntryKind;
    use crate::key::hash;

    fn build(count: u32, interval: usize) -> Arc<Block> {
        let mut builder = BlockBuilder::new(interval, 10, true);
        for number in 0..count {
            let key = format!("key{:05}", number / 3);
            let tag = Tag::new(u64::from(100 - number % 3), EntryKind::Put);
            builder.add(key.as_bytes(), tag, number.to_string().as_bytes());
        }
        Arc::new(Block::parse(builder.finish().to_vec(), true).unwrap())
    }

    fn value<'a>(block: &'a Block, entry: &BlockEntry) -> &'a [u8] {
        &block.bytes()[entry.value_at..entry.value_at + entry.value_length]
    }

    #[test]
    fn lookups_find_the_newest_version_that_is_seen() {
        for interval in [1, 2, 16] {
            let block = build(300, interval);
            for number in 0..100 {
                let key = format!("key{number:05}");
                let find = |sequence| {
                    let tag = Tag::seek(sequence);
                    block
                        .find(key.as_bytes(), hash(key.as_bytes()), tag, 10)
                        .unwrap()
                };
                let newest = find(1000).unwrap();
                assert_eq!(value(&block, &newest), (number * 3).to_string().as_bytes());
                let older = find(99).unwrap();
                assert_eq!(
                    value(&block, &older),
                    (number * 3 + 1).to_string().as_bytes()
                );
                assert!(find(97).is_none());
            }
            assert!(
                block
                    .find(b"key", hash(b"key"), Tag::NEWEST, 10)
                    .unwrap()
                    .is_none()
            );
            assert!(
                block
                    .find(b"z", hash(b"z"), Tag::NEWEST, 10)
                    .unwrap()
                    .is_none()
            );
        }
    }

    #[test]
    fn entries_of_one_shape_leave_it_out_and_others_do_not() {
        let entries = [
            ("ab1", 7, EntryKind::Put, "one"),
            ("ab2", 6, EntryKind::Put, "two"),
            ("ab3", 5, EntryKind::Put, "three"),
            ("ab4", 4, EntryKind::Put, "4"),
            ("ab5", 3, EntryKind::Delete, "5"),
            ("abcd", 2, EntryKind::Delete, "6"),
            ("abce", 1, EntryKind::Delete, "7"),
        ];
        let mut builder = BlockBuilder::new(16, 0, true);
        for (key, sequence, kind, value) in entries {
            builder.add(key.as_bytes(), Tag::new(sequence, kind), value.as_bytes());
        }
        let block = Arc::new(Block::parse(builder.finish().to_vec(), true).unwrap());
        let second = [2 << 1 | 1, 6, b'2', b't', b'w', b'o'];
        assert_eq!(&block.bytes()[10..16], second);
        let mut cursor = BlockCursor::new(0);
        cursor.enter(Arc::clone(&block));
        cursor.first().unwrap();
        for (key, sequence, kind, value) in entries {
            let tag = Tag::new(sequence, kind);
            let found = (cursor.key(), cursor.tag(), cursor.value());
            assert_eq!(found, (key.as_bytes(), tag, value.as_bytes()));
            let entry = block.find(key.as_bytes(), hash(key.as_bytes()), Tag::NEWEST, 0);
            let entry = entry.unwrap().unwrap();
            assert_eq!(
                (entry.tag, self::value(&block, &entry)),
                (tag, value.as_bytes())
            );
            cursor.next().unwrap();
        }
        assert!(!cursor.is_valid());
    }

    #[test]
    fn older_versions_of_a_key_are_found_one_after_the_other() {
        let block = build(300, 16);
        let key = b"key00050";
        let mut entry = block
            .find(key, hash(key), Tag::NEWEST, 10)
            .unwrap()
            .unwrap();
        for expected in [b"150", b"151", b"152"] {
            assert_eq!(value(&block, &entry), expected);
            match block.next_version(key, &entry, 10).unwrap() {
                NextVersion::Entry(older) => entry = older,
                other => assert!(expected == b"152" && matches!(other, NextVersion::OtherKey)),
            }
        }
    }

    #[test]
    fn a_cursor_walks_both_ways_and_seeks() {
        let block = build(300, 7);
        let mut cursor = BlockCursor::new(10);
        cursor.enter(block);
        cursor.first().unwrap();
        let mut forward = Vec::new();
        while cursor.is_valid() {
            forward.push((cursor.key().to_vec(), cursor.tag(), cursor.value().to_vec()));
            cursor.next().unwrap();
        }
        assert_eq!(forward.len(), 300);
        cursor.last().unwrap();
        let mut backward = Vec::new();
        while cursor.is_valid() {
            backward.push((cursor.key().to_vec(), cursor.tag(), cursor.value().to_vec()));
            cursor.previous().unwrap();
        }
        backward.reverse();
        assert_eq!(forward, backward);
        cursor.seek(b"key00007", Tag::seek(99)).unwrap();
        assert_eq!(cursor.value(), b"22");
        cursor.seek(b"key00007x", Tag::NEWEST).unwrap();
        assert_eq!(cursor.key(), b"key00008");
        cursor.seek(b"z", Tag::NEWEST).unwrap();
        assert!(!cursor.is_valid());
    }

    #[test]
    fn cut_and_changed_bytes_are_refused_or_read_without_a_panic() {
        let block = build(40, 4);
        for length in 0..block.bytes().len() {
            if let Ok(cut) = Block::parse(block.bytes()[..length].to_vec(), true) {
                let mut cursor = BlockCursor::new(0);
                cursor.enter(Arc::new(cut));
                let _ = cursor.seek(b"key00003", Tag::NEWEST);
                let _ = cursor.last();
            }
        }
    }
}
