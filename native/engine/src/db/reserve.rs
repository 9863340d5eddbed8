//! A file that reserves space, removed if opening the database needs it.

use std::path::Path;

use super::DbCore;
use crate::error::{Error, Result};
use crate::vfs::Vfs;

const NAME: &str = "RESERVE";
/// It is written in pieces of this size.
const PIECE_BYTES: u64 = 1 << 20;

/// Removes the reserve. Returns whether it existed.
pub(super) fn give_up(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    let path = dir.join(NAME);
    if !vfs.exists(&path)? {
        return Ok(false);
    }
    vfs.remove(&path)?;
    vfs.sync_dir(dir)?;
    Ok(true)
}

impl DbCore {
    /// Creates the reserve if it is missing and the disk has twice its size free.
    ///
    /// Trying to use the last free bytes would take them, if only for a moment, from the log and
    /// the tables, and a disk that has just enough would be full again with the reserve.
    pub(super) fn keep_reserve(&self) -> Result<()> {
        let bytes = self.options.reserve_bytes;
        if bytes == 0 || self.wal.is_stalled() {
            return Ok(());
        }
        let path = self.dir.join(NAME);
        if self.vfs.exists(&path)? && self.vfs.open_read(&path)?.len()? >= bytes {
            return Ok(());
        }
        if self.vfs.free_bytes(&self.dir)? < bytes.saturating_mul(2) {
            return Ok(());
        }
        match self.fill_reserve(&path, bytes) {
            Err(error) if error.is_full() => self.vfs.remove(&path),
            filled => filled,
        }
    }

    fn fill_reserve(&self, path: &Path, bytes: u64) -> Result<()> {
        let mut file = self.vfs.create(path)?;
        let zeros = vec![0; crate::coding::to_usize(PIECE_BYTES)];
        while file.len() < bytes {
            let missing = crate::coding::to_usize(bytes - file.len());
            file.append(zeros.get(..missing).unwrap_or(&zeros))?;
        }
        // Nothing depends on it, so a failure does not poison.
        match file.sync() {
            Err(Error::Io { path, source, .. }) => Err(Error::Io {
                operation: "reserve",
                path,
                offset: None,
                source,
            }),
            synced => synced,
        }
    }
}
