//! Reading a range of records.

use std::sync::Arc;

use super::format::{BlockReference, RecordKind, WalVersion, decode_references};
use super::scan::{Raw, Scanner};
use super::segment::LogSegment;
use super::spans::RecordSpan;
use crate::error::{Error, Result};

/// A record as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalRecord {
    /// Its index: each record has the next higher one.
    pub index: u64,
    /// The format of its segment: the caller's format may have changed with it.
    pub version: WalVersion,
    /// The caller's bytes.
    pub body: Vec<u8>,
    /// The blocks that it refers to.
    pub references: Vec<BlockReference>,
}

/// The records of a range, in order. It ends at the first error.
#[derive(Debug)]
pub struct WalRecords {
    spans: std::vec::IntoIter<(RecordSpan, Arc<LogSegment>)>,
    /// Records of the current span.
    batch: std::vec::IntoIter<WalRecord>,
    from: u64,
    until: u64,
    failed: bool,
}

impl WalRecords {
    pub(super) fn new(spans: Vec<(RecordSpan, Arc<LogSegment>)>, from: u64, until: u64) -> Self {
        Self {
            spans: spans.into_iter(),
            batch: Vec::new().into_iter(),
            from,
            until,
            failed: false,
        }
    }
}

impl Iterator for WalRecords {
    type Item = Result<WalRecord>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.failed {
                return None;
            }
            if let Some(record) = self.batch.next() {
                return Some(Ok(record));
            }
            let (span, segment) = self.spans.next()?;
            match read_span(&segment, &span, self.from, self.until) {
                Ok(batch) => self.batch = batch.into_iter(),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
    }
}

/// The records of a range in one span. A span is small unless one record is large.
fn read_span(
    segment: &LogSegment,
    span: &RecordSpan,
    from: u64,
    until: u64,
) -> Result<Vec<WalRecord>> {
    let mut scanner = Scanner::new(segment.file(), segment.identity, span.start, span.end);
    let mut records = Vec::new();
    let mut expected = span.first;
    while expected < span.until.min(until) {
        let offset = scanner.offset();
        let damaged = |detail: &str| Error::corruption(segment.file().path(), offset, detail);
        let Some(raw) = scanner.next()? else {
            return Err(damaged("the record is no longer valid"));
        };
        if !matches!(raw.kind, RecordKind::Data | RecordKind::Referring) {
            continue;
        }
        let index = expected;
        if raw.index.is_some_and(|own| own != index) {
            return Err(damaged("the record has another index"));
        }
        expected = expected.saturating_add(1);
        if index >= from {
            let read = record(&raw, index, segment.identity.version);
            records.push(read.ok_or_else(|| damaged("the record is malformed"))?);
        }
    }
    Ok(records)
}

fn record(raw: &Raw<'_>, index: u64, version: WalVersion) -> Option<WalRecord> {
    let (references, start) = match raw.kind {
        RecordKind::Referring => decode_references(raw.body)?,
        _ => (Vec::new(), 0),
    };
    Some(WalRecord {
        index,
        version,
        body: raw.body.get(start..)?.to_vec(),
        references,
    })
}
