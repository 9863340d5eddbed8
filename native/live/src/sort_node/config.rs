//! What a sort node is, and how much it keeps.

use crate::message::FencingToken;

use super::sides::SharedSides;

/// What a sort node is, and how much it keeps.
#[derive(Debug, Clone)]
pub struct SortNodeConfig {
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. Another token is another node.
    pub token: FencingToken,
    /// For how long versions of documents that left are remembered, in microseconds.
    pub remembered_us: u64,
    /// For how long what is told of unknown queries is kept: their registration may be behind.
    pub orphans_us: u64,
    /// How many steps may wait for one query, and for all unknown ones.
    pub max_waiting: usize,
    /// How many rows a query without limit may have.
    pub max_rows: usize,
    /// The most rows beyond a window.
    pub max_slack: u32,
    /// After how long a renewal is asked for again, in microseconds.
    pub renew_again_us: u64,
    /// How many bytes of rows one `Rebase` carries.
    pub rebase_bytes: usize,
    /// What the index of queries may hold during a rebuild.
    pub limits: rillbase_matching::MatcherLimits,
}

impl SortNodeConfig {
    /// The usual bounds.
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
            limits: rillbase_matching::MatcherLimits::default(),
        }
    }

    pub(super) fn sides(&self) -> SharedSides {
        SharedSides::new(self.max_waiting, self.orphans_us, self.remembered_us)
    }
}
