//! What a filter node is, and how much it keeps.

use crate::message::FencingToken;

/// What a filter node is, and how much it keeps.
#[derive(Debug, Clone)]
pub struct FilterNodeConfig {
    /// Its write partition.
    pub partition: u16,
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. Another token is another node.
    pub token: FencingToken,
    /// For how long after-images are kept for registrations, in microseconds.
    pub retained_us: u64,
    /// How many bytes of them.
    pub retained_bytes: usize,
    /// For how long versions are remembered after the last write, in microseconds. Longer than
    /// anybody can publish late.
    pub remembered_us: u64,
    /// How many bytes of rows one `Rebase` carries.
    pub rebase_bytes: usize,
    /// What the index of queries may hold.
    pub limits: rillbase_matching::MatcherLimits,
}

impl FilterNodeConfig {
    /// The usual bounds.
    pub fn new(partition: u16, partitions: u16, token: FencingToken) -> Self {
        Self {
            partition,
            partitions,
            token,
            retained_us: 10_000_000,
            retained_bytes: 256 << 20,
            remembered_us: 60_000_000,
            rebase_bytes: 1 << 20,
            limits: rillbase_matching::MatcherLimits::default(),
        }
    }
}
