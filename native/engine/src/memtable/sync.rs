//! What threads share in a memtable's filter, named in one place so that `native/loom` can put in its
//! place what tries every order of their steps.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};
