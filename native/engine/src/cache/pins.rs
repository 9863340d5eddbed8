//! Index blocks and filters that stay with their table, outside the cache.
//!
//! Every lookup needs them. While the budget lasts, a table keeps those that it has read; closing
//! it returns their bytes. What no longer fits uses the cache, as data blocks do.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The budget of bytes that tables may keep altogether.
#[derive(Debug)]
pub(crate) struct PinBudget {
    limit: usize,
    used: AtomicUsize,
}

impl PinBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            used: AtomicUsize::new(0),
        }
    }

    /// Takes bytes, if enough are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = used.saturating_add(bytes) <= self.limit;
        if !fits {
            self.release(bytes);
        }
        fits
    }

    pub(crate) fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_taken_than_there_is() {
        let budget = PinBudget::new(100);
        assert!(budget.take(60) && !budget.take(41) && budget.take(40));
        budget.release(60);
        assert_eq!(budget.used(), 40);
    }
}
