//! Monotonic time.
//!
//! The engine's time is the greater of the wall clock and the newest time that was ever logged.
//! Expiry uses this time: an expired entry stays expired whatever happens to the wall clock.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::key::Millis;

/// A source of time, replaceable in tests.
pub trait Clock: Debug + Send + Sync {
    /// Milliseconds since 1970.
    fn now(&self) -> Millis;
}

/// The operating system's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }
}

/// A clock that stands still until it is set.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn new(now: Millis) -> Self {
        Self(AtomicU64::new(now))
    }

    /// Sets the clock to `now`, which may be earlier.
    pub fn set(&self, now: Millis) {
        self.0.store(now, Ordering::Relaxed);
    }

    /// Advances the clock.
    pub fn advance(&self, by: Millis) {
        self.0.fetch_add(by, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        self.0.load(Ordering::Relaxed)
    }
}

/// The greater of a clock and the newest time seen.
#[derive(Debug)]
pub(crate) struct MonotonicTime {
    clock: Arc<dyn Clock>,
    newest: AtomicU64,
}

impl MonotonicTime {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            newest: AtomicU64::new(0),
        }
    }

    pub(crate) fn now(&self) -> Millis {
        let wall = self.clock.now();
        self.newest.fetch_max(wall, Ordering::Relaxed).max(wall)
    }

    /// Raises the clock to a time that was read from a log or a manifest.
    pub(crate) fn observe(&self, time: Millis) {
        self.newest.fetch_max(time, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_back_with_the_clock() {
        let clock = Arc::new(ManualClock::new(50));
        let time = MonotonicTime::new(Arc::clone(&clock) as Arc<dyn Clock>);
        assert_eq!(time.now(), 50);
        clock.set(20);
        assert_eq!(time.now(), 50);
        time.observe(90);
        assert_eq!(time.now(), 90);
    }
}
