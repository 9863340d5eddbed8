//! Locating records by index.

use super::format::SegmentIdentity;

/// A new span starts after this many bytes, so that few other records are read to find one.
const SPAN_BYTES: u64 = 64 << 10;

/// A part of one segment whose data records have the indexes `first..until`, in order. Records with
/// other indexes may follow them: they were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RecordSpan {
    pub(super) first: u64,
    pub(super) until: u64,
    pub(super) segment: u64,
    /// The position of its first byte in the log.
    position: u64,
    /// Offsets in the segment.
    pub(super) start: u64,
    pub(super) end: u64,
}

/// A sparse index of the log: spans in ascending order of indexes, without gaps.
#[derive(Debug, Default)]
pub(super) struct Spans {
    list: Vec<RecordSpan>,
    /// Whether dropped records follow the last span, so that nothing may be added to it.
    ended: bool,
}

impl Spans {
    /// Adds a data record, whose index follows the last one's.
    pub(super) fn add(&mut self, index: u64, segment: SegmentIdentity, start: u64, end: u64) {
        if let Some(last) = self.list.last_mut() {
            let near = start.saturating_sub(last.start) < SPAN_BYTES;
            if near && !self.ended && last.segment == segment.segment && last.until == index {
                last.until = index.saturating_add(1);
                last.end = end;
                return;
            }
        }
        self.ended = false;
        self.list.push(RecordSpan {
            first: index,
            until: index.saturating_add(1),
            segment: segment.segment,
            position: segment.base.saturating_add(start),
            start,
            end,
        });
    }

    /// Forgets the records from an index on.
    pub(super) fn truncate_from(&mut self, index: u64) {
        let kept = self.list.partition_point(|span| span.first < index);
        self.list.truncate(kept);
        self.ended = true;
        if let Some(last) = self.list.last_mut() {
            last.until = last.until.min(index);
        }
    }

    /// Forgets whole spans of records below an index.
    pub(super) fn drop_before(&mut self, index: u64) {
        let dropped = self.list.partition_point(|span| span.until <= index);
        self.list.drain(..dropped);
    }

    /// The spans that have records of a range.
    pub(super) fn within(&self, from: u64, until: u64) -> Vec<RecordSpan> {
        let start = self.list.partition_point(|span| span.until <= from);
        let rest = self.list.iter().skip(start);
        rest.take_while(|span| span.first < until)
            .copied()
            .collect()
    }

    /// The first record of the first span that starts at or after a position of the log.
    pub(super) fn first_from(&self, position: u64) -> Option<u64> {
        let at = self.list.partition_point(|span| span.position < position);
        self.list.get(at).map(|span| span.first)
    }

    /// The segment that holds a record.
    pub(super) fn segment_of(&self, index: u64) -> Option<u64> {
        let at = self.list.partition_point(|span| span.until <= index);
        let span = self.list.get(at)?;
        (span.first <= index).then_some(span.segment)
    }
}
