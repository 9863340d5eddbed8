//! One file of the log.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, SegmentIdentity};
use super::scan::END_MARK_BYTES;
use crate::error::Result;
use crate::vfs::{RandomRead, SegmentFile, Vfs};

const SUFFIX: &str = ".wal";
/// The last record is followed by zeros, which distinguishes the end of the log from a torn write.
const END_MARK: [u8; END_MARK_BYTES] = [0; END_MARK_BYTES];
/// The number of syncs that makes filling worthwhile; flushes alone cause fewer.
const WORTH_FILLING: u64 = 8;
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// The name of a segment; names sort like numbers.
pub(super) fn path_of(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:020}{SUFFIX}"))
}

/// The number in a segment's name.
pub(super) fn number_of(name: &str) -> Option<u64> {
    numbered(name, SUFFIX)
}

/// The number in a name of twenty digits and a suffix.
pub(super) fn numbered(name: &str, suffix: &str) -> Option<u64> {
    let digits = name.strip_suffix(suffix)?;
    let plain = digits.len() == 20 && digits.bytes().all(|digit| digit.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}

/// An open segment.
#[derive(Debug)]
pub(super) struct LogSegment {
    pub(super) identity: SegmentIdentity,
    file: Box<dyn SegmentFile>,
    /// The file's size in bytes. Writes below it change no metadata, so syncing them is cheap.
    allocated: AtomicU64,
    /// How often it was synced since zeros were last written ahead. Filling doubles what a new
    /// segment writes, which pays off only with many syncs.
    syncs: AtomicU64,
}

impl LogSegment {
    /// Opens a segment that has its header.
    pub(super) fn open(vfs: &dyn Vfs, dir: &Path, identity: SegmentIdentity) -> Result<Self> {
        let file = vfs.open_log(&path_of(dir, identity.segment))?;
        let allocated = AtomicU64::new(file.len()?);
        Ok(Self {
            identity,
            file,
            allocated,
            syncs: AtomicU64::new(0),
        })
    }

    /// Creates a segment, from a spare file if there is one; its header and name are then durable.
    pub(super) fn create(
        vfs: &dyn Vfs,
        dir: &Path,
        header: &SegmentHeader,
        spare: Option<&Path>,
    ) -> Result<Self> {
        let path = path_of(dir, header.number);
        if let Some(spare) = spare {
            vfs.rename(spare, &path)?;
        }
        let segment = Self::open(vfs, dir, header.identity())?;
        segment.file.write_at(0, &header.encode())?;
        segment.grow_to(SEGMENT_HEADER_BYTES as u64);
        segment.file.sync()?;
        vfs.sync_dir(dir)?;
        Ok(segment)
    }

    /// Writes records and an end mark. If syncs are frequent, the file is filled with zeros every
    /// `ahead` bytes, so that the following writes need no new blocks.
    pub(super) fn write(&self, offset: u64, records: &mut Vec<u8>, preallocate: u64) -> Result<()> {
        records.extend_from_slice(&END_MARK);
        self.file.write_at(offset, records)?;
        let end = offset.saturating_add(records.len() as u64);
        if end <= self.allocated.load(Ordering::Acquire) {
            return Ok(());
        }
        self.grow_to(end);
        if self.syncs.load(Ordering::Acquire) < WORTH_FILLING {
            return Ok(());
        }
        self.syncs.store(0, Ordering::Release);
        match self.fill(preallocate) {
            // The records themselves were written.
            Err(error) if error.is_full() => Ok(()),
            filled => filled,
        }
    }

    /// Appends this many zeros to the file.
    pub(super) fn fill(&self, preallocate: u64) -> Result<()> {
        let mut filled = self.allocated.load(Ordering::Acquire);
        let target = filled.saturating_add(preallocate);
        while filled < target {
            let rest = usize::try_from(target - filled).unwrap_or(usize::MAX);
            let zeros = ZEROS.get(..rest).unwrap_or(&ZEROS);
            self.file.write_at(filled, zeros)?;
            filled += zeros.len() as u64;
            self.grow_to(filled);
        }
        Ok(())
    }

    /// Truncates the file at an offset, durably.
    pub(super) fn cut(&self, offset: u64) -> Result<()> {
        self.file.truncate(offset)?;
        self.allocated.store(offset, Ordering::Release);
        self.file.sync()
    }

    fn grow_to(&self, size: u64) {
        self.allocated.fetch_max(size, Ordering::AcqRel);
    }

    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync()?;
        self.syncs.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    pub(super) fn file(&self) -> &dyn RandomRead {
        &*self.file
    }
}
