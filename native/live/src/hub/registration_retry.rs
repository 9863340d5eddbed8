//! How long a query waits for its nodes once it is registered.
//!
//! A registration may be lost without a gap in any count: if an event layer returns to a state
//! before it, and the hub has not heard of a previous incarnation. So when all nodes are present
//! and the query still is not ready, it is registered again. More registrations do not help
//! overloaded nodes, so the wait doubles each time.

const FIRST_US: u64 = 10_000_000;
const DOUBLINGS: u32 = 5;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct RegistrationRetry {
    since_us: Option<u64>,
    times: u32,
}

impl RegistrationRetry {
    /// Whether the wait is over. `due`: the query is registered, and all nodes that it waits for
    /// are present.
    pub(super) fn is_due(&mut self, ready: bool, due: bool, now_us: u64) -> bool {
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
