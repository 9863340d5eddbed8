//! Records that have an index and a place, and wait to be written.
//!
//! Encoding is short and under one lock; writing takes whatever has gathered meanwhile, so that one
//! system call serves many threads.

use super::format::{
    Floor, Home, Kind, SEGMENT_HEADER_BYTES, SegmentHeader, Version, encode_index,
};
use super::record;
use super::scan::END_MARK_BYTES;
use super::spans::Spans;
use crate::coding::to_usize;

/// Encoded records that go to one place.
#[derive(Debug)]
pub(super) struct Chunk {
    /// Set if the segment is to be made first.
    pub(super) begins: Option<SegmentHeader>,
    pub(super) segment: u64,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl Chunk {
    fn at(segment: u64, offset: u64, bytes: Vec<u8>) -> Self {
        Self {
            begins: None,
            segment,
            offset,
            bytes,
        }
    }
}

/// The end of the log as the next record will find it.
#[derive(Debug)]
pub(super) struct Queue {
    /// Chunks that are followed by another one, and the last one.
    full: Vec<Chunk>,
    open: Chunk,
    pub(super) spans: Spans,
    pub(super) floor: Floor,
    /// The newest floor that is durable, with the records below it. Only this may stand in a
    /// header, which is durable before the records of earlier segments are.
    pub(super) durable_floor: Floor,
    pub(super) next_index: u64,
    /// The segment that is written, and its end as an offset.
    home: Home,
    used: u64,
    /// A segment is full when its next record might end behind this offset.
    segment_bytes: u64,
}

impl Queue {
    /// The end of a log whose newest segment was just made.
    pub(super) fn new(header: &SegmentHeader, spans: Spans, segment_bytes: u64) -> Self {
        Self {
            full: Vec::new(),
            open: Chunk::at(header.number, SEGMENT_HEADER_BYTES as u64, Vec::new()),
            spans,
            floor: header.floor,
            durable_floor: header.floor,
            next_index: header.first_index,
            home: header.home(),
            used: SEGMENT_HEADER_BYTES as u64,
            segment_bytes,
        }
    }

    /// The position behind the last record.
    pub(super) fn end(&self) -> u64 {
        self.home.base.saturating_add(self.used)
    }

    /// The segment that holds a record, or will.
    pub(super) fn segment_of(&self, index: u64) -> u64 {
        self.spans.segment_of(index).unwrap_or(self.home.segment)
    }

    /// Adds a record of the caller and returns its index.
    pub(super) fn add(&mut self, kind: Kind, body: &[&[u8]], synced: u64) -> u64 {
        let index = self.next_index;
        let start = self.encode(kind, body, synced);
        self.spans.add(index, self.home.segment, start, self.used);
        self.next_index = index.saturating_add(1);
        index
    }

    /// Adds a record that drops those from `index` on.
    pub(super) fn truncate_from(&mut self, index: u64, synced: u64) {
        self.encode(Kind::Truncate, &[&encode_index(index)], synced);
        self.spans.truncate_from(index);
        self.next_index = index;
    }

    /// Adds a record about the log itself.
    pub(super) fn note(&mut self, kind: Kind, body: &[u8], synced: u64) {
        self.encode(kind, &[body], synced);
    }

    /// Encodes a record and returns the offset where it begins.
    fn encode(&mut self, kind: Kind, body: &[&[u8]], synced: u64) -> u64 {
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
        record::encode(&mut self.open.bytes, self.home, start, synced, kind, body);
        let size = self.open.bytes.len().saturating_sub(before);
        self.used = start.saturating_add(size as u64);
        start
    }

    fn begin_segment(&mut self, synced: u64) {
        let header = SegmentHeader {
            version: Version::NEWEST,
            number: self.home.segment.saturating_add(1),
            previous: self.home.segment,
            base: self.end(),
            first_index: self.next_index,
            floor: self.durable_floor,
            synced,
        };
        self.home = header.home();
        self.used = SEGMENT_HEADER_BYTES as u64;
        let mut next = Chunk::at(self.home.segment, self.used, Vec::new());
        next.begins = Some(header);
        self.full.push(std::mem::replace(&mut self.open, next));
    }

    /// Takes all that waits, in order, and the position behind it. What comes next is gathered in
    /// `room`, which is empty.
    pub(super) fn take(&mut self, room: Vec<u8>) -> Taken {
        let next = Chunk::at(self.home.segment, self.used, room);
        Taken {
            full: std::mem::take(&mut self.full),
            last: std::mem::replace(&mut self.open, next),
            end: self.end(),
        }
    }
}

/// What waited to be written.
#[derive(Debug)]
pub(super) struct Taken {
    /// Chunks that are followed by another one, in order, and the last one.
    pub(super) full: Vec<Chunk>,
    pub(super) last: Chunk,
    /// The position behind it.
    pub(super) end: u64,
}
