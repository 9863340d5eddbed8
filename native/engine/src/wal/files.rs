//! The segments of an open log: writing to the newest, keeping old ones for reading and reuse.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::queue::{AppendQueue, QueuedChunks, WriteChunk};
use super::segment::{LogSegment, path_of};
use crate::error::{Error, Result};
use crate::vfs::Vfs;

/// The files of an open log. One thread at a time writes.
#[derive(Debug)]
pub(super) struct WalFiles {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    pub(super) segments: BTreeMap<u64, Arc<LogSegment>>,
    /// Files for new segments.
    spares: Vec<PathBuf>,
    max_spares: usize,
    /// How many bytes beyond the end a segment is filled with zeros at once.
    preallocate: u64,
    /// The position up to which records were handed to the operating system, and the index of the
    /// next record.
    pub(super) written: u64,
    pub(super) next_index: u64,
    /// Segments with unsynced bytes, in order.
    dirty: Vec<Arc<LogSegment>>,
    /// A spare buffer for the next records, to avoid allocations.
    room: Vec<u8>,
}

/// The maximum size of the spare buffer.
const MAX_ROOM: usize = 64 << 10;

impl WalFiles {
    pub(super) fn new(
        vfs: Arc<dyn Vfs>,
        dir: &Path,
        segments: BTreeMap<u64, Arc<LogSegment>>,
        max_spares: usize,
        preallocate: u64,
    ) -> Self {
        Self {
            vfs,
            dir: dir.to_owned(),
            segments,
            spares: Vec::new(),
            max_spares,
            preallocate,
            written: 0,
            next_index: 0,
            dirty: Vec::new(),
            room: Vec::new(),
        }
    }

    /// Writes the queue, in order.
    pub(super) fn write(&mut self, queue: &Mutex<AppendQueue>) -> Result<()> {
        let taken = queue.lock().take(std::mem::take(&mut self.room));
        self.write_taken(taken)
    }

    pub(super) fn write_taken(&mut self, QueuedChunks { full, last }: QueuedChunks) -> Result<()> {
        for chunk in full {
            self.write_chunk(chunk)?;
        }
        let mut room = self.write_chunk(last)?;
        if room.capacity() <= MAX_ROOM {
            room.clear();
            self.room = room;
        }
        Ok(())
    }

    /// Writes a chunk; returns its buffer.
    fn write_chunk(&mut self, mut chunk: WriteChunk) -> Result<Vec<u8>> {
        if let Some(header) = chunk.begins {
            let spare = self.spares.pop();
            let made = LogSegment::create(&*self.vfs, &self.dir, &header, spare.as_deref())?;
            self.segments.insert(header.number, Arc::new(made));
        }
        if !chunk.bytes.is_empty() {
            let segment = self.segment(chunk.segment)?;
            segment.write(chunk.offset, &mut chunk.bytes, self.preallocate)?;
            if !self
                .dirty
                .iter()
                .any(|dirty| dirty.identity == segment.identity)
            {
                self.dirty.push(segment);
            }
        }
        self.written = chunk.end;
        self.next_index = chunk.next_index;
        Ok(chunk.bytes)
    }

    /// Truncates what a write without space has left after the last complete record, so that
    /// opening does not find it; returns the number of the segment with that record.
    pub(super) fn roll_back(&mut self) -> Result<u64> {
        let begun = |segment: &Arc<LogSegment>| segment.identity.base >= self.written;
        let segments = std::mem::take(&mut self.segments);
        let (dropped, kept): (BTreeMap<_, _>, _) = segments
            .into_iter()
            .partition(|(_, segment)| begun(segment));
        self.segments = kept;
        self.dirty
            .retain(|segment| !dropped.contains_key(&segment.identity.segment));
        for (number, segment) in dropped {
            segment.cut(SEGMENT_HEADER_BYTES as u64)?;
            drop(segment);
            self.vfs.remove(&path_of(&self.dir, number))?;
        }
        let Some((number, tail)) = self.segments.last_key_value() else {
            return Err(Error::corruption(&self.dir, 0, "the log has no segment"));
        };
        tail.cut(self.written.saturating_sub(tail.identity.base))?;
        Ok(*number)
    }

    /// Creates the segment in which a log without space continues, and reserves space in it. If
    /// that fails, it is removed.
    pub(super) fn resume(&mut self, header: &SegmentHeader, reserve: u64) -> Result<()> {
        let made = LogSegment::create(&*self.vfs, &self.dir, header, None);
        let made = made.and_then(|segment| segment.fill(reserve).map(|()| segment));
        match made {
            Ok(segment) => {
                self.segments.insert(header.number, Arc::new(segment));
                Ok(())
            }
            Err(error) => {
                // What stays is overwritten by the next try.
                drop(self.vfs.remove(&path_of(&self.dir, header.number)));
                Err(error)
            }
        }
    }

    /// A segment that is in use.
    pub(super) fn segment(&self, number: u64) -> Result<Arc<LogSegment>> {
        let missing = || {
            let path = path_of(&self.dir, number);
            Error::corruption(&path, 0, "the segment is not in use")
        };
        self.segments.get(&number).cloned().ok_or_else(missing)
    }

    /// The segments to sync so that everything up to the returned position is durable.
    pub(super) fn take_dirty(&mut self) -> (Vec<Arc<LogSegment>>, u64) {
        (std::mem::take(&mut self.dirty), self.written)
    }

    /// Releases the segments below a number.
    pub(super) fn drop_before(&mut self, number: u64) -> Result<()> {
        let needed = self.segments.split_off(&number);
        for (number, segment) in std::mem::replace(&mut self.segments, needed) {
            let path = path_of(&self.dir, number);
            // Readers must not find other records there.
            match Arc::into_inner(segment) {
                Some(_) => self.reuse(path)?,
                None => self.vfs.remove(&path)?,
            }
        }
        Ok(())
    }

    /// Keeps a file for a new segment, or removes it if there are enough.
    pub(super) fn reuse(&mut self, path: PathBuf) -> Result<()> {
        if self.spares.len() < self.max_spares {
            self.spares.push(path);
            return Ok(());
        }
        self.vfs.remove(&path)
    }

    /// The segments in use, each with its end offset.
    pub(super) fn extents(&self) -> Vec<(Arc<LogSegment>, u64)> {
        let mut extents = Vec::with_capacity(self.segments.len());
        let mut end = self.written;
        for segment in self.segments.values().rev() {
            extents.push((
                Arc::clone(segment),
                end.saturating_sub(segment.identity.base),
            ));
            end = segment.identity.base;
        }
        extents.reverse();
        extents
    }
}
