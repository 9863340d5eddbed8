//! Versions of documents as bytes, between a storage node and an app server.
//!
//! ```text
//! versions := version*
//! version  := number xid optional(body:slice)
//! ```
//!
//! Numbers are varints, a body is BSON, and `optional(x)` is 0, or 1 and x. A deleted document has
//! no body. Number and xid are 0 if there is neither a document nor a tombstone.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

/// The state of a document, without its key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct VersionRow<'a> {
    /// Its version.
    pub number: i64,
    /// What identifies the transaction that wrote it: the first sequence of its batch.
    pub xid: u64,
    /// BSON, unless the document does not exist.
    pub body: Option<&'a [u8]>,
}

/// Appends a version.
pub fn put_version(out: &mut Vec<u8>, version: &VersionRow<'_>) {
    // Versions are never negative.
    out.put_varint(u64::try_from(version.number).unwrap_or(0));
    out.put_varint(version.xid);
    out.put_optional_slice(version.body);
}

/// The versions that [`put_version`] wrote.
pub fn versions(bytes: &[u8]) -> ReadResult<Vec<VersionRow<'_>>> {
    let mut reader = ByteReader::new(bytes);
    let mut versions = Vec::new();
    while !reader.is_empty() {
        let number = reader.varint()?;
        versions.push(VersionRow {
            number: reader.check(i64::try_from(number).ok(), "a number of 63 bits")?,
            xid: reader.varint()?,
            body: reader.optional(ByteReader::slice)?,
        });
    }
    Ok(versions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_round_trip_and_cut_ones_are_malformed() {
        let expected = [
            VersionRow {
                number: 300,
                xid: 1 << 40,
                body: Some(b"body"),
            },
            VersionRow {
                number: i64::MAX,
                xid: u64::MAX,
                body: None,
            },
            VersionRow::default(),
        ];
        let mut bytes = Vec::new();
        for version in &expected {
            put_version(&mut bytes, version);
        }
        assert_eq!(versions(&bytes).unwrap(), expected);
        assert!(versions(&bytes[..bytes.len() - 1]).is_err());
        let mut large = Vec::new();
        large.put_varint(u64::MAX);
        large.extend([0, 0]);
        assert!(versions(&large).is_err());
    }
}
