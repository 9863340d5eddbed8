//! The configuration and limits of a filter node.

use crate::message::FencingToken;

/// The configuration and limits of a filter node.
#[derive(Debug, Clone)]
pub struct FilterNodeConfig {
    /// Its write partition.
    pub partition: u16,
    /// How many write partitions there are.
    pub partitions: u16,
    /// Its lease's token. A node with another token is a different node.
    pub token: FencingToken,
    /// How long after-images are kept for registrations, in microseconds.
    pub retained_us: u64,
    /// The maximum number of bytes of retained after-images.
    pub retained_bytes: usize,
    /// How long versions are remembered after the last write, in microseconds. This is longer than
    /// any publication can be delayed.
    pub remembered_us: u64,
    /// The maximum bytes of rows in one `Rebase`.
    pub rebase_bytes: usize,
    /// How many queries are reported at once at the end of a rebuild.
    pub reported_at_once: usize,
    /// The limits of the index of queries.
    pub limits: rillbase_matching::MatcherLimits,
}

impl FilterNodeConfig {
    /// A configuration with the default limits.
    pub fn new(partition: u16, partitions: u16, token: FencingToken) -> Self {
        Self {
            partition,
            partitions,
            token,
            retained_us: 10_000_000,
            retained_bytes: 256 << 20,
            remembered_us: 60_000_000,
            rebase_bytes: 1 << 20,
            reported_at_once: 1_000,
            limits: rillbase_matching::MatcherLimits::default(),
        }
    }
}
