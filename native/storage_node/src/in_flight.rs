//! The bytes of requests and replies in memory across all connections.
//!
//! A connection that uses almost nothing may always be read: small requests are served however much
//! other connections send, and what occupies the memory ends by its own deadlines.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The bytes that each connection may use beyond the budget.
pub(crate) const FREE_BYTES: usize = 16 << 10;

/// A budget that all connections share.
#[derive(Debug)]
pub(crate) struct InFlight {
    bytes: AtomicUsize,
    limit: usize,
}

impl InFlight {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicUsize::new(0),
            limit,
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether a connection that uses `own` bytes may use more.
    pub(crate) fn has_room(&self, own: usize) -> bool {
        own < FREE_BYTES || self.bytes() < self.limit
    }
}

/// One connection's share, which is released when it is dropped.
#[derive(Debug)]
pub(crate) struct InFlightShare {
    whole: Arc<InFlight>,
    bytes: usize,
}

impl InFlightShare {
    pub(crate) fn new(whole: &Arc<InFlight>) -> Self {
        Self {
            whole: Arc::clone(whole),
            bytes: 0,
        }
    }

    pub(crate) fn set(&mut self, bytes: usize) {
        let before = std::mem::replace(&mut self.bytes, bytes);
        if bytes >= before {
            self.whole
                .bytes
                .fetch_add(bytes - before, Ordering::Relaxed);
        } else {
            self.whole
                .bytes
                .fetch_sub(before - bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for InFlightShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_counted_and_given_back() {
        let whole = InFlight::new(100_000);
        let (mut one, mut other) = (InFlightShare::new(&whole), InFlightShare::new(&whole));
        one.set(90_000);
        other.set(20_000);
        assert_eq!(whole.bytes(), 110_000);
        assert!(!whole.has_room(FREE_BYTES));
        assert!(whole.has_room(FREE_BYTES - 1), "who has little is served");
        one.set(10);
        drop(other);
        assert_eq!(whole.bytes(), 10);
        assert!(whole.has_room(FREE_BYTES));
    }
}
