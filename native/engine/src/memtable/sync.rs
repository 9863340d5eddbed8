//! What threads share in a memtable, named in one place so that `native/loom` can put in its place
//! what tries every order of their steps.

pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Levels of the skip list: enough for 4^12 entries at their best.
pub(crate) const LEVELS: usize = 12;
/// Bits of the size of the first chunk of slots.
pub(crate) const FIRST_BITS: u32 = 10;
