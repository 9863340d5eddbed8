//! Verifying a log that is not open.

use std::path::Path;

use super::blocks;
use super::recover::{TornTail, recover};
use crate::error::Result;
use crate::vfs::Vfs;

/// The contents of a verified log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReport {
    /// Segments in use.
    pub segments: usize,
    /// Records that can be read.
    pub records: u64,
    /// Blocks that they refer to.
    pub blocks: usize,
    /// Whether it was closed cleanly.
    pub clean: bool,
    /// The end that opening would truncate.
    pub cut: Option<TornTail>,
}

/// Verifies every record and every block that one refers to, without changing anything.
pub fn verify(vfs: &dyn Vfs, dir: &Path) -> Result<LogReport> {
    let recovered = recover(vfs, dir)?;
    let mut checked = 0;
    for file in recovered.block_use.keys() {
        blocks::check_header(vfs, dir, *file)?;
    }
    for record in &recovered.referring {
        for block in &record.blocks {
            blocks::read(vfs, dir, block)?;
            checked += 1;
        }
    }
    Ok(LogReport {
        segments: recovered.chain.len(),
        records: recovered.next_index.saturating_sub(recovered.floor.index),
        blocks: checked,
        clean: recovered.clean,
        cut: recovered.cut,
    })
}
