//! Records that have an index and a position, and wait to be written.
//!
//! Encoding is short and under one lock; a write takes everything that has accumulated, so that one
//! system call serves many threads.

use super::format::{
    Floor, RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader, SegmentIdentity, WalVersion,
    encode_index,
};
use super::record;
use super::scan::END_MARK_BYTES;
use super::spans::Spans;
use crate::coding::to_usize;

/// Encoded contiguous records.
#[derive(Debug)]
pub(super) struct WriteChunk {
    /// Set if the segment must be created first.
    pub(super) begins: Option<SegmentHeader>,
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
    /// The position after it, and the index of the next record; set when it is taken.
    pub(super) end: u64,
    pub(super) next_index: u64,
}

impl WriteChunk {
    fn at(segment: u64, offset: u64, bytes: Vec<u8>) -> Self {
        Self {
            begins: None,
            segment,
            offset,
            bytes,
            end: 0,
            next_index: 0,
        }
    }
}

/// Where a stalled log continues.
#[derive(Debug, Clone)]
struct Stalled {
    /// The segment that holds the last record.
    tail: u64,
    /// The write that lacked space.
    why: String,
}

/// The end of the log for the next record.
#[derive(Debug)]
pub(super) struct AppendQueue {
    /// Chunks that are followed by another one, and the last one.
    full: Vec<WriteChunk>,
    open: WriteChunk,
    pub(super) spans: Spans,
    pub(super) floor: Floor,
    /// The newest durable floor, with the records below it. Only this may be in a header, which is
    /// durable before the records of earlier segments are.
    pub(super) durable_floor: Floor,
    pub(super) next_index: u64,
    /// The current segment, and its end offset.
    identity: SegmentIdentity,
    used: u64,
    /// A segment is full when its next record might end after this offset.
    segment_bytes: u64,
    /// Set while there is no space: records are rejected.
    stalled: Option<Stalled>,
    /// Where each rollback truncated the log; never decreasing.
    cuts: Vec<u64>,
}

impl AppendQueue {
    /// The end of a log whose newest segment was just created.
    pub(super) fn new(header: &SegmentHeader, spans: Spans, segment_bytes: u64) -> Self {
        Self {
            full: Vec::new(),
            open: WriteChunk::at(header.number, SEGMENT_HEADER_BYTES as u64, Vec::new()),
            spans,
            floor: header.floor,
            durable_floor: header.floor,
            next_index: header.first_index,
            identity: header.identity(),
            used: SEGMENT_HEADER_BYTES as u64,
            segment_bytes,
            stalled: None,
            cuts: Vec::new(),
        }
    }

    /// Why records are rejected now, if they are.
    pub(super) fn why_stalled(&self) -> Option<&str> {
        self.stalled.as_ref().map(|stalled| stalled.why.as_str())
    }

    /// The number of rollbacks.
    pub(super) fn epoch(&self) -> usize {
        self.cuts.len()
    }

    /// Whether records that were added in an epoch, up to a position, were dropped by a rollback.
    pub(super) fn dropped(&self, epoch: usize, end: u64) -> bool {
        self.cuts.get(epoch).is_some_and(|cut| *cut < end)
    }

    /// The number of the newest segment.
    pub(super) fn newest_segment(&self) -> u64 {
        self.identity.segment
    }

    /// Drops everything that was not written: the log ends at a position, in the segment `tail`,
    /// and rejects records until it is resumed.
    pub(super) fn roll_back(&mut self, (end, next_index): (u64, u64), tail: u64, why: String) {
        self.cuts.push(end);
        self.full.clear();
        self.spans.truncate_from(next_index);
        self.next_index = next_index;
        // The number stays above that of every earlier segment.
        self.identity.base = end;
        self.used = 0;
        self.open = WriteChunk::at(self.identity.segment, self.used, Vec::new());
        self.stalled.get_or_insert(Stalled { tail, why });
    }

    /// The header of the segment that continues a stalled log.
    pub(super) fn resuming_header(&self, synced: u64) -> Option<SegmentHeader> {
        let stalled = self.stalled.as_ref()?;
        Some(SegmentHeader {
            previous: stalled.tail,
            ..self.next_header(synced)
        })
    }

    /// Continues in a segment that was created for a stalled log.
    pub(super) fn resume(&mut self, header: &SegmentHeader) {
        self.stalled = None;
        self.identity = header.identity();
        self.used = SEGMENT_HEADER_BYTES as u64;
        self.open = WriteChunk::at(self.identity.segment, self.used, Vec::new());
    }

    /// The position after the last record.
    pub(super) fn end(&self) -> u64 {
        self.identity.base.saturating_add(self.used)
    }

    /// The segment that holds a record, or will.
    pub(super) fn segment_of(&self, index: u64) -> u64 {
        self.spans
            .segment_of(index)
            .unwrap_or(self.identity.segment)
    }

    /// Adds a record of the caller and returns its index.
    pub(super) fn add(&mut self, kind: RecordKind, body: &[&[u8]], synced: u64) -> u64 {
        let index = self.next_index;
        let start = self.encode(kind, body, synced);
        self.spans.add(index, self.identity, start, self.used);
        self.next_index = index.saturating_add(1);
        index
    }

    /// Adds a record that drops those from `index` on.
    pub(super) fn truncate_from(&mut self, index: u64, synced: u64) {
        self.encode(RecordKind::Truncate, &[&encode_index(index)], synced);
        self.spans.truncate_from(index);
        self.next_index = index;
    }

    /// Adds a record about the log itself.
    pub(super) fn note(&mut self, kind: RecordKind, body: &[u8], synced: u64) {
        self.encode(kind, &[body], synced);
    }

    /// Encodes a record and returns its start offset.
    fn encode(&mut self, kind: RecordKind, body: &[&[u8]], synced: u64) -> u64 {
        let length: usize = body.iter().map(|part| part.len()).sum();
        let most = record::most_bytes(length);
        let empty = self.used == SEGMENT_HEADER_BYTES as u64;
        if !empty && self.used.saturating_add(most) > self.segment_bytes {
            self.begin_segment(synced);
        }
        let start = self.used;
        let before = self.open.bytes.len();
        // With room for the end mark.
        self.open.bytes.reserve(to_usize(most) + END_MARK_BYTES);
        record::encode(
            &mut self.open.bytes,
            self.identity,
            start,
            synced,
            kind,
            body,
        );
        let size = self.open.bytes.len().saturating_sub(before);
        self.used = start.saturating_add(size as u64);
        start
    }

    fn next_header(&self, synced: u64) -> SegmentHeader {
        SegmentHeader {
            version: WalVersion::NEWEST,
            number: self.identity.segment.saturating_add(1),
            previous: self.identity.segment,
            base: self.end(),
            first_index: self.next_index,
            floor: self.durable_floor,
            synced,
        }
    }

    fn begin_segment(&mut self, synced: u64) {
        let header = self.next_header(synced);
        self.identity = header.identity();
        self.used = SEGMENT_HEADER_BYTES as u64;
        let mut next = WriteChunk::at(self.identity.segment, self.used, Vec::new());
        next.begins = Some(header);
        let mut full = std::mem::replace(&mut self.open, next);
        full.end = header.base;
        full.next_index = header.first_index;
        self.full.push(full);
    }

    /// Takes everything queued, in order, and the position after it. Later records are collected in
    /// `room`, which is empty.
    pub(super) fn take(&mut self, room: Vec<u8>) -> QueuedChunks {
        let next = WriteChunk::at(self.identity.segment, self.used, room);
        let mut last = std::mem::replace(&mut self.open, next);
        last.end = self.end();
        last.next_index = self.next_index;
        QueuedChunks {
            full: std::mem::take(&mut self.full),
            last,
        }
    }
}

/// Queued chunks that were taken.
#[derive(Debug)]
pub(super) struct QueuedChunks {
    /// Chunks that are followed by another one, in order, and the last one.
    pub(super) full: Vec<WriteChunk>,
    pub(super) last: WriteChunk,
}
