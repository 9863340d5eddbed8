//! Documents for a rebuild: read in one snapshot, in `PostgreSQL`'s binary copy format.
//!
//! The columns are collection, key, version, created, updated, body. Block boundaries are
//! arbitrary.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use rillbase_binary_format::ByteReader;
use rillbase_live::message::ResultRow;
use rillbase_live::snapshot::PgSnapshot;

/// The documents that a node needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildScope {
    /// The collections.
    pub collections: BTreeSet<[u8; 16]>,
    /// Documents whose key hash, divided by `partitions`, leaves this remainder.
    pub partition: u16,
    /// The number of partitions.
    pub partitions: u16,
}

/// What is known before the first document arrives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RebuildSnapshot {
    /// The snapshot in which the documents are read.
    pub snapshot: PgSnapshot,
    /// By collection, the version of its access rules in that snapshot.
    pub rules: HashMap<[u8; 16], u64>,
}

/// A source of documents.
pub trait DocumentSource {
    /// Takes a snapshot and starts reading in it.
    fn open(&mut self, scope: &RebuildScope) -> Result<RebuildSnapshot, DocumentReadError>;
    /// The next block of the copy; `None` at the end.
    fn next_block(&mut self) -> Result<Option<Vec<u8>>, DocumentReadError>;
}

/// Why documents could not be read, for the log.
#[derive(Debug)]
pub struct DocumentReadError(pub String);

impl fmt::Display for DocumentReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the documents could not be read: {}", self.0)
    }
}

impl std::error::Error for DocumentReadError {}

/// Parses a snapshot in `PostgreSQL`'s form, followed by space-separated `collection=rules
/// version`, the collection in 32 hexadecimal digits.
pub fn parse_opened(text: &str) -> Option<RebuildSnapshot> {
    let mut words = text.split(' ');
    let snapshot = parse_snapshot(words.next()?)?;
    let rule = |word: &str| {
        let (collection, version) = word.split_once('=')?;
        let collection = u128::from_str_radix(collection, 16).ok()?;
        Some((collection.to_be_bytes(), version.parse().ok()?))
    };
    let rules = words.map(rule).collect::<Option<_>>()?;
    Some(RebuildSnapshot { snapshot, rules })
}

/// Parses `xmin:xmax:xip,…`.
pub fn parse_snapshot(text: &str) -> Option<PgSnapshot> {
    let mut parts = text.split(':');
    let xmin = parts.next()?.parse().ok()?;
    let xmax = parts.next()?.parse().ok()?;
    let running = parts.next()?;
    let running = running.split(',').filter(|xid| !xid.is_empty());
    Some(PgSnapshot {
        xmin,
        xmax,
        running: running.map(|xid| xid.parse().ok()).collect::<Option<_>>()?,
    })
}

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";
/// Signature, flags, and the length of an absent extension.
const HEADER_BYTES: usize = 19;
const COLUMNS: i16 = 6;
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Decodes rows from blocks.
#[derive(Debug, Default)]
pub struct CopyReader {
    /// Bytes that were not decoded yet.
    rest: Vec<u8>,
    begun: bool,
    ended: bool,
}

/// A collection and one of its documents.
pub type CollectionRow = ([u8; 16], ResultRow);

impl CopyReader {
    /// Takes the next block and passes the rows that are complete now.
    pub fn push(
        &mut self,
        block: &[u8],
        rows: &mut Vec<CollectionRow>,
    ) -> Result<(), DocumentReadError> {
        self.rest.extend_from_slice(block);
        let mut reader = ByteReader::new(&self.rest);
        if !self.begun {
            let Ok(header) = reader.take(HEADER_BYTES) else {
                return Ok(());
            };
            if !header.starts_with(SIGNATURE) {
                return Err(DocumentReadError("not a binary copy".into()));
            }
            self.begun = true;
        }
        let mut left = reader.rest().len();
        while !self.ended {
            match row(&mut reader)? {
                CopyItem::Row(row) => rows.push(row),
                CopyItem::End => self.ended = true,
                CopyItem::CutOff => break,
            }
            left = reader.rest().len();
        }
        self.rest.drain(..self.rest.len() - left);
        Ok(())
    }

    /// Rejects a copy that has not reached its end.
    pub fn finish(self) -> Result<(), DocumentReadError> {
        if self.ended && self.rest.is_empty() {
            Ok(())
        } else {
            Err(DocumentReadError("the copy is cut off".into()))
        }
    }
}

enum CopyItem {
    Row(CollectionRow),
    End,
    CutOff,
}

fn row(reader: &mut ByteReader<'_>) -> Result<CopyItem, DocumentReadError> {
    match reader.array().map(i16::from_be_bytes) {
        Err(_) => Ok(CopyItem::CutOff),
        Ok(-1) => Ok(CopyItem::End),
        Ok(COLUMNS) => columns(reader),
        Ok(_) => Err(DocumentReadError("a row has unexpected columns".into())),
    }
}

fn columns(reader: &mut ByteReader<'_>) -> Result<CopyItem, DocumentReadError> {
    let mut cells: [&[u8]; COLUMNS as usize] = [&[]; COLUMNS as usize];
    for cell in &mut cells {
        let Ok(length) = reader.array().map(i32::from_be_bytes) else {
            return Ok(CopyItem::CutOff);
        };
        let length =
            usize::try_from(length).map_err(|_| DocumentReadError("a cell is null".into()))?;
        let Ok(bytes) = reader.take(length) else {
            return Ok(CopyItem::CutOff);
        };
        *cell = bytes;
    }
    parse_row(cells)
        .map(CopyItem::Row)
        .ok_or_else(|| DocumentReadError("a cell has another type".into()))
}

fn parse_row(
    [collection, key, version, created, updated, body]: [&[u8]; 6],
) -> Option<CollectionRow> {
    let time_ms = |cell: &[u8]| -> Option<i64> {
        let us = i64::from_be_bytes(cell.try_into().ok()?);
        Some(us.checked_add(EPOCH_2000_US)?.div_euclid(1_000))
    };
    let row = ResultRow {
        key: key.into(),
        version: u64::from_be_bytes(version.try_into().ok()?),
        created_ms: time_ms(created)?,
        updated_ms: time_ms(updated)?,
        body: body.into(),
    };
    Some((collection.try_into().ok()?, row))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy_of(rows: usize) -> Vec<u8> {
        let mut copy = SIGNATURE.to_vec();
        copy.extend([0; 8]);
        for number in 0..rows {
            copy.extend(COLUMNS.to_be_bytes());
            let version = (number as u64 + 1).to_be_bytes();
            let cells: [&[u8]; 6] = [
                &[7; 16],
                b"key",
                &version,
                &1_000_i64.to_be_bytes(),
                &[0; 8],
                b"body",
            ];
            for cell in cells {
                copy.extend(i32::try_from(cell.len()).unwrap().to_be_bytes());
                copy.extend(cell);
            }
        }
        copy.extend((-1_i16).to_be_bytes());
        copy
    }

    #[test]
    fn rows_are_read_wherever_blocks_are_cut() {
        let copy = copy_of(3);
        for size in [1, 7, 50, copy.len()] {
            let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
            for block in copy.chunks(size) {
                reader.push(block, &mut rows).unwrap();
            }
            reader.finish().unwrap();
            let versions: Vec<u64> = rows.iter().map(|(_, row)| row.version).collect();
            assert_eq!(versions, [1, 2, 3], "blocks of {size}");
            let (collection, row) = &rows[0];
            assert_eq!(
                (collection, &*row.key, &*row.body),
                (&[7; 16], &b"key"[..], &b"body"[..])
            );
            assert_eq!(row.created_ms, 946_684_800_001);
        }
    }

    #[test]
    fn a_copy_that_stops_early_or_is_none_is_refused() {
        let copy = copy_of(2);
        let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
        reader.push(&copy[..copy.len() - 1], &mut rows).unwrap();
        assert!(reader.finish().is_err());
        assert!(CopyReader::default().push(&[b'x'; 40], &mut rows).is_err());
    }

    #[test]
    fn the_versions_of_access_rules_come_with_the_snapshot() {
        let collection = format!("{}07", "0".repeat(30));
        let opened = parse_opened(&format!("10:20:12 {collection}=3")).unwrap();
        assert_eq!(opened.snapshot.running, [12]);
        let mut expected = [0; 16];
        expected[15] = 7;
        assert_eq!(opened.rules, HashMap::from([(expected, 3)]));
        assert!(parse_opened("10:20:12").unwrap().rules.is_empty());
        assert!(parse_opened("10:20: x").is_none());
    }

    #[test]
    fn a_snapshot_is_read_as_postgresql_writes_it() {
        let snapshot = parse_snapshot("10:20:12,15").unwrap();
        assert_eq!(
            (snapshot.xmin, snapshot.xmax, snapshot.running),
            (10, 20, vec![12, 15])
        );
        assert_eq!(parse_snapshot("10:10:").unwrap().running, Vec::<u64>::new());
        assert!(parse_snapshot("10:x:").is_none());
    }
}
