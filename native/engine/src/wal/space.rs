//! Handling a full disk.
//!
//! A write without space is rolled back: the log ends at the last record that was handed to the
//! operating system completely, the rest of the file is truncated, durably, and queued records are
//! dropped, so that they never reappear. From then on records are rejected until [`Wal::resume`]
//! has created a new segment with reserved space. A failed sync is different: it poisons.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::files::WalFiles;
use super::format::RecordKind;
use super::log::Wal;
use super::options::AppendedRecords;
use super::segment::path_of;
use crate::error::{Error, Result};

impl Wal {
    /// Why records are rejected while the disk is full.
    pub fn why_full(&self) -> Option<String> {
        self.queue.lock().why_stalled().map(str::to_owned)
    }

    /// Whether records are rejected for lack of space.
    pub fn is_stalled(&self) -> bool {
        self.stalled.load(Ordering::Acquire)
    }

    /// The position at which a stalled log ends.
    pub fn stalled_at(&self) -> Option<u64> {
        let queue = self.queue.lock();
        queue.why_stalled().map(|_| queue.end())
    }

    /// Fails if these records were dropped for lack of space.
    pub fn keeps(&self, written: &AppendedRecords) -> Result<()> {
        if self.epoch.load(Ordering::Acquire) == written.epoch {
            return Ok(());
        }
        let queue = self.queue.lock();
        if !queue.dropped(written.epoch, written.end) {
            return Ok(());
        }
        let why = queue
            .why_stalled()
            .unwrap_or("a write failed for lack of space");
        Err(Error::Full {
            why: why.to_owned(),
        })
    }

    /// Writes the queue. Without space, what could not be written is dropped; its writers learn
    /// that from [`Wal::keeps`].
    pub(super) fn write_waiting(&self, files: &mut MutexGuard<'_, WalFiles>) -> Result<()> {
        match files.write(&self.queue) {
            Err(error) if error.is_full() => self.roll_back(files, &error),
            written => written,
        }
    }

    fn roll_back(&self, files: &mut MutexGuard<'_, WalFiles>, error: &Error) -> Result<()> {
        let mut queue = self.queue.lock();
        let tail = files.roll_back()?;
        let newest = queue.newest_segment();
        queue.roll_back((files.written, files.next_index), tail, error.to_string());
        self.stalled.store(true, Ordering::Release);
        self.epoch.store(queue.epoch(), Ordering::Release);
        drop(queue);
        // Files that were to become segments and have no valid header.
        for number in tail.saturating_add(1)..=newest {
            drop(self.vfs.remove(&path_of(&self.dir, number)));
        }
        Ok(())
    }

    /// Resumes with a record of the caller, in a new segment with reserved space. Fails as long as
    /// there is none.
    pub fn resume(&self, body: &[u8]) -> Result<()> {
        self.check()?;
        let mut files = self.files.lock();
        let header = {
            let queue = self.queue.lock();
            queue.resuming_header(self.synced.load(Ordering::Acquire))
        };
        let Some(header) = header else {
            return Ok(());
        };
        self.poisoning(files.resume(&header, self.resume_bytes))?;
        let written = {
            let mut queue = self.queue.lock();
            queue.resume(&header);
            queue.add(RecordKind::Data, &[body], header.synced);
            AppendedRecords {
                indexes: header.first_index..queue.next_index,
                end: queue.end(),
                epoch: queue.epoch(),
            }
        };
        self.stalled.store(false, Ordering::Release);
        drop(files);
        self.sync_through(&written)
    }
}
