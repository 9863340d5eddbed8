//! Ending the log of a database before damage.

use std::path::Path;

use super::description::log_dir;
use super::recovery;
use crate::error::Result;
use crate::vfs::Vfs;
use crate::wal::{self, TruncatedLog};

/// Truncates the log of a database that is not open at the first record that cannot be read, if
/// there is one: acknowledged writes from there on are lost unless they are in tables.
pub fn truncate_damaged_log(vfs: &dyn Vfs, dir: &Path) -> Result<Option<TruncatedLog>> {
    let _lock = recovery::lock(vfs, dir)?;
    wal::truncate_damaged(vfs, &log_dir(dir))
}
