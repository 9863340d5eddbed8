//! The configuration and limits of a sort node.

use crate::message::FencingToken;

use super::sides::SharedSides;

/// The configuration and limits of a sort node.
#[derive(Debug, Clone)]
pub struct SortNodeConfig {
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. A node with another token is a different node.
    pub token: FencingToken,
    /// How long versions of removed documents are remembered, in microseconds.
    pub remembered_us: u64,
    /// How long reports about unknown queries are kept, because their registration may follow.
    pub orphans_us: u64,
    /// How many steps may wait for one query, and for all unknown ones.
    pub max_waiting: usize,
    /// How many rows a query without limit may have.
    pub max_rows: usize,
    /// The maximum number of rows beyond a window.
    pub max_slack: u32,
    /// After how long a renewal is requested again, in microseconds.
    pub renew_again_us: u64,
    /// The maximum bytes of rows in one `Rebase`.
    pub rebase_bytes: usize,
    /// How many queries are reported at once at the end of a rebuild.
    pub reported_at_once: usize,
    /// The limits of the index of queries during a rebuild.
    pub limits: rillbase_matching::MatcherLimits,
}

impl SortNodeConfig {
    /// A configuration with the default limits.
    pub fn new(partitions: u16, token: FencingToken) -> Self {
        Self {
            partitions,
            token,
            remembered_us: 60_000_000,
            orphans_us: 10_000_000,
            max_waiting: 10_000,
            max_rows: 100_000,
            max_slack: 1_000,
            renew_again_us: 5_000_000,
            rebase_bytes: 1 << 20,
            reported_at_once: 1_000,
            limits: rillbase_matching::MatcherLimits::default(),
        }
    }

    pub(super) fn sides(&self) -> SharedSides {
        SharedSides::new(self.max_waiting, self.orphans_us, self.remembered_us)
    }
}
