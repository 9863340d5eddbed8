//! Ending a damaged log before the damage, so that it can be opened again.

use std::path::{Path, PathBuf};

use super::checkpoint;
use super::open::next_segment;
use super::recover::{RecoveredLog, TornTail, first_unsound, recover, recover_before_damage};
use super::segment::{LogSegment, path_of};
use crate::error::{Error, Result};
use crate::vfs::Vfs;

const SUFFIX: &str = ".wal.damaged";

/// A log that was truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TruncatedLog {
    /// Where the damage was found.
    pub damage: TornTail,
    /// The records that remain.
    pub records: u64,
    /// Copies of the files that had records at or after the damage.
    pub copies: Vec<PathBuf>,
}

/// Truncates a log that is not open at the first record that cannot be read, if there is one. Files
/// with later records are copied first, with the suffix `.damaged`.
pub fn truncate_damaged(vfs: &dyn Vfs, dir: &Path) -> Result<Option<TruncatedLog>> {
    if is_readable(vfs, dir)? {
        return Ok(None);
    }
    let mut recovered = recover_before_damage(vfs, dir)?;
    let records = recovered.next_index.saturating_sub(recovered.floor.index);
    let damage = damage_of(dir, &recovered);
    let copies = copy_damaged(vfs, dir, &recovered)?;
    // The log continues in a new segment at the position of the damage: what is behind that
    // position in the segment before is never read again.
    let header = next_segment(&mut recovered);
    LogSegment::create(vfs, dir, &header, None)?;
    for number in &recovered.leftover {
        vfs.remove(&path_of(dir, *number))?;
    }
    vfs.sync_dir(dir)?;
    Ok(Some(TruncatedLog {
        damage,
        records,
        copies,
    }))
}

fn is_readable(vfs: &dyn Vfs, dir: &Path) -> Result<bool> {
    match recover(vfs, dir) {
        Err(Error::Corruption { .. }) => Ok(false),
        recovered => first_unsound(vfs, dir, &recovered?).map(|record| record.is_none()),
    }
}

fn damage_of(dir: &Path, recovered: &RecoveredLog) -> TornTail {
    let cut = recovered.cut.clone();
    cut.unwrap_or_else(|| {
        let last = recovered.chain.last();
        TornTail {
            file: path_of(
                dir,
                last.map_or(recovered.floor.segment, |last| last.number),
            ),
            offset: last.map_or(0, |last| recovered.end.saturating_sub(last.base)),
            records: 0,
        }
    })
}

/// Copies the files that are needed but do not remain, or not as a whole.
fn copy_damaged(vfs: &dyn Vfs, dir: &Path, recovered: &RecoveredLog) -> Result<Vec<PathBuf>> {
    let last = recovered.chain.last().map(|last| last.number);
    let dropped = recovered.leftover.iter().copied();
    let dropped = dropped.filter(|number| *number >= recovered.floor.segment);
    let mut copies = Vec::new();
    for number in last.into_iter().chain(dropped) {
        let path = path_of(dir, number);
        let copy = dir.join(format!("{number:020}{SUFFIX}"));
        let file = vfs.open_read(&path)?;
        checkpoint::copy(vfs, &*file, file.len()?, &copy)?;
        copies.push(copy);
    }
    vfs.sync_dir(dir)?;
    Ok(copies)
}
