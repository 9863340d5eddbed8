//! What threads share in a list, named in one place so that `native/loom` can put in its place what
//! tries every order of their steps.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Levels of the skip list: enough for 4^12 entries at their best.
pub(crate) const LEVELS: usize = 12;
/// Bits of the number of units in an arena's first chunk.
pub(crate) const FIRST_BITS: u32 = 10;

/// Represents the bytes of a node that are written once, before others may read them. Here it is
/// empty; loom's counterpart fails if a read is not ordered after the write.
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
