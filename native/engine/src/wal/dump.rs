//! A segment as text.

use std::path::Path;

use super::format::{
    RecordKind, SEGMENT_HEADER_BYTES, SegmentHeader, WalVersion, decode_floor, decode_references,
};
use super::scan::{Raw, Scanner};
use super::segment::number_of;
use crate::error::{Error, Result};
use crate::vfs::Vfs;

/// An item of a segment.
#[derive(Debug)]
pub enum Dumped<'a> {
    /// A record of the caller.
    Data {
        /// Its index.
        index: u64,
        /// The format of the segment.
        version: WalVersion,
        /// Its bytes.
        body: &'a [u8],
    },
    /// Anything else, as a line of text.
    Other(String),
}

/// Passes the contents of a segment to `show`, whether or not they are still valid, up to its end
/// or to damage.
pub fn dump(vfs: &dyn Vfs, path: &Path, show: &mut dyn FnMut(Dumped<'_>)) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name
        .and_then(number_of)
        .ok_or_else(|| Error::InvalidArgument {
            what: format!("{} is not a segment of a log", path.display()),
        })?;
    let file = vfs.open_read(path)?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_exact_at(0, &mut bytes)?;
    let header = SegmentHeader::decode(&bytes, number).map_err(|fault| {
        Error::corruption(path, 0, format!("the header is not valid: {fault:?}"))
    })?;
    show(Dumped::Other(format!("{header:?}")));
    let start = SEGMENT_HEADER_BYTES as u64;
    let mut scanner = Scanner::new(&*file, header.identity(), start, u64::MAX);
    let (version, mut next) = (header.version, header.first_index);
    while let Some(record) = scanner.next()? {
        let index = record.index.unwrap_or(next);
        next = next_index(&record, index);
        match record.kind {
            RecordKind::Data => show(Dumped::Data {
                index,
                version,
                body: record.body,
            }),
            RecordKind::Referring => {
                let (references, at) = decode_references(record.body).unwrap_or_default();
                show(Dumped::Other(format!(
                    "record {index} refers to {references:?}"
                )));
                let body = record.body.get(at..).unwrap_or_default();
                show(Dumped::Data {
                    index,
                    version,
                    body,
                });
            }
            RecordKind::Truncate => {
                show(Dumped::Other(format!("records from {next} on are dropped")));
            }
            RecordKind::Floor => show(Dumped::Other(match decode_floor(record.body) {
                Some(floor) => format!("records below {} are dropped", floor.index),
                None => "a malformed floor".to_owned(),
            })),
            RecordKind::Close => show(Dumped::Other("closed".to_owned())),
        }
    }
    let offset = scanner.offset();
    show(Dumped::Other(format!(
        "there is no record at offset {offset}"
    )));
    Ok(())
}

/// The index of the next data record.
fn next_index(record: &Raw<'_>, index: u64) -> u64 {
    match record.kind {
        RecordKind::Data | RecordKind::Referring => index.saturating_add(1),
        RecordKind::Truncate => record.truncates_from().unwrap_or(index),
        RecordKind::Floor | RecordKind::Close => index,
    }
}
