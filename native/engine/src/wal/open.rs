//! Opening the log: existing records are made durable, and a new segment continues the log.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Condvar, Mutex as StdMutex, OnceLock};

use parking_lot::Mutex;

use super::blocks::{self, Blocks};
use super::checkpoint;
use super::files::WalFiles;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, WalVersion};
use super::log::{Syncing, Wal};
use super::options::{Recovery, WalOptions};
use super::queue::AppendQueue;
use super::recover::{RecoveredLog, recover};
use super::segment::{LogSegment, path_of};
use crate::error::Result;
use crate::vfs::{Vfs, make_dir};

impl Wal {
    /// Opens or creates the log in a directory. Existing records are durable when this returns, and
    /// a new segment continues the log, so that nothing after a truncation is ever read.
    ///
    /// Only one log at a time may be open in a directory: the caller holds a lock.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, options: &WalOptions) -> Result<Self> {
        make_dir(&*vfs, dir)?;
        let mut recovered = recover(&*vfs, dir)?;
        rewrite_tail(&*vfs, dir, &recovered)?;
        let mut segments = BTreeMap::new();
        for header in &recovered.chain {
            let segment = LogSegment::open(&*vfs, dir, header.identity())?;
            segments.insert(header.number, Arc::new(segment));
        }
        let header = next_segment(&mut recovered);
        segments.retain(|number, _| recovered.chain.iter().any(|kept| kept.number == *number));
        let made = LogSegment::create(&*vfs, dir, &header, None)?;
        segments.insert(header.number, Arc::new(made));

        let block_files = options.block_file_bytes;
        let block_use = std::mem::take(&mut recovered.block_use);
        let blocks = Blocks::open(Arc::clone(&vfs), dir, block_files, block_use)?;
        let spares = options.spare_segments;
        let preallocate = options.preallocate_bytes;
        let mut files = WalFiles::new(Arc::clone(&vfs), dir, segments, spares, preallocate);
        for number in &recovered.leftover {
            files.reuse(path_of(dir, *number))?;
        }
        let queue = AppendQueue::new(&header, recovered.spans, options.segment_bytes);
        files.written = queue.end();
        files.next_index = header.first_index;
        Ok(Self {
            vfs,
            dir: dir.to_owned(),
            synced: AtomicU64::new(queue.end()),
            syncs: AtomicU64::new(0),
            queue: Mutex::new(queue),
            files: Mutex::new(files),
            syncing: StdMutex::new(Syncing::default()),
            synced_more: Condvar::new(),
            blocks,
            poison: OnceLock::new(),
            epoch: AtomicUsize::new(0),
            stalled: AtomicBool::new(false),
            resume_bytes: options.preallocate_bytes,
            recovery: Recovery {
                clean: recovered.clean,
                cut: recovered.cut,
            },
        })
    }
}

/// The header of the segment that continues the log.
pub(super) fn next_segment(recovered: &mut RecoveredLog) -> SegmentHeader {
    // A segment without records is removed from the chain, or repeated opening would lengthen it.
    let empty = recovered
        .chain
        .pop_if(|last| recovered.end == last.base.saturating_add(SEGMENT_HEADER_BYTES as u64));
    if let Some(last) = empty {
        recovered.end = last.base;
        recovered.leftover.push(last.number);
    }
    let number = recovered.highest.saturating_add(1);
    if recovered.chain.is_empty() {
        recovered.floor.segment = number;
    }
    SegmentHeader {
        version: WalVersion::NEWEST,
        number,
        previous: recovered.chain.last().map_or(0, |last| last.number),
        base: recovered.end,
        first_index: recovered.next_index,
        floor: recovered.floor,
        synced: recovered.end,
    }
}

/// Makes existing records durable that are not known to be: segments with records after the last
/// known sync, and before them the blocks that these refer to. They are copied to new files: a
/// failed sync of an earlier process may have left pages that count as saved and are not, so that
/// syncing the same file again would prove nothing.
fn rewrite_tail(vfs: &dyn Vfs, dir: &Path, recovered: &RecoveredLog) -> Result<()> {
    if recovered.end <= recovered.synced {
        return Ok(());
    }
    rewrite_blocks(vfs, dir, recovered)?;
    let bases = recovered.chain.iter().skip(1).map(|header| header.base);
    let ends = bases.chain([recovered.end]);
    for (header, end) in recovered.chain.iter().zip(ends) {
        if end > recovered.synced {
            rewrite(vfs, dir, &path_of(dir, header.number), end - header.base)?;
        }
    }
    vfs.sync_dir(dir)
}

/// Replaces a file by a durable copy of its first bytes.
fn rewrite(vfs: &dyn Vfs, dir: &Path, path: &Path, length: u64) -> Result<()> {
    let copy = dir.join("REWRITTEN");
    let copied = checkpoint::copy(vfs, &*vfs.open_read(path)?, length, &copy);
    if let Err(error) = copied {
        drop(vfs.remove(&copy));
        return Err(error);
    }
    vfs.rename(&copy, path)
}

fn rewrite_blocks(vfs: &dyn Vfs, dir: &Path, recovered: &RecoveredLog) -> Result<()> {
    let tail = recovered.referring.iter();
    let tail = tail.filter(|record| record.position >= recovered.synced);
    let mut files: Vec<u64> = tail
        .flat_map(|record| record.blocks.iter().map(|block| block.file))
        .collect();
    files.sort_unstable();
    files.dedup();
    for number in files {
        let path = blocks::path_of(dir, number);
        let length = vfs.open_read(&path)?.len()?;
        rewrite(vfs, dir, &path, length)?;
    }
    Ok(())
}
