//! Opening the log: what was found is made durable and goes on in a new segment.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex as StdMutex, OnceLock};

use parking_lot::Mutex;

use super::blocks::{self, Blocks};
use super::files::Files;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, Version};
use super::log::{Syncing, Wal};
use super::options::{Options, Recovery};
use super::queue::Queue;
use super::recover::{Found, look};
use super::segment::{Segment, path_of};
use crate::error::Result;
use crate::vfs::{Vfs, make_dir};

impl Wal {
    /// Opens the log in a directory, which is made if it is missing. What was found is durable
    /// when this returns, and goes on in a new segment, so that nothing behind a cut is ever read.
    ///
    /// Only one log at a time may be open in a directory: whoever opens it holds a lock.
    pub fn open(vfs: Arc<dyn Vfs>, dir: &Path, options: &Options) -> Result<Self> {
        make_dir(&*vfs, dir)?;
        let mut found = look(&*vfs, dir)?;
        let mut segments = BTreeMap::new();
        for header in &found.chain {
            let segment = Segment::open(&*vfs, dir, header.home())?;
            segment.sync()?;
            segments.insert(header.number, Arc::new(segment));
        }
        sync_blocks(&*vfs, dir, &found)?;
        let header = next_segment(&mut found);
        segments.retain(|number, _| found.chain.iter().any(|kept| kept.number == *number));
        let made = Segment::create(&*vfs, dir, &header, None)?;
        segments.insert(header.number, Arc::new(made));

        let block_files = options.block_file_bytes;
        let block_use = std::mem::take(&mut found.block_use);
        let blocks = Blocks::open(Arc::clone(&vfs), dir, block_files, block_use)?;
        let spares = options.spare_segments;
        let ahead = options.preallocate_bytes;
        let mut files = Files::new(Arc::clone(&vfs), dir, segments, spares, ahead);
        for number in &found.leftover {
            files.reuse(path_of(dir, *number))?;
        }
        let queue = Queue::new(&header, found.spans, options.segment_bytes);
        files.written = queue.end();
        Ok(Self {
            vfs,
            dir: dir.to_owned(),
            synced: AtomicU64::new(queue.end()),
            queue: Mutex::new(queue),
            files: Mutex::new(files),
            syncing: StdMutex::new(Syncing::default()),
            synced_more: Condvar::new(),
            blocks,
            poison: OnceLock::new(),
            recovery: Recovery {
                clean: found.clean,
                cut: found.cut,
            },
        })
    }
}

/// The header of the segment that the log goes on with.
fn next_segment(found: &mut Found) -> SegmentHeader {
    // A segment without records is left out of the chain, or opening often would lengthen it.
    let empty = found
        .chain
        .pop_if(|last| found.end == last.base.saturating_add(SEGMENT_HEADER_BYTES as u64));
    if let Some(last) = empty {
        found.end = last.base;
        found.leftover.push(last.number);
    }
    let number = found.highest.saturating_add(1);
    if found.chain.is_empty() {
        found.floor.segment = number;
    }
    SegmentHeader {
        version: Version::NEWEST,
        number,
        previous: found.chain.last().map_or(0, |last| last.number),
        base: found.end,
        first_index: found.next_index,
        floor: found.floor,
        synced: found.end,
    }
}

/// Makes the blocks durable that records of the unsynced tail refer to.
fn sync_blocks(vfs: &dyn Vfs, dir: &Path, found: &Found) -> Result<()> {
    let tail = found.referring.iter();
    let tail = tail.filter(|record| record.position >= found.synced);
    let mut files: Vec<u64> = tail
        .flat_map(|record| record.blocks.iter().map(|block| block.file))
        .collect();
    files.sort_unstable();
    files.dedup();
    for number in files {
        vfs.open_log(&blocks::path_of(dir, number))?.sync()?;
    }
    Ok(())
}
