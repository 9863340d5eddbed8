//! Replaces the `sync.rs` of the list and the filter: with atomics whose every order loom explores,
//! and with sizes that are small enough for that.

use loom::cell::UnsafeCell;
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Few, so that all orders can be explored, but more than one.
pub(crate) const LEVELS: usize = 3;
/// The first chunk has 16 units, room for one or two nodes, so that chunks are allocated while
/// others are in use.
pub(crate) const FIRST_BITS: u32 = 4;

/// Stands for the bytes of a node: loom fails if a read of them is not ordered after the write.
#[derive(Debug)]
pub(crate) struct Witness(UnsafeCell<()>);

impl Witness {
    pub(crate) fn written() -> Self {
        let witness = Self(UnsafeCell::new(()));
        witness.0.with_mut(|_| ());
        witness
    }

    pub(crate) fn read(of: &Self) {
        of.0.with(|_| ());
    }
}

/// A cell that is filled once. Its flag is an atomic of loom and orders memory as the standard
/// library's does: a thread that sees the flag also sees the value. The value itself may be in a
/// standard cell, because loom runs one thread at a time.
#[derive(Debug)]
pub(crate) struct OnceLock<T> {
    full: AtomicU32,
    value: std::sync::OnceLock<T>,
}

impl<T> OnceLock<T> {
    pub(crate) fn new() -> Self {
        Self {
            full: AtomicU32::new(0),
            value: std::sync::OnceLock::new(),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        if self.full.load(Ordering::Acquire) == 0 {
            return None;
        }
        self.value.get()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        self.full.store(1, Ordering::Release);
        Ok(())
    }

    /// One thread fills the cell, others wait until it is full.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        let mut fills = false;
        let value = self.value.get_or_init(|| {
            fills = true;
            make()
        });
        if fills {
            self.full.store(1, Ordering::Release);
        }
        while self.full.load(Ordering::Acquire) == 0 {
            loom::thread::yield_now();
        }
        value
    }
}
