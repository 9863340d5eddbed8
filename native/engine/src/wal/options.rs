//! The options and results of the log.

use std::ops::Range;

use super::recover::TornTail;

/// Sizes of the log's files.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// The size of a segment in bytes; one larger record may exceed it.
    pub segment_bytes: u64,
    /// How many bytes of a new segment are filled with zeros at once.
    pub preallocate_bytes: u64,
    /// How many files are kept for new segments.
    pub spare_segments: usize,
    /// The size of a block file in bytes.
    pub block_file_bytes: u64,
}

impl Default for WalOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            preallocate_bytes: 1 << 20,
            spare_segments: 4,
            block_file_bytes: 64 << 20,
        }
    }
}

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a power loss.
    #[default]
    Sync,
    /// It survives the end of the process; a power loss may lose it, and everything after it.
    Buffered,
}

/// The result of opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the log had been closed cleanly.
    pub clean: bool,
    /// The unsynced end that was truncated, if any.
    pub cut: Option<TornTail>,
}

/// Records that were handed to the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedRecords {
    /// Their indexes.
    pub indexes: Range<u64>,
    /// The position after them.
    pub end: u64,
    /// How often the log had been rolled back before they were added: positions are reused.
    pub(super) epoch: usize,
}
