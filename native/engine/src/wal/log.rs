//! The open log.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex as StdMutex, MutexGuard, OnceLock, PoisonError};

use parking_lot::Mutex;

use super::blocks::{self, Blocks};
use super::files::WalFiles;
use super::format::{
    BlockReference, Floor, MAX_BODY_BYTES, REFERENCE_BYTES, RecordKind, encode_floor,
    encode_references,
};
use super::options::{AppendedRecords, Durability, Recovery};
use super::queue::AppendQueue;
use super::wal_records::WalRecords;
use crate::error::{Error, Result};
use crate::vfs::Vfs;

/// A log of records with consecutive indexes, with concurrent appends and reads.
///
/// Locks are taken in the order `files`, `queue`; `syncing` is locked only to read or change it.
#[derive(Debug)]
pub struct Wal {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) queue: Mutex<AppendQueue>,
    pub(super) files: Mutex<WalFiles>,
    /// With a condition variable of the standard library, which wakes all waiting threads with one
    /// system call; with that of `parking_lot` each wakes the next one.
    pub(super) syncing: StdMutex<Syncing>,
    pub(super) synced_more: Condvar,
    /// The position up to which everything is durable.
    pub(super) synced: AtomicU64,
    /// The number of syncs.
    pub(super) syncs: AtomicU64,
    pub(super) blocks: Blocks,
    /// Set by the first failed sync, or by a write that failed for a reason other than lack of
    /// space: nothing is written after it.
    pub(super) poison: OnceLock<String>,
    /// The queue's epoch.
    pub(super) epoch: AtomicUsize,
    /// Whether the queue is stalled.
    pub(super) stalled: AtomicBool,
    /// How many bytes of space a stalled log needs before it accepts records again.
    pub(super) resume_bytes: u64,
    pub(super) recovery: Recovery,
}

/// The state of syncing.
#[derive(Debug, Default)]
pub(super) struct Syncing {
    /// Whether a thread is syncing.
    led: bool,
    /// Whether other threads waited meanwhile.
    shared: bool,
}

impl Wal {
    /// The result of opening.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The index of the first record, and that of the next one.
    pub fn indexes(&self) -> Range<u64> {
        let queue = self.queue.lock();
        queue.floor.index..queue.next_index
    }

    /// Why writes are no longer possible, if so.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Appends a record and waits until it is as durable as requested; returns its index.
    pub fn append(&self, body: &[u8], durability: Durability) -> Result<u64> {
        check_length(body.len())?;
        let written = self.encode(|queue, synced| {
            let index = queue.add(RecordKind::Data, &[body], synced);
            index..index.saturating_add(1)
        })?;
        self.finish(&written, durability)
    }

    /// Appends a record that refers to blocks. They become durable together.
    pub fn append_referring(
        &self,
        body: &[u8],
        references: &[BlockReference],
        durability: Durability,
    ) -> Result<u64> {
        let encoded = encode_references(references);
        check_length(
            body.len()
                .saturating_add(4 + references.len() * REFERENCE_BYTES),
        )?;
        let written = self.encode(|queue, synced| {
            let index = queue.add(RecordKind::Referring, &[&encoded, body], synced);
            self.blocks.refer(index, references);
            index..index.saturating_add(1)
        })?;
        self.finish(&written, durability)
    }

    /// Writes a block for records to refer to.
    pub fn append_block(&self, block: &[u8]) -> Result<BlockReference> {
        self.check()?;
        self.poisoning(self.blocks.append(block))
    }

    /// Reads a block.
    pub fn read_block(&self, reference: &BlockReference) -> Result<Vec<u8>> {
        blocks::read(&*self.vfs, &self.dir, reference)
    }

    /// Appends records, which get consecutive indexes, and returns once the operating system has
    /// them. [`Wal::sync_through`] makes them durable.
    pub fn write(&self, bodies: &[&[u8]]) -> Result<AppendedRecords> {
        let written = self.enqueue(bodies)?;
        self.write_through(&written)?;
        Ok(written)
    }

    /// Assigns records their indexes and positions immediately, without writing. One of
    /// [`Wal::write_through`] and [`Wal::sync_through`] must follow.
    pub fn enqueue(&self, bodies: &[&[u8]]) -> Result<AppendedRecords> {
        for body in bodies {
            check_length(body.len())?;
        }
        self.encode(|queue, synced| {
            let first = queue.next_index;
            for body in bodies {
                queue.add(RecordKind::Data, &[body], synced);
            }
            first..queue.next_index
        })
    }

    fn finish(&self, written: &AppendedRecords, durability: Durability) -> Result<u64> {
        match durability {
            Durability::Sync => self.sync_through(written)?,
            Durability::Buffered => self.write_through(written)?,
        }
        Ok(written.indexes.start)
    }

    /// Queues the records that `encode` adds.
    fn encode(
        &self,
        encode: impl FnOnce(&mut AppendQueue, u64) -> Range<u64>,
    ) -> Result<AppendedRecords> {
        self.check()?;
        let mut queue = self.queue.lock();
        if let Some(why) = queue.why_stalled() {
            let why = why.to_owned();
            return Err(Error::Full { why });
        }
        let indexes = encode(&mut queue, self.synced.load(Ordering::Acquire));
        let (end, epoch) = (queue.end(), queue.epoch());
        Ok(AppendedRecords {
            indexes,
            end,
            epoch,
        })
    }

    /// Hands everything up to these records to the operating system: the first thread writes
    /// everything queued. They are dropped if there is no space for them.
    pub fn write_through(&self, written: &AppendedRecords) -> Result<()> {
        let mut files = self.files.lock();
        self.keeps(written)?;
        if files.written >= written.end {
            return Ok(());
        }
        self.check()?;
        self.poisoning(self.write_waiting(&mut files))?;
        drop(files);
        self.keeps(written)
    }

    /// Makes everything up to these records durable. While one thread writes and syncs for all,
    /// others wait; the next one serves all that arrived meanwhile. Records for which there is no
    /// space are dropped.
    pub fn sync_through(&self, written: &AppendedRecords) -> Result<()> {
        let mut syncing = self.syncing();
        loop {
            // In this order: if the log was not truncated below, the position is that of the
            // records.
            let is_synced = self.synced.load(Ordering::Acquire) >= written.end;
            self.keeps(written)?;
            if is_synced {
                return Ok(());
            }
            self.check()?;
            if !syncing.led {
                break;
            }
            syncing.shared = true;
            let waited = self.synced_more.wait(syncing);
            syncing = waited.unwrap_or_else(PoisonError::into_inner);
        }
        syncing.led = true;
        let shared = std::mem::take(&mut syncing.shared);
        drop(syncing);
        if shared {
            // Lets the threads that the last sync served join this one.
            std::thread::yield_now();
        }
        let synced = self.poisoning(self.sync_all());
        self.syncing().led = false;
        self.synced_more.notify_all();
        synced?;
        self.keeps(written)
    }

    /// No thread panics while holding it, and its contents are always consistent.
    fn syncing(&self) -> MutexGuard<'_, Syncing> {
        self.syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs block files first, then segments in order.
    fn sync_all(&self) -> Result<()> {
        let (dirty, end) = {
            let mut files = self.files.lock();
            // A write that failed while this thread waited for the lock left a gap.
            self.check()?;
            self.write_waiting(&mut files)?;
            files.take_dirty()
        };
        self.blocks.sync()?;
        dirty.iter().try_for_each(|segment| segment.sync())?;
        self.synced.fetch_max(end, Ordering::AcqRel);
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// How often the log was synced since it was opened, each time for all that waited.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// The position up to which everything is durable.
    pub(crate) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Makes everything written before durable.
    pub fn sync(&self) -> Result<()> {
        let written = {
            let queue = self.queue.lock();
            AppendedRecords {
                indexes: queue.next_index..queue.next_index,
                end: queue.end(),
                epoch: queue.epoch(),
            }
        };
        self.sync_through(&written)
    }

    /// Reads the existing records of a range.
    pub fn read(&self, range: Range<u64>) -> Result<WalRecords> {
        let until = range.end;
        let mut files = self.files.lock();
        if self.poison.get().is_none() {
            self.poisoning(self.write_waiting(&mut files))?;
        }
        let queue = self.queue.lock();
        if range.start < queue.floor.index {
            let first = queue.floor.index;
            let what = format!("records below {first} were dropped, {} too", range.start);
            return Err(Error::InvalidArgument { what });
        }
        let until = until.min(files.next_index);
        let spans = queue.spans.within(range.start, until);
        drop(queue);
        let mut parts = Vec::with_capacity(spans.len());
        for span in spans {
            parts.push((span, files.segment(span.segment)?));
        }
        Ok(WalRecords::new(parts, range.start, until))
    }

    /// Drops the records below an index, durably, and the files that only they needed.
    pub fn truncate_front(&self, index: u64) -> Result<()> {
        let mut floor = None;
        let written = self.encode(|queue, synced| {
            let index = index.min(queue.next_index);
            if index > queue.floor.index {
                let segment = queue.segment_of(index);
                let raised = Floor { index, segment };
                queue.note(RecordKind::Floor, &encode_floor(raised), synced);
                floor = Some(raised);
            }
            queue.next_index..queue.next_index
        })?;
        let Some(floor) = floor else {
            return Ok(());
        };
        self.sync_through(&written)?;
        {
            let mut queue = self.queue.lock();
            queue.floor = queue.floor.max(floor);
            queue.durable_floor = queue.durable_floor.max(floor);
            let first = queue.floor.index;
            queue.spans.drop_before(first);
        }
        self.poisoning(self.files.lock().drop_before(floor.segment))?;
        self.poisoning(self.blocks.drop_before(floor.index))
    }

    /// Drops the records from an index on, durably. The next record gets this index.
    pub fn truncate_back(&self, index: u64) -> Result<()> {
        let mut allowed = Range::default();
        let written = self.encode(|queue, synced| {
            allowed = queue.floor.index..queue.next_index.saturating_add(1);
            if allowed.contains(&index) {
                queue.truncate_from(index, synced);
            }
            index..index
        })?;
        if !allowed.contains(&index) {
            let what = format!("record {index} does not exist; the log has {allowed:?}");
            return Err(Error::InvalidArgument { what });
        }
        let synced = self.sync_through(&written);
        if let Err(error) = &synced {
            // The dropped records are already forgotten.
            self.poison.get_or_init(|| error.to_string());
        }
        synced
    }

    /// Syncs everything and marks the log as closed.
    pub fn close(self) -> Result<()> {
        self.sync()?;
        if self.why_full().is_some() {
            // All records are durable; there is no space for the mark.
            return Ok(());
        }
        let written = self.encode(|queue, synced| {
            queue.note(RecordKind::Close, &[], synced);
            queue.next_index..queue.next_index
        })?;
        match self.sync_through(&written) {
            Err(error) if error.is_full() => Ok(()),
            closed => closed,
        }
    }

    /// The first record such that it and all later ones take at most this many bytes; up to 64 KiB
    /// of records before it might fit as well.
    pub fn index_within(&self, bytes: u64) -> u64 {
        let queue = self.queue.lock();
        let position = queue.end().saturating_sub(bytes);
        let first = queue.spans.first_from(position);
        first.unwrap_or(queue.next_index)
    }

    /// The size of the segments in use, in bytes.
    pub fn size_bytes(&self) -> u64 {
        let extents = self.files.lock().extents();
        extents.iter().map(|(_, end)| end).sum()
    }

    pub(super) fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Poisons the log on failure: the contents of the files are unknown, and a repeated sync may
    /// succeed without having saved anything.
    pub(super) fn poisoning<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.code() != "invalid_argument"
            && !error.is_full()
        {
            // The first reason is kept.
            self.poison.get_or_init(|| error.to_string());
        }
        result
    }
}

fn check_length(length: usize) -> Result<()> {
    if length <= MAX_BODY_BYTES {
        return Ok(());
    }
    let what = format!("a record of {length} bytes is larger than {MAX_BODY_BYTES}");
    Err(Error::InvalidArgument { what })
}
