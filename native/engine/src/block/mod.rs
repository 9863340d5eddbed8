//! A block: ordered entries, found by binary search or by a hash of their key.
//!
//! ```text
//! block   := entry* restart{u32}* bucket{u8}* restarts{u32} buckets{u16}
//! entry   := (shared << 1){varint} unshared{varint} value_length{varint} tag{varint} key_rest value
//!          | (shared << 1 | 1){varint} (sequence − base){varint} key_rest value
//! tag     := (sequence − base) << 3 | kind        base: the table's, 0 in index blocks
//! ```
//!
//! An entry omits the bytes that its key shares with the previous one; at a restart it shares none.
//! An entry of the second form has the shape of the previous one: its key and value have the same
//! lengths, and its kind is the same. Tables before version 3 have only the first form, whose first
//! number is `shared`; if all entries are restarts, as in an index, that is the same. A bucket
//! contains the number of the restart from which its keys are found, or that it has none, or that
//! it cannot be used.

pub(crate) mod builder;
pub(crate) mod cursor;

use std::cmp::Ordering;

use rillbase_binary_format::{u32_at, varint_at};

use crate::coding::{common_prefix, to_usize};
use crate::key::{Sequence, Tag, compare};

/// A bucket without keys.
const NO_KEY: u8 = 255;
/// A bucket whose keys are in several places.
const MANY: u8 = 254;
/// Blocks with more restarts have no hash index.
const MAX_RESTARTS: usize = 253;
/// Nor do those with fewer: a binary search over so few takes no longer, and hashes cannot be
/// compressed.
const MIN_RESTARTS: usize = 5;
/// The counts at the end.
const TAIL_BYTES: usize = 6;

/// Bytes with a valid checksum are not a block: our own error, or a crafted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MalformedBlock;

/// A tag as it is stored, small if sequences are close to the base.
fn pack(tag: Tag, base: Sequence) -> u64 {
    offset_of(tag, base) << KIND_BITS | (tag.0 & KIND_MASK)
}

fn offset_of(tag: Tag, base: Sequence) -> u64 {
    tag.sequence().saturating_sub(base)
}

const KIND_BITS: u32 = 3;
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;

/// What an entry may have in common with the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct EntryShape {
    key_length: usize,
    value_length: usize,
    kind: u64,
}

impl EntryShape {
    /// Before the first entry.
    const NONE: Self = Self {
        key_length: 0,
        value_length: 0,
        kind: 0,
    };

    fn new(key_length: usize, value_length: usize, tag: Tag) -> Self {
        Self {
            key_length,
            value_length,
            kind: tag.0 & KIND_MASK,
        }
    }
}

/// The half of a key's hash that selects its bucket; filters also use the other half.
#[inline]
fn bucket_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A block in memory, or the bytes of a filter.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    /// Whether entries may have the shape of the previous one.
    has_shapes: bool,
    entries_end: usize,
    restarts: usize,
    buckets: usize,
}

/// The numbers before an entry, and its location.
#[derive(Debug, Clone, Copy)]
struct EntryHeader {
    shared: usize,
    unshared: usize,
    value_length: usize,
    tag: Tag,
    key_at: usize,
}

impl EntryHeader {
    #[inline]
    fn shape(&self) -> EntryShape {
        EntryShape::new(self.shared + self.unshared, self.value_length, self.tag)
    }

    fn value_at(&self) -> usize {
        self.key_at + self.unshared
    }

    fn next(&self) -> usize {
        self.value_at() + self.value_length
    }
}

/// The result of a point lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockEntry {
    pub(crate) tag: Tag,
    pub(crate) value_at: usize,
    pub(crate) value_length: usize,
    /// Where the next entry starts.
    pub(crate) next: usize,
}

impl Block {
    /// A block of a table's entries, or of restarts only.
    pub(crate) fn parse(bytes: Vec<u8>, has_shapes: bool) -> Result<Self, MalformedBlock> {
        let tail = bytes.len().checked_sub(TAIL_BYTES).ok_or(MalformedBlock)?;
        let restarts = u32_at(&bytes, tail).ok_or(MalformedBlock)? as usize;
        let counted = bytes
            .get(tail + 4..)
            .and_then(|raw| raw.try_into().ok())
            .ok_or(MalformedBlock)?;
        let buckets = usize::from(u16::from_le_bytes(counted));
        let index = restarts
            .checked_mul(4)
            .and_then(|size| size.checked_add(buckets));
        let entries_end = tail
            .checked_sub(index.ok_or(MalformedBlock)?)
            .ok_or(MalformedBlock)?;
        Ok(Self {
            bytes,
            has_shapes,
            entries_end,
            restarts,
            buckets,
        })
    }

    /// Bytes that are not entries.
    pub(crate) fn raw(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            has_shapes: false,
            entries_end: 0,
            restarts: 0,
            buckets: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn restart(&self, number: usize) -> Result<usize, MalformedBlock> {
        let at = self.entries_end + 4 * number;
        let offset = u32_at(&self.bytes, at).ok_or(MalformedBlock)? as usize;
        if number < self.restarts && offset < self.entries_end {
            Ok(offset)
        } else {
            Err(MalformedBlock)
        }
    }

    /// The numbers of the entry at `at`, which follows one with a shape.
    #[inline]
    fn head(
        &self,
        at: usize,
        before: EntryShape,
        base: Sequence,
    ) -> Result<EntryHeader, MalformedBlock> {
        let number = |at| varint_at(&self.bytes, at).ok_or(MalformedBlock);
        let (first, at) = number(at)?;
        let (shared, is_alike) = if self.has_shapes {
            (to_usize(first >> 1), first & 1 == 1)
        } else {
            (to_usize(first), false)
        };
        let (unshared, value_length, offset, kind, key_at) = if is_alike {
            let (offset, key_at) = number(at)?;
            let unshared = before
                .key_length
                .checked_sub(shared)
                .ok_or(MalformedBlock)?;
            (unshared, before.value_length, offset, before.kind, key_at)
        } else {
            let (unshared, at) = number(at)?;
            let (value_length, at) = number(at)?;
            let (packed, key_at) = number(at)?;
            let (offset, kind) = (packed >> KIND_BITS, packed & KIND_MASK);
            (
                to_usize(unshared),
                to_usize(value_length),
                offset,
                kind,
                key_at,
            )
        };
        let end = key_at.saturating_add(unshared).saturating_add(value_length);
        if end > self.entries_end {
            return Err(MalformedBlock);
        }
        Ok(EntryHeader {
            shared,
            unshared,
            value_length,
            tag: Tag(offset.wrapping_add(base) << 8 | kind),
            key_at,
        })
    }

    /// The numbers of a restart.
    #[inline]
    fn restart_head(&self, number: usize, base: Sequence) -> Result<EntryHeader, MalformedBlock> {
        self.head(self.restart(number)?, EntryShape::NONE, base)
    }

    #[inline]
    fn key_rest(&self, head: &EntryHeader) -> Result<&[u8], MalformedBlock> {
        self.bytes
            .get(head.key_at..head.value_at())
            .ok_or(MalformedBlock)
    }

    /// The last restart whose entry is before the target, or the first.
    fn restart_before(
        &self,
        key: &[u8],
        tag: Tag,
        base: Sequence,
    ) -> Result<usize, MalformedBlock> {
        let (mut low, mut high) = (0, self.restarts.max(1));
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let head = self.restart_head(middle, base)?;
            let here = (self.key_rest(&head)?, head.tag);
            if compare(here, (key, tag)) == Ordering::Less {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Where to start looking for a key; `None` if the hash index excludes it.
    #[inline]
    fn lookup_start(
        &self,
        key: &[u8],
        hash: u64,
        tag: Tag,
        base: Sequence,
    ) -> Result<Option<usize>, MalformedBlock> {
        if self.restarts == 0 {
            return Ok(None);
        }
        if self.buckets > 0 {
            let bucket = bucket_hash(hash) as usize % self.buckets;
            let at = self.entries_end + 4 * self.restarts + bucket;
            match *self.bytes.get(at).ok_or(MalformedBlock)? {
                NO_KEY => return Ok(None),
                MANY => {}
                restart => return self.restart(usize::from(restart)).map(Some),
            }
        }
        self.restart(self.restart_before(key, tag, base)?).map(Some)
    }

    /// The first entry of `key` at or after `tag` in this block.
    pub(crate) fn find(
        &self,
        key: &[u8],
        hash: u64,
        tag: Tag,
        base: Sequence,
    ) -> Result<Option<BlockEntry>, MalformedBlock> {
        let Some(mut at) = self.lookup_start(key, hash, tag, base)? else {
            return Ok(None);
        };
        // How many leading bytes of `key` the previous entry has; its key is smaller, or equal and
        // newer than requested.
        let mut matched = 0;
        let mut shape = EntryShape::NONE;
        while at < self.entries_end {
            let head = self.head(at, shape, base)?;
            shape = head.shape();
            if head.shared == 0 {
                // A restart shares nothing, whatever precedes it.
                matched = 0;
            }
            if head.shared < matched {
                return Ok(None);
            }
            if head.shared == matched {
                let rest = self.key_rest(&head)?;
                let key_rest = key.get(matched..).ok_or(MalformedBlock)?;
                let common = common_prefix(rest, key_rest);
                if common == rest.len() && common == key_rest.len() {
                    if head.tag <= tag {
                        return Ok(Some(entry_of(&head)));
                    }
                } else if rest.get(common) > key_rest.get(common) {
                    return Ok(None);
                }
                matched += common;
            }
            at = head.next();
        }
        Ok(None)
    }

    /// The first entry at or after `(key, tag)`, in a block of restarts only, such as an index.
    pub(crate) fn lower_bound(
        &self,
        key: &[u8],
        tag: Tag,
    ) -> Result<Option<BlockEntry>, MalformedBlock> {
        if self.restarts == 0 {
            return Ok(None);
        }
        let mut at = self.restart(self.restart_before(key, tag, 0)?)?;
        while at < self.entries_end {
            let head = self.head(at, EntryShape::NONE, 0)?;
            let here = (self.key_rest(&head)?, head.tag);
            if compare(here, (key, tag)) != Ordering::Less {
                return Ok(Some(entry_of(&head)));
            }
            at = head.next();
        }
        Ok(None)
    }

    /// The entry after another one of the same key, if it belongs to that key too.
    pub(crate) fn next_version(
        &self,
        key: &[u8],
        entry: &BlockEntry,
        base: Sequence,
    ) -> Result<NextVersion, MalformedBlock> {
        if entry.next >= self.entries_end {
            return Ok(NextVersion::EndOfBlock);
        }
        let shape = EntryShape::new(key.len(), entry.value_length, entry.tag);
        let head = self.head(entry.next, shape, base)?;
        let rest = self.key_rest(&head)?;
        let same = head.shared + head.unshared == key.len() && key.get(head.shared..) == Some(rest);
        Ok(if same {
            NextVersion::Entry(entry_of(&head))
        } else {
            NextVersion::OtherKey
        })
    }
}

/// What follows a version of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextVersion {
    Entry(BlockEntry),
    OtherKey,
    /// The next block may start with another one.
    EndOfBlock,
}

fn entry_of(head: &EntryHeader) -> BlockEntry {
    BlockEntry {
        tag: head.tag,
        value_at: head.value_at(),
        value_length: head.value_length,
        next: head.next(),
    }
}
