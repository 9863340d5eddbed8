//! Reading a segment from front to back.

use std::path::Path;

use super::format::{ALIGNMENT, Kind, MAX_BODY_BYTES, RECORD_HEADER_BYTES, RecordHeader};
use crate::checksum::agree;
use crate::error::{Error, Result};
use crate::vfs::RandomRead;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 256 << 10;

/// A record as it stands in a segment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw<'a> {
    pub(super) kind: Kind,
    pub(super) index: u64,
    pub(super) synced: u64,
    /// Offset of its first byte in the segment, and of the byte after it.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) body: &'a [u8],
}

/// Reads the records of a segment one after the other.
#[derive(Debug)]
pub(super) struct Scanner<'a> {
    window: Window<'a>,
    segment: u64,
    base: u64,
    offset: u64,
    limit: u64,
}

impl<'a> Scanner<'a> {
    /// A scanner of the records from `offset` on that end at or before `limit`.
    pub(super) fn new(
        file: &'a dyn RandomRead,
        segment: u64,
        base: u64,
        offset: u64,
        limit: u64,
    ) -> Self {
        Self {
            window: Window::new(file),
            segment,
            base,
            offset,
            limit,
        }
    }

    /// The offset that the next record should have.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    /// The next record; `None` where no sound one stands.
    pub(super) fn next(&mut self) -> Result<Option<Raw<'_>>> {
        let start = self.offset;
        let header = self.window.get(start, RECORD_HEADER_BYTES)?;
        let position = self.base.saturating_add(start);
        let Some(header) = RecordHeader::decode(header, self.segment, position) else {
            return Ok(None);
        };
        let end = start.saturating_add(header.record_bytes() as u64);
        if end > self.limit {
            return Ok(None);
        }
        let size = header.record_bytes() - RECORD_HEADER_BYTES;
        let place = start.saturating_add(RECORD_HEADER_BYTES as u64);
        let path = self.window.file.path();
        let padded = self.window.get(place, size)?;
        let sound = agree(header.body_checksum, crc32c::crc32c(padded));
        if padded.len() < size || !sound {
            return Ok(None);
        }
        let Some(kind) = Kind::from_number(header.kind) else {
            return Err(unknown_kind(path, start, header.kind));
        };
        self.offset = end;
        Ok(Some(Raw {
            kind,
            index: header.index,
            synced: header.synced,
            start,
            end,
            body: padded.get(..header.length).unwrap_or(&[]),
        }))
    }

    /// Goes on at another offset.
    pub(super) fn skip_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Whether zeros stand where the next record should, as they do behind the last one.
    pub(super) fn at_end_mark(&mut self) -> Result<bool> {
        let bytes = self.window.get(self.offset, ALIGNMENT)?;
        Ok(bytes.iter().all(|byte| *byte == 0))
    }

    /// Looks behind a place without a sound record for ones that stand after it.
    pub(super) fn beyond(mut self) -> Result<Beyond> {
        let mut beyond = Beyond::default();
        let mut offset = self.offset;
        loop {
            let bytes = self.window.get(offset, RECORD_HEADER_BYTES)?;
            if bytes.len() < RECORD_HEADER_BYTES {
                return Ok(beyond);
            }
            let position = self.base.saturating_add(offset);
            let mut step = ALIGNMENT;
            if let Some(header) = RecordHeader::decode(bytes, self.segment, position) {
                beyond.records += 1;
                beyond.synced = beyond.synced.max(header.synced);
                step = RECORD_HEADER_BYTES;
            }
            offset = offset.saturating_add(step as u64);
        }
    }
}

fn unknown_kind(path: &Path, offset: u64, kind: u8) -> Error {
    Error::corruption(path, offset, format!("no record is of kind {kind}"))
}

/// What stands behind damage.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Beyond {
    /// Sound headers of records.
    pub(super) records: u64,
    /// The highest position that one of them says to be synced.
    pub(super) synced: u64,
}

/// A part of a file in memory, which moves forward.
#[derive(Debug)]
struct Window<'a> {
    file: &'a dyn RandomRead,
    bytes: Vec<u8>,
    start: u64,
}

impl<'a> Window<'a> {
    fn new(file: &'a dyn RandomRead) -> Self {
        Self {
            file,
            bytes: Vec::new(),
            start: 0,
        }
    }

    /// The bytes at a place: fewer than asked only where the file ends. A length that damage made
    /// up costs no memory beyond the file's size.
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
        let wanted = length.clamp(READ_BYTES, MAX_BODY_BYTES + ALIGNMENT);
        let left = self.file.len()?.saturating_sub(offset);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(wanted);
        self.bytes.resize(size, 0);
        self.start = offset;
        let read = self.file.read_at(offset, &mut self.bytes)?;
        self.bytes.truncate(read);
        Ok(())
    }
}
