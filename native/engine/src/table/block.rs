//! A block: entries in order, found by binary search or by a hash of their key.
//!
//! ```text
//! block   := entry* restart{u32}* bucket{u8}* restarts{u32} buckets{u16}
//! entry   := shared{varint} unshared{varint} value_length{varint} tag{varint} key_rest value
//! tag     := (sequence − base) << 3 | kind        base: the table's, 0 in index blocks
//! ```
//!
//! An entry leaves out the bytes that its key shares with the one before; at a restart it shares
//! none. A bucket holds the number of the restart from which its keys are found, or that it has
//! none, or that it cannot say.

use std::cmp::Ordering;
use std::sync::Arc;

use super::hash;
use crate::coding::{common_prefix, put_varint, to_u32, to_usize, u32_at, varint_at};
use crate::key::{Sequence, Tag, compare};

/// A bucket without keys.
const NO_KEY: u8 = 255;
/// A bucket whose keys lie in several places.
const MANY: u8 = 254;
/// Restarts beyond this have no hash index.
const MOST_RESTARTS: usize = 253;
/// The counts at the end.
const TAIL_BYTES: usize = 6;

/// Checked bytes turned out not to be a block: our own error, or a crafted file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

/// A tag as it is stored, small where sequences are close to the base.
pub(crate) fn pack(tag: Tag, base: Sequence) -> u64 {
    (tag.sequence().saturating_sub(base)) << 3 | (tag.0 & 7)
}

#[inline]
fn unpack(packed: u64, base: Sequence) -> Tag {
    Tag(((packed >> 3).wrapping_add(base)) << 8 | (packed & 7))
}

/// Collects entries, which come in order.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// Hash of each key, and the restart it lies behind; empty without a hash index.
    hashes: Vec<(u32, u32)>,
    last_key: Vec<u8>,
    since_restart: usize,
    interval: usize,
    base: Sequence,
    hashed: bool,
}

impl BlockBuilder {
    pub(crate) fn new(interval: usize, base: Sequence, hashed: bool) -> Self {
        Self {
            bytes: Vec::new(),
            restarts: Vec::new(),
            hashes: Vec::new(),
            last_key: Vec::new(),
            since_restart: 0,
            interval: interval.max(1),
            base,
            hashed,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The size that `finish` would have, but for the hash index.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + TAIL_BYTES
    }

    pub(crate) fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        let mut shared = 0;
        if self.since_restart == 0 || self.since_restart >= self.interval {
            self.restarts.push(to_u32(self.bytes.len()));
            self.since_restart = 0;
        } else {
            shared = common_prefix(&self.last_key, key);
        }
        self.since_restart += 1;
        let rest = key.get(shared..).unwrap_or_default();
        put_varint(&mut self.bytes, shared as u64);
        put_varint(&mut self.bytes, rest.len() as u64);
        put_varint(&mut self.bytes, value.len() as u64);
        put_varint(&mut self.bytes, pack(tag, self.base));
        self.bytes.extend_from_slice(rest);
        self.bytes.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(rest);
        if self.hashed {
            let restart = to_u32(self.restarts.len() - 1);
            self.hashes.push((bucket_hash(hash(key)), restart));
        }
    }

    /// The block's bytes, which stay valid until the next `clear`.
    pub(crate) fn finish(&mut self) -> &[u8] {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        let buckets = self.buckets();
        self.bytes.extend_from_slice(&buckets);
        let restarts = to_u32(self.restarts.len());
        self.bytes.extend_from_slice(&restarts.to_le_bytes());
        let count = u16::try_from(buckets.len()).unwrap_or(0);
        self.bytes.extend_from_slice(&count.to_le_bytes());
        &self.bytes
    }

    fn buckets(&self) -> Vec<u8> {
        let count = self.hashes.len() * 4 / 3 + 1;
        if self.hashes.is_empty() || self.restarts.len() > MOST_RESTARTS || count > 0xffff {
            return Vec::new();
        }
        let mut buckets = vec![NO_KEY; count];
        for &(hash, restart) in &self.hashes {
            let restart = u8::try_from(restart).unwrap_or(MANY);
            if let Some(bucket) = buckets.get_mut(hash as usize % count) {
                *bucket = match *bucket {
                    NO_KEY => restart,
                    same if same == restart => restart,
                    _ => MANY,
                };
            }
        }
        buckets
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.hashes.clear();
        self.last_key.clear();
        self.since_restart = 0;
    }
}

/// The half of a key's hash that chooses its bucket; filters use the other one too.
#[inline]
fn bucket_hash(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// A block in memory, or the bytes of a filter.
#[derive(Debug)]
pub(crate) struct Block {
    bytes: Vec<u8>,
    entries_end: usize,
    restarts: usize,
    buckets: usize,
}

/// The numbers in front of an entry, and where it lies.
#[derive(Debug, Clone, Copy)]
struct Head {
    shared: usize,
    unshared: usize,
    value_length: usize,
    packed: u64,
    key_at: usize,
}

impl Head {
    fn value_at(&self) -> usize {
        self.key_at + self.unshared
    }

    fn next(&self) -> usize {
        self.value_at() + self.value_length
    }
}

/// What a point lookup found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) tag: Tag,
    pub(crate) value_at: usize,
    pub(crate) value_length: usize,
    /// Where the entry behind it begins.
    pub(crate) next: usize,
}

impl Block {
    pub(crate) fn parse(bytes: Vec<u8>) -> Result<Self, Malformed> {
        let tail = bytes.len().checked_sub(TAIL_BYTES).ok_or(Malformed)?;
        let restarts = u32_at(&bytes, tail).ok_or(Malformed)? as usize;
        let counted = bytes
            .get(tail + 4..)
            .and_then(|raw| raw.try_into().ok())
            .ok_or(Malformed)?;
        let buckets = usize::from(u16::from_le_bytes(counted));
        let index = restarts
            .checked_mul(4)
            .and_then(|size| size.checked_add(buckets));
        let entries_end = tail.checked_sub(index.ok_or(Malformed)?).ok_or(Malformed)?;
        Ok(Self {
            bytes,
            entries_end,
            restarts,
            buckets,
        })
    }

    /// Bytes that are no entries.
    pub(crate) fn raw(bytes: Vec<u8>) -> Self {
        Self {
            bytes,
            entries_end: 0,
            restarts: 0,
            buckets: 0,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn restart(&self, number: usize) -> Result<usize, Malformed> {
        let at = self.entries_end + 4 * number;
        let offset = u32_at(&self.bytes, at).ok_or(Malformed)? as usize;
        if number < self.restarts && offset < self.entries_end {
            Ok(offset)
        } else {
            Err(Malformed)
        }
    }

    #[inline]
    fn head(&self, at: usize) -> Result<Head, Malformed> {
        let (shared, at) = varint_at(&self.bytes, at).ok_or(Malformed)?;
        let (unshared, at) = varint_at(&self.bytes, at).ok_or(Malformed)?;
        let (value_length, at) = varint_at(&self.bytes, at).ok_or(Malformed)?;
        let (packed, key_at) = varint_at(&self.bytes, at).ok_or(Malformed)?;
        let end = (key_at as u64)
            .saturating_add(unshared)
            .saturating_add(value_length);
        if end > self.entries_end as u64 {
            return Err(Malformed);
        }
        Ok(Head {
            shared: to_usize(shared),
            unshared: to_usize(unshared),
            value_length: to_usize(value_length),
            packed,
            key_at,
        })
    }

    #[inline]
    fn key_rest(&self, head: &Head) -> Result<&[u8], Malformed> {
        self.bytes
            .get(head.key_at..head.value_at())
            .ok_or(Malformed)
    }

    /// The last restart whose entry is before the target, or the first.
    fn restart_before(&self, key: &[u8], tag: Tag, base: Sequence) -> Result<usize, Malformed> {
        let (mut low, mut high) = (0, self.restarts.max(1));
        while high - low > 1 {
            let middle = usize::midpoint(low, high);
            let head = self.head(self.restart(middle)?)?;
            let here = (self.key_rest(&head)?, unpack(head.packed, base));
            if compare(here, (key, tag)) == Ordering::Less {
                low = middle;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// Where to begin to look for a key; `None` if the hash index knows that it is not here.
    #[inline]
    fn lookup_start(
        &self,
        key: &[u8],
        hash: u64,
        tag: Tag,
        base: Sequence,
    ) -> Result<Option<usize>, Malformed> {
        if self.restarts == 0 {
            return Ok(None);
        }
        if self.buckets > 0 {
            let bucket = bucket_hash(hash) as usize % self.buckets;
            let at = self.entries_end + 4 * self.restarts + bucket;
            match *self.bytes.get(at).ok_or(Malformed)? {
                NO_KEY => return Ok(None),
                MANY => {}
                restart => return self.restart(usize::from(restart)).map(Some),
            }
        }
        self.restart(self.restart_before(key, tag, base)?).map(Some)
    }

    /// The first entry of `key` at or behind `tag` in this block.
    pub(crate) fn find(
        &self,
        key: &[u8],
        hash: u64,
        tag: Tag,
        base: Sequence,
    ) -> Result<Option<Entry>, Malformed> {
        let Some(mut at) = self.lookup_start(key, hash, tag, base)? else {
            return Ok(None);
        };
        // How many leading bytes of `key` the entry before has; its key is smaller, or the same
        // and newer than asked.
        let mut matched = 0;
        while at < self.entries_end {
            let head = self.head(at)?;
            if head.shared == 0 {
                // A restart shares nothing, whatever stands before it.
                matched = 0;
            }
            if head.shared < matched {
                return Ok(None);
            }
            if head.shared == matched {
                let rest = self.key_rest(&head)?;
                let wanted = key.get(matched..).ok_or(Malformed)?;
                let common = common_prefix(rest, wanted);
                if common == rest.len() && common == wanted.len() {
                    let found = unpack(head.packed, base);
                    if found <= tag {
                        return Ok(Some(entry_of(&head, found)));
                    }
                } else if rest.get(common) > wanted.get(common) {
                    return Ok(None);
                }
                matched += common;
            }
            at = head.next();
        }
        Ok(None)
    }

    /// The first entry at or behind `(key, tag)`, in a block of restarts only, such as an index.
    pub(crate) fn lower_bound(&self, key: &[u8], tag: Tag) -> Result<Option<Entry>, Malformed> {
        if self.restarts == 0 {
            return Ok(None);
        }
        let mut at = self.restart(self.restart_before(key, tag, 0)?)?;
        while at < self.entries_end {
            let head = self.head(at)?;
            let here = (self.key_rest(&head)?, unpack(head.packed, 0));
            if compare(here, (key, tag)) != Ordering::Less {
                return Ok(Some(entry_of(&head, here.1)));
            }
            at = head.next();
        }
        Ok(None)
    }

    /// The entry behind another one of the same key, if it is of that key too.
    pub(crate) fn next_version(
        &self,
        key: &[u8],
        entry: &Entry,
        base: Sequence,
    ) -> Result<NextVersion, Malformed> {
        if entry.next >= self.entries_end {
            return Ok(NextVersion::EndOfBlock);
        }
        let head = self.head(entry.next)?;
        let rest = self.key_rest(&head)?;
        let same = head.shared + head.unshared == key.len() && key.get(head.shared..) == Some(rest);
        Ok(if same {
            NextVersion::Entry(entry_of(&head, unpack(head.packed, base)))
        } else {
            NextVersion::OtherKey
        })
    }
}

/// What lies behind a version of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NextVersion {
    Entry(Entry),
    OtherKey,
    /// The next block may begin with another one.
    EndOfBlock,
}

fn entry_of(head: &Head, tag: Tag) -> Entry {
    Entry {
        tag,
        value_at: head.value_at(),
        value_length: head.value_length,
        next: head.next(),
    }
}

/// A place among the entries of a block.
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

    /// Goes to a block, and to no entry of it.
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
            .bytes
            .get(self.value_at..self.value_at + self.value_length)
            .unwrap_or_default()
    }

    /// Decodes the entry at `at`, whose predecessor is the current one unless it is a restart.
    #[inline]
    fn load(&mut self, at: usize) -> Result<(), Malformed> {
        let Some(block) = &self.block else {
            return Err(Malformed);
        };
        if at >= block.entries_end {
            self.at = usize::MAX;
            return Ok(());
        }
        let head = block.head(at)?;
        if head.shared > self.key.len() {
            return Err(Malformed);
        }
        self.key.truncate(head.shared);
        self.key.extend_from_slice(block.key_rest(&head)?);
        self.tag = unpack(head.packed, self.base);
        self.value_at = head.value_at();
        self.value_length = head.value_length;
        self.next_at = head.next();
        self.at = at;
        Ok(())
    }

    pub(crate) fn first(&mut self) -> Result<(), Malformed> {
        self.key.clear();
        self.load(0)
    }

    pub(crate) fn last(&mut self) -> Result<(), Malformed> {
        let restarts = self.block.as_ref().map_or(0, |block| block.restarts);
        self.scan_to_end(restarts)
    }

    /// To the last entry behind the restarts before `restarts`.
    fn scan_to_end(&mut self, restarts: usize) -> Result<(), Malformed> {
        let Some(block) = &self.block else {
            return Err(Malformed);
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

    /// From a restart to the last entry that begins before `end`.
    fn scan_before(&mut self, start: usize, end: usize) -> Result<(), Malformed> {
        self.key.clear();
        self.load(start)?;
        while self.is_valid() && self.next_at < end {
            self.load(self.next_at)?;
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<(), Malformed> {
        self.load(self.next_at)
    }

    pub(crate) fn previous(&mut self) -> Result<(), Malformed> {
        let Some(block) = &self.block else {
            return Err(Malformed);
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

    /// To the first entry at or behind `(key, tag)`.
    pub(crate) fn seek(&mut self, key: &[u8], tag: Tag) -> Result<(), Malformed> {
        let Some(block) = &self.block else {
            return Err(Malformed);
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
    use crate::key::Kind;

    fn build(count: u32, interval: usize) -> Arc<Block> {
        let mut builder = BlockBuilder::new(interval, 10, true);
        for number in 0..count {
            let key = format!("key{:05}", number / 3);
            let tag = Tag::new(u64::from(100 - number % 3), Kind::Put);
            builder.add(key.as_bytes(), tag, number.to_string().as_bytes());
        }
        Arc::new(Block::parse(builder.finish().to_vec()).unwrap())
    }

    fn value<'a>(block: &'a Block, entry: &Entry) -> &'a [u8] {
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
            if let Ok(cut) = Block::parse(block.bytes()[..length].to_vec()) {
                let mut cursor = BlockCursor::new(0);
                cursor.enter(Arc::new(cut));
                let _ = cursor.seek(b"key00003", Tag::NEWEST);
                let _ = cursor.last();
            }
        }
    }
}
