//! A copy of the open log.

use std::path::Path;

use super::blocks;
use super::log::Wal;
use super::segment::path_of;
use crate::error::Result;
use crate::vfs::{RandomRead, Vfs};

impl Wal {
    /// Copies the log, durably, to an existing directory. Block files that no longer grow are
    /// linked; segments are copied, because they are reused.
    pub fn checkpoint(&self, to: &Path) -> Result<()> {
        self.sync()?;
        let (extents, block_files) = {
            let files = self.files.lock();
            (files.extents(), self.blocks.in_use())
        };
        for (segment, end) in extents {
            let target = path_of(to, segment.identity.segment);
            copy(&*self.vfs, segment.file(), end, &target)?;
        }
        for (number, grows) in block_files {
            let (from, target) = (
                blocks::path_of(&self.dir, number),
                blocks::path_of(to, number),
            );
            if grows {
                let file = self.vfs.open_read(&from)?;
                copy(&*self.vfs, &*file, file.len()?, &target)?;
            } else {
                self.vfs.hard_link(&from, &target)?;
            }
        }
        self.vfs.sync_dir(to)
    }
}

/// Copies the first bytes of a file, durably.
pub(super) fn copy(vfs: &dyn Vfs, from: &dyn RandomRead, end: u64, to: &Path) -> Result<()> {
    const PART_BYTES: u64 = 1 << 20;
    let mut target = vfs.create(to)?;
    let mut offset = 0;
    while offset < end {
        let size = (end - offset).min(PART_BYTES);
        let mut part = vec![0; usize::try_from(size).unwrap_or(0)];
        from.read_exact_at(offset, &mut part)?;
        target.append(&part)?;
        offset += size;
    }
    target.sync()
}
