//! Reading a segment sequentially.

use std::path::Path;

use super::format::{MAX_BODY_BYTES, RecordKind, SegmentIdentity, decode_index};
use super::record::{MAX_HEADER_BYTES, RecordHeader, alignment};
use crate::checksum::agree;
use crate::error::{Error, Result};
use crate::vfs::RandomRead;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 256 << 10;

/// The number of zeros after the last record.
pub(super) const END_MARK_BYTES: usize = 8;

/// A record in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) kind: RecordKind,
    /// The index in its header, in version 1.
    pub(super) index: Option<u64>,
    pub(super) synced: u64,
    /// The offset of its first byte in the segment, and of the byte after it.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) body: &'a [u8],
}

impl Raw<'_> {
    /// The first index that a `Truncate` drops.
    pub(super) fn truncates_from(&self) -> Option<u64> {
        self.index.or_else(|| decode_index(self.body))
    }
}

/// Reads the records of a segment in order.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    window: FileWindow<'a>,
    identity: SegmentIdentity,
    offset: u64,
    limit: u64,
}

impl<'a> Scanner<'a> {
    /// A scanner of the records from `offset` on that end at or before `limit`.
    pub(super) fn new(
        file: &'a dyn RandomRead,
        identity: SegmentIdentity,
        offset: u64,
        limit: u64,
    ) -> Self {
        Self {
            window: FileWindow::new(file, limit),
            identity,
            offset,
            limit,
        }
    }

    /// The expected offset of the next record.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` if it is invalid.
    pub(super) fn next(&mut self) -> Result<Option<Raw<'_>>> {
        let start = self.offset;
        let Some(header) = self.header(start)? else {
            return Ok(None);
        };
        let end = start.saturating_add(header.record_bytes() as u64);
        if end > self.limit || !self.has_body(start, &header)? {
            return Ok(None);
        }
        let Some(kind) = RecordKind::from_number(header.kind) else {
            return Err(unknown_kind(self.window.file.path(), start, header.kind));
        };
        self.offset = end;
        let body_offset = start.saturating_add(header.bytes as u64);
        Ok(Some(Raw {
            kind,
            index: header.index,
            synced: header.synced,
            start,
            end,
            body: self.window.get(body_offset, header.length)?,
        }))
    }

    /// The header at an offset, if it is valid.
    fn header(&mut self, offset: u64) -> Result<Option<RecordHeader>> {
        let bytes = self.window.get(offset, MAX_HEADER_BYTES)?;
        Ok(RecordHeader::decode(bytes, self.identity, offset))
    }

    /// Whether the body of a header is present and valid.
    fn has_body(&mut self, offset: u64, header: &RecordHeader) -> Result<bool> {
        let body_offset = offset.saturating_add(header.bytes as u64);
        let size = header.padded_bytes();
        let body = self.window.get(body_offset, size)?;
        Ok(body.len() == size && agree(header.body_checksum, crc32c::crc32c(body)))
    }

    /// Continues at another offset.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Whether there are zeros in place of the next record, as after the last one.
    pub(super) fn at_end_mark(&mut self) -> Result<bool> {
        let bytes = self.window.get(self.offset, END_MARK_BYTES)?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// Searches for complete records after an invalid one. A header alone does not count: among
    /// millions of offsets one may look like a header by chance.
    pub(super) fn beyond(mut self) -> Result<Beyond> {
        let mut beyond = Beyond::default();
        let mut offset = self.offset;
        loop {
            let bytes = self.window.get(offset, MAX_HEADER_BYTES)?;
            if bytes.is_empty() {
                return Ok(beyond);
            }
            let mut step = alignment(self.identity.version);
            if let Some(header) = RecordHeader::decode(bytes, self.identity, offset)
                && self.has_body(offset, &header)?
            {
                beyond.records += 1;
                beyond.synced = beyond.synced.max(header.synced);
                step = header.record_bytes();
            }
            offset = offset.saturating_add(step as u64);
        }
    }
}

fn unknown_kind(path: &Path, offset: u64, kind: u8) -> Error {
    Error::corruption(path, offset, format!("unknown kind of record: {kind}"))
}

/// What follows damage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beyond {
    /// Complete records.
    pub(super) records: u64,
    /// The highest position that one of them says is synced.
    pub(super) synced: u64,
}

/// A sliding window over a file in memory.
#[derive(Debug)]
struct FileWindow<'a> {
    file: &'a dyn RandomRead,
    bytes: Vec<u8>,
    start: u64,
    /// Read-ahead does not go beyond this.
    limit: u64,
}

impl<'a> FileWindow<'a> {
    fn new(file: &'a dyn RandomRead, limit: u64) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            start: 0,
            limit,
        }
    }

    /// The bytes at an offset: fewer than requested only at the end of the file. A corrupt length
    /// needs no memory beyond the file's size.
    fn get(&mut self, offset: u64, length: usize) -> Result<&[u8]> {
        if !self.holds(offset, length) {
            self.load(offset, length)?;
        }
        let from = offset.saturating_sub(self.start);
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let rest = self.bytes.get(from..).unwrap_or(&[]);
        Ok(rest.get(..length).unwrap_or(rest))
    }

    fn holds(&self, offset: u64, length: usize) -> bool {
        let end = self.start.saturating_add(self.bytes.len() as u64);
        self.start <= offset && offset.saturating_add(length as u64) <= end
    }

    fn load(&mut self, offset: u64, length: usize) -> Result<()> {
        let ahead = usize::try_from(self.limit.saturating_sub(offset)).unwrap_or(usize::MAX);
        let target = length.max(ahead.min(READ_BYTES));
        let target = target.min(MAX_BODY_BYTES + MAX_HEADER_BYTES);
        let left = self.file.len()?.saturating_sub(offset);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(target);
        self.bytes.resize(size, 0);
        self.start = offset;
        let read = self.file.read_at(offset, &mut self.bytes)?;
        self.bytes.truncate(read);
        Ok(())
    }
}
