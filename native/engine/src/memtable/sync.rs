//! The primitives that threads share in a memtable's filter, in one module so that `native/loom` can
//! replace them with those that explore every interleaving.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
