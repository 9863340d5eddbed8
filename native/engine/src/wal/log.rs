//! The open log.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Condvar, Mutex};

use super::blocks::{self, Blocks};
use super::files::Files;
use super::format::{
    BlockReference, Floor, Kind, MAX_BODY_BYTES, REFERENCE_BYTES, SegmentHeader, encode_floor,
    encode_references,
};
use super::queue::Queue;
use super::read::Records;
use super::recover::{Cut, Found, look};
use super::segment::{Segment, path_of};
use crate::error::{Error, Result};
use crate::vfs::{RandomRead, Vfs, make_dir};

/// Sizes of the log's files.
#[derive(Debug, Clone)]
pub struct Options {
    /// A segment is full at this size in bytes; one larger record may exceed it.
    pub segment_bytes: u64,
    /// How far a new segment is filled with zeros at once, in bytes.
    pub preallocate_bytes: u64,
    /// How many files are kept to be new segments.
    pub spare_segments: usize,
    /// A block file is full at this size in bytes.
    pub block_file_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 16 << 20,
            preallocate_bytes: 1 << 20,
            spare_segments: 4,
            block_file_bytes: 64 << 20,
        }
    }
}

/// What an acknowledgement means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// It survives a loss of power.
    #[default]
    Sync,
    /// It survives the end of the process; a loss of power may take it, and all that came after.
    Buffered,
}

/// What opening found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the log had been closed.
    pub clean: bool,
    /// The unsynced end that was cut, if there was one.
    pub cut: Option<Cut>,
}

/// Records that were handed to the operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// Their indexes.
    pub indexes: Range<u64>,
    /// The position behind them, for [`Wal::sync_through`].
    pub end: u64,
}

/// A log of records with consecutive indexes, which many threads append to and read.
///
/// Locks are taken in the order `files`, `queue`; `syncing` is held only to read or change it.
#[derive(Debug)]
pub struct Wal {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    queue: Mutex<Queue>,
    files: Mutex<Files>,
    syncing: Mutex<Syncing>,
    synced_more: Condvar,
    /// The position up to which everything is durable.
    synced: AtomicU64,
    blocks: Blocks,
    /// Set by the first write or sync that failed: nothing is written after it.
    poison: OnceLock<String>,
    recovery: Recovery,
}

/// Who syncs.
#[derive(Debug, Default)]
struct Syncing {
    /// Whether a thread is at it.
    led: bool,
    /// Whether others waited meanwhile.
    shared: bool,
}

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
            let segment = Segment::open(&*vfs, dir, header.number, header.base)?;
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
            syncing: Mutex::new(Syncing::default()),
            synced_more: Condvar::new(),
            blocks,
            poison: OnceLock::new(),
            recovery: Recovery {
                clean: found.clean,
                cut: found.cut,
            },
        })
    }

    /// What opening found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The index of the first record, and that of the record to come.
    pub fn indexes(&self) -> Range<u64> {
        let queue = self.queue.lock();
        queue.floor.index..queue.next_index
    }

    /// Why nothing can be written any more, if so.
    pub fn poisoned(&self) -> Option<&str> {
        self.poison.get().map(String::as_str)
    }

    /// Appends a record and waits until it is as durable as asked; returns its index.
    pub fn append(&self, body: &[u8], durability: Durability) -> Result<u64> {
        check_length(body.len())?;
        let written = self.encode(|queue, synced| {
            let index = queue.add(Kind::Data, &[body], synced);
            index..index.saturating_add(1)
        })?;
        self.finish(&written, durability)
    }

    /// Appends a record that refers to blocks. It is durable only together with them.
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
            let index = queue.add(Kind::Referring, &[&encoded, body], synced);
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
    pub fn write(&self, bodies: &[&[u8]]) -> Result<Written> {
        for body in bodies {
            check_length(body.len())?;
        }
        let written = self.encode(|queue, synced| {
            let first = queue.next_index;
            for body in bodies {
                queue.add(Kind::Data, &[body], synced);
            }
            first..queue.next_index
        })?;
        self.write_through(written.end)?;
        Ok(written)
    }

    fn finish(&self, written: &Written, durability: Durability) -> Result<u64> {
        match durability {
            Durability::Sync => self.sync_through(written.end)?,
            Durability::Buffered => self.write_through(written.end)?,
        }
        Ok(written.indexes.start)
    }

    /// Lets `encode` add records, which then wait to be written.
    fn encode(&self, encode: impl FnOnce(&mut Queue, u64) -> Range<u64>) -> Result<Written> {
        self.check()?;
        let mut queue = self.queue.lock();
        let indexes = encode(&mut queue, self.synced.load(Ordering::Acquire));
        let end = queue.end();
        Ok(Written { indexes, end })
    }

    /// Hands everything up to a position to the operating system: whoever comes first writes all
    /// that waits.
    fn write_through(&self, end: u64) -> Result<()> {
        let mut files = self.files.lock();
        if files.written >= end {
            return Ok(());
        }
        self.check()?;
        let (chunks, all) = self.queue.lock().take();
        self.poisoning(files.write(chunks, all))
    }

    /// Makes everything up to a position durable. While one thread writes and syncs for all, others
    /// wait; the next one serves all that came meanwhile.
    pub fn sync_through(&self, end: u64) -> Result<()> {
        let mut syncing = self.syncing.lock();
        loop {
            if self.synced.load(Ordering::Acquire) >= end {
                return Ok(());
            }
            self.check()?;
            if !syncing.led {
                break;
            }
            syncing.shared = true;
            self.synced_more.wait(&mut syncing);
        }
        syncing.led = true;
        let shared = std::mem::take(&mut syncing.shared);
        drop(syncing);
        if shared {
            // Those that the last sync served come again now, if they are let.
            std::thread::yield_now();
        }
        let synced = self.poisoning(self.sync_all());
        self.syncing.lock().led = false;
        self.synced_more.notify_all();
        synced
    }

    /// Syncs block files first, then segments in order.
    fn sync_all(&self) -> Result<()> {
        let (dirty, end) = {
            let mut files = self.files.lock();
            // A write that failed while this thread waited for the lock left a hole.
            self.check()?;
            let (chunks, all) = self.queue.lock().take();
            files.write(chunks, all)?;
            files.take_dirty()
        };
        self.blocks.sync()?;
        dirty.iter().try_for_each(|segment| segment.sync())?;
        self.synced.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    /// Makes everything durable that was written before.
    pub fn sync(&self) -> Result<()> {
        let end = self.queue.lock().end();
        self.sync_through(end)
    }

    /// Reads the records of a range, as far as there are any.
    pub fn read(&self, range: Range<u64>) -> Result<Records> {
        let until = range.end;
        let mut files = self.files.lock();
        let mut queue = self.queue.lock();
        if range.start < queue.floor.index {
            let first = queue.floor.index;
            let what = format!("records below {first} were dropped, {} too", range.start);
            return Err(Error::InvalidArgument { what });
        }
        let spans = queue.spans.within(range.start, until);
        if self.poison.get().is_none() {
            let (chunks, all) = queue.take();
            self.poisoning(files.write(chunks, all))?;
        }
        drop(queue);
        let mut parts = Vec::with_capacity(spans.len());
        for span in spans {
            parts.push((span, files.segment(span.segment)?));
        }
        Ok(Records::new(parts, range.start, until))
    }

    /// Drops the records below an index, durably, and the files that only they needed.
    pub fn truncate_front(&self, index: u64) -> Result<()> {
        let mut floor = None;
        let written = self.encode(|queue, synced| {
            let index = index.min(queue.next_index);
            if index > queue.floor.index {
                let segment = queue.segment_of(index);
                queue.floor = Floor { index, segment };
                queue.note(Kind::Floor, &encode_floor(queue.floor), synced);
                queue.spans.drop_before(index);
                floor = Some(queue.floor);
            }
            queue.next_index..queue.next_index
        })?;
        let Some(floor) = floor else {
            return Ok(());
        };
        self.sync_through(written.end)?;
        {
            let mut queue = self.queue.lock();
            queue.durable_floor = queue.durable_floor.max(floor);
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
            let what = format!("there is no record {index}, the log has {allowed:?}");
            return Err(Error::InvalidArgument { what });
        }
        self.sync_through(written.end)
    }

    /// Syncs everything and marks the log as closed.
    pub fn close(self) -> Result<()> {
        self.sync()?;
        let written = self.encode(|queue, synced| {
            queue.note(Kind::Close, &[], synced);
            queue.next_index..queue.next_index
        })?;
        self.sync_through(written.end)
    }

    /// The size of the segments in use, in bytes.
    pub fn size_bytes(&self) -> u64 {
        let extents = self.files.lock().extents();
        extents.iter().map(|(_, end)| end).sum()
    }

    /// Copies the log, durably, into an existing directory. Block files that grow no more are
    /// linked; segments are copied, since they are used again.
    pub fn checkpoint(&self, to: &Path) -> Result<()> {
        self.sync()?;
        let (extents, block_files) = {
            let files = self.files.lock();
            (files.extents(), self.blocks.in_use())
        };
        for (segment, end) in extents {
            let target = path_of(to, segment.number);
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

    fn check(&self) -> Result<()> {
        match self.poison.get() {
            Some(why) => Err(Error::Poisoned { why: why.clone() }),
            None => Ok(()),
        }
    }

    /// Lets a failure be the last thing that this log does: what the files hold is not known, and a
    /// sync that is repeated may succeed without having saved anything.
    fn poisoning<T>(&self, result: Result<T>) -> Result<T> {
        if let Err(error) = &result
            && error.code() != "invalid_argument"
        {
            // The first reason stays.
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

/// The header of the segment that the log goes on with.
fn next_segment(found: &mut Found) -> SegmentHeader {
    // A segment without records is left out of the chain, or opening often would lengthen it.
    let empty = found.chain.pop_if(|last| {
        found.end
            == last
                .base
                .saturating_add(super::format::SEGMENT_HEADER_BYTES as u64)
    });
    if let Some(last) = empty {
        found.end = last.base;
        found.leftover.push(last.number);
    }
    let number = found.highest.saturating_add(1);
    if found.chain.is_empty() {
        found.floor.segment = number;
    }
    SegmentHeader {
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

/// Copies the first bytes of a file, durably.
fn copy(vfs: &dyn Vfs, from: &dyn RandomRead, end: u64, to: &Path) -> Result<()> {
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
