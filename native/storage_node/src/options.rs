//! The options of a node.

use std::path::PathBuf;

use rillbase_engine::Durability;

use crate::resp::RequestLimits;

/// The options of a node.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// The directory of its data.
    pub directory: PathBuf,
    /// The admin's token.
    pub token: String,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// The budget of the block cache.
    pub cache_bytes: usize,
    /// The budget of memtables.
    pub memtables_bytes: usize,
    /// Disk space that is reserved so that the node can start on a full disk.
    pub reserve_bytes: u64,
    /// The size up to which the log is retained for the reader of changes of native collections.
    pub retained_log_bytes: u64,
    /// The maximum number of connections.
    pub clients: usize,
    /// The maximum number of connections from one address, except from this machine.
    pub clients_per_address: usize,
    /// The maximum bytes of requests and replies in memory, across all connections.
    pub in_flight_bytes: usize,
    /// Threads that serve connections.
    pub threads: usize,
    /// The limits of requests.
    pub limits: RequestLimits,
    /// The maximum bytes kept for a connection that does not read.
    pub output_bytes: usize,
}

/// The limits of requests before authentication: just enough to authenticate.
pub(crate) const STRANGERS: RequestLimits = RequestLimits {
    words: 16,
    word_bytes: 4 << 10,
    request_bytes: 8 << 10,
};

impl NodeOptions {
    /// The default options with a directory and the admin's token.
    pub fn new(directory: impl Into<PathBuf>, token: impl Into<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            directory: directory.into(),
            token: token.into(),
            durability: Durability::Sync,
            cache_bytes: 64 << 20,
            memtables_bytes: 64 << 20,
            reserve_bytes: 0,
            retained_log_bytes: 1 << 30,
            clients: 10_000,
            clients_per_address: 4_096,
            in_flight_bytes: 512 << 20,
            threads: cores.clamp(1, 8),
            limits: RequestLimits {
                words: 4096,
                // A document of the largest size, and what comes with it.
                word_bytes: 17 << 20,
                request_bytes: 40 << 20,
            },
            output_bytes: 32 << 20,
        }
    }
}
