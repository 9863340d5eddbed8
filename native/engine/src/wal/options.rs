//! What the log is told and what it answers.

use std::ops::Range;

use super::recover::TornTail;

/// Sizes of the log's files.
#[derive(Debug, Clone)]
pub struct WalOptions {
    /// A segment is full at this size in bytes; one larger record may exceed it.
    pub segment_bytes: u64,
    /// How far a new segment is filled with zeros at once, in bytes.
    pub preallocate_bytes: u64,
    /// How many files are kept to be new segments.
    pub spare_segments: usize,
    /// A block file is full at this size in bytes.
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
    /// It survives a loss of power.
    #[default]
    Sync,
    /// It survives the end of the process; a loss of power may take it, and all that came after.
    Buffered,
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the log had been closed.
    pub clean: bool,
    /// The unsynced end that was cut, if there was one.
    pub cut: Option<TornTail>,
}

/// Records that were handed to the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AppendedRecords {
    /// Their indexes.
    pub indexes: Range<u64>,
    /// The position behind them.
    pub end: u64,
    /// How often the log had been rolled back before they were added: positions are used again.
    pub(super) epoch: usize,
}
