//! Tables: immutable files of ordered entries.
//!
//! ```text
//! table := (data | filter | index)* range_deletes properties top footer
//! ```
//!
//! A partition is a sequence of data blocks with one filter and one index block over them; the top
//! block lists the partitions. Point lookups read one filter, one index block and one data block,
//! all through the shared cache. The byte format is described in `docs/formats/table.md`.

pub(crate) mod block;
mod block_builder;
mod block_cursor;
pub(crate) mod builder;
mod codec;
pub(crate) mod cursor;
mod fetch;
pub(crate) mod filter;
pub(crate) mod footer;
pub(crate) mod frame;
pub(crate) mod pins;
pub(crate) mod properties;
pub(crate) mod reader;
mod verify;

/// The part of a key that filters use: all but its tail, if it is that long.
#[inline]
pub(crate) fn head_of(key: &[u8], tail_bytes: usize) -> &[u8] {
    let head = key.len().checked_sub(tail_bytes);
    head.and_then(|length| key.get(..length)).unwrap_or(key)
}

/// The hash of a key, for filters and for the hash index of blocks.
#[inline]
pub(crate) fn hash(key: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(key)
}
