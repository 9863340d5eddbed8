//! The synchronization primitives of a list, in one module that `native/loom` replaces to explore
//! every interleaving.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Levels of the skip list: enough for fast searches among 4^12 entries.
pub(crate) const LEVELS: usize = 12;
/// Bits of the number of units in an arena's first chunk.
pub(crate) const FIRST_BITS: u32 = 10;

/// Stands for the bytes of a node, which are written once, before other threads may read them. Here
/// it is empty; in `native/loom` it fails if a read is not ordered after the write.
#[derive(Debug)]
pub(crate) struct Witness;

impl Witness {
    /// The bytes are written.
    pub(crate) fn written() -> Self {
        Self
    }

    /// The bytes are read.
    #[inline]
    pub(crate) fn read(_of: &Self) {}
}
