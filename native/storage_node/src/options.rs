//! How a node behaves.

use std::path::PathBuf;

use rillbase_engine::Durability;

use crate::resp::RequestLimits;

/// How a node behaves.
#[derive(Debug, Clone)]
pub struct NodeOptions {
    /// Where its data is.
    pub directory: PathBuf,
    /// Lets the admin in.
    pub token: String,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// The budget of the block cache.
    pub cache_bytes: usize,
    /// The budget of what is in memory before it is in tables.
    pub memtables_bytes: usize,
    /// Room that is kept so that the node can be started on a full disk.
    pub reserve_bytes: u64,
    /// More connections are refused.
    pub clients: usize,
    /// More connections from one address are refused, unless it is that of this machine.
    pub clients_per_address: usize,
    /// Bytes of requests and replies in memory, of all connections together.
    pub in_flight_bytes: usize,
    /// Threads that serve connections.
    pub threads: usize,
    /// What requests may be like.
    pub limits: RequestLimits,
    /// More bytes than this are not kept for a connection that does not read.
    pub output_bytes: usize,
}

/// What strangers' requests may be like: just enough to say who they are.
pub(crate) const STRANGERS: RequestLimits = RequestLimits {
    words: 16,
    word_bytes: 4 << 10,
    request_bytes: 8 << 10,
};

impl NodeOptions {
    /// A node in a directory whose admin has a token.
    pub fn new(directory: impl Into<PathBuf>, token: impl Into<String>) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            directory: directory.into(),
            token: token.into(),
            durability: Durability::Sync,
            cache_bytes: 64 << 20,
            memtables_bytes: 64 << 20,
            reserve_bytes: 0,
            clients: 10_000,
            clients_per_address: 4_096,
            in_flight_bytes: 512 << 20,
            threads: cores.clamp(1, 8),
            limits: RequestLimits {
                words: 4096,
                word_bytes: 16 << 20,
                request_bytes: 32 << 20,
            },
            output_bytes: 32 << 20,
        }
    }
}
