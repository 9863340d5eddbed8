//! Builds a block.

use super::{
    EntryShape, MANY, MAX_RESTARTS, MIN_RESTARTS, NO_KEY, TAIL_BYTES, bucket_hash, offset_of, pack,
};
use crate::coding::{common_prefix, to_u32};
use crate::key::{Sequence, Tag, hash};
use rillbase_binary_format::ByteWriter as _;

/// Collects entries in order.
#[derive(Debug)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    /// The hash of each key, and the restart before it; empty without a hash index.
    hashes: Vec<(u32, u32)>,
    last_key: Vec<u8>,
    last_shape: EntryShape,
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
            last_shape: EntryShape::NONE,
            since_restart: 0,
            interval: interval.max(1),
            base,
            hashed,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The size of the finished block, except for the hash index.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + TAIL_BYTES
    }

    pub(crate) fn add(&mut self, key: &[u8], tag: Tag, value: &[u8]) {
        let shape = EntryShape::new(key.len(), value.len(), tag);
        let (mut shared, mut is_alike) = (0, false);
        if self.since_restart == 0 || self.since_restart >= self.interval {
            self.restarts.push(to_u32(self.bytes.len()));
            self.since_restart = 0;
        } else {
            shared = common_prefix(&self.last_key, key);
            is_alike = shape == self.last_shape;
        }
        self.since_restart += 1;
        let rest = key.get(shared..).unwrap_or_default();
        self.bytes
            .put_varint((shared as u64) << 1 | u64::from(is_alike));
        if is_alike {
            self.bytes.put_varint(offset_of(tag, self.base));
        } else {
            self.bytes.put_varint(rest.len() as u64);
            self.bytes.put_varint(value.len() as u64);
            self.bytes.put_varint(pack(tag, self.base));
        }
        self.last_shape = shape;
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
        let worth_it = (MIN_RESTARTS..=MAX_RESTARTS).contains(&self.restarts.len());
        if self.hashes.is_empty() || !worth_it || count > 0xffff {
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
