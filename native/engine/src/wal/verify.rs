//! Checking a log that is not open.

use std::path::Path;

use super::blocks;
use super::recover::{TornTail, look};
use crate::error::Result;
use crate::vfs::Vfs;

/// What a sound log holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogReport {
    /// Segments in use.
    pub segments: usize,
    /// Records that can be read.
    pub records: u64,
    /// Blocks that they refer to.
    pub blocks: usize,
    /// Whether it was closed.
    pub clean: bool,
    /// The end that opening it would cut.
    pub cut: Option<TornTail>,
}

/// Reads every record and every block that one refers to, and changes nothing.
pub fn verify(vfs: &dyn Vfs, dir: &Path) -> Result<LogReport> {
    let recovered = look(vfs, dir)?;
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
