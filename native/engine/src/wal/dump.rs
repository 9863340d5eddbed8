//! A segment as it stands, for people.

use std::path::Path;

use super::format::{Kind, SEGMENT_HEADER_BYTES, SegmentHeader, decode_floor, decode_references};
use super::scan::Scanner;
use super::segment::number_of;
use crate::error::{Error, Result};
use crate::vfs::Vfs;

/// What stands in a segment.
#[derive(Debug)]
pub enum Dumped<'a> {
    /// A record of the caller.
    Data {
        /// Its index.
        index: u64,
        /// Its bytes.
        body: &'a [u8],
    },
    /// Anything else, as a line of text.
    Other(String),
}

/// Tells `show` what a segment holds, whether or not it still counts, up to its end or to damage.
pub fn dump(vfs: &dyn Vfs, path: &Path, show: &mut dyn FnMut(Dumped<'_>)) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let number = name
        .and_then(number_of)
        .ok_or_else(|| Error::InvalidArgument {
            what: format!("{} is no segment of a log", path.display()),
        })?;
    let file = vfs.open_read(path)?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES];
    file.read_exact_at(0, &mut bytes)?;
    let header = SegmentHeader::decode(&bytes, number).map_err(|fault| {
        Error::corruption(path, 0, format!("the header is not sound: {fault:?}"))
    })?;
    show(Dumped::Other(format!("{header:?}")));
    let start = SEGMENT_HEADER_BYTES as u64;
    let mut scanner = Scanner::new(&*file, number, header.base, start, u64::MAX);
    while let Some(record) = scanner.next()? {
        let index = record.index;
        match record.kind {
            Kind::Data => show(Dumped::Data {
                index,
                body: record.body,
            }),
            Kind::Referring => {
                let (references, at) = decode_references(record.body).unwrap_or_default();
                show(Dumped::Other(format!(
                    "record {index} refers to {references:?}"
                )));
                let body = record.body.get(at..).unwrap_or_default();
                show(Dumped::Data { index, body });
            }
            Kind::Truncate => show(Dumped::Other(format!(
                "records from {index} on are dropped"
            ))),
            Kind::Floor => show(Dumped::Other(match decode_floor(record.body) {
                Some(floor) => format!("records below {} are dropped", floor.index),
                None => "a floor that is misshapen".to_owned(),
            })),
            Kind::Close => show(Dumped::Other("closed".to_owned())),
        }
    }
    let offset = scanner.offset();
    show(Dumped::Other(format!(
        "no record stands at offset {offset}"
    )));
    Ok(())
}
