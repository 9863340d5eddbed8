//! How long a query waits for its nodes to watch it, once it is registered.
//!
//! A registration may be lost where nobody counts: an event layer that falls back to a moment before
//! it, behind a hub that has heard of no life before this one. So when all nodes are there and the
//! query still is not ready, it is registered again. Nodes that have too much to do are not helped by
//! more, so each time is twice as long as the one before.

const FIRST_US: u64 = 10_000_000;
const DOUBLINGS: u32 = 5;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Patience {
    since_us: Option<u64>,
    times: u32,
}

impl Patience {
    /// Whether it is over. `due`: the query is registered, and all nodes that it waits for are there.
    pub(super) fn is_over(&mut self, ready: bool, due: bool, now_us: u64) -> bool {
        if ready {
            *self = Self::default();
            return false;
        }
        if !due {
            self.since_us = None;
            return false;
        }
        let since_us = *self.since_us.get_or_insert(now_us);
        let over = now_us.saturating_sub(since_us) >= FIRST_US << self.times.min(DOUBLINGS);
        if over {
            self.since_us = None;
            self.times += 1;
        }
        over
    }
}
