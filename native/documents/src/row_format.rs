//! Candidate rows as bytes, between a storage node and an app server.
//!
//! ```text
//! rows := row*
//! row  := key:slice version created updated body:slice optional(entry:slice)
//! ```
//!
//! Numbers are varints, a body is BSON, and `optional(x)` is 0, or 1 and x.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::envelope::Meta;
use crate::selection::CandidateRow;

/// Appends a row.
pub fn put_row(out: &mut Vec<u8>, row: &CandidateRow<'_>) {
    out.put_slice(row.key);
    for number in [row.meta.version, row.meta.created_ms, row.meta.updated_ms] {
        // Versions and times are never negative.
        out.put_varint(u64::try_from(number).unwrap_or(0));
    }
    out.put_slice(row.body);
    out.put_optional_slice(row.entry);
}

/// The rows that [`put_row`] wrote.
pub fn rows(bytes: &[u8]) -> ReadResult<Vec<CandidateRow<'_>>> {
    let mut reader = ByteReader::new(bytes);
    let mut rows = Vec::new();
    while !reader.is_empty() {
        rows.push(row(&mut reader)?);
    }
    Ok(rows)
}

fn row<'a>(reader: &mut ByteReader<'a>) -> ReadResult<CandidateRow<'a>> {
    let key = reader.slice()?;
    let mut number = || {
        let number = reader.varint()?;
        reader.check(i64::try_from(number).ok(), "a number of 63 bits")
    };
    let meta = Meta {
        version: number()?,
        created_ms: number()?,
        updated_ms: number()?,
    };
    Ok(CandidateRow {
        key,
        meta,
        body: reader.slice()?,
        entry: reader.optional(ByteReader::slice)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip_and_cut_ones_are_malformed() {
        let meta = Meta {
            version: 300,
            created_ms: 1 << 41,
            updated_ms: (1 << 41) + 1,
        };
        let row = |entry| CandidateRow {
            key: b"key",
            meta,
            body: b"body",
            entry,
        };
        let mut bytes = Vec::new();
        put_row(&mut bytes, &row(None));
        put_row(&mut bytes, &row(Some(b"entry")));
        let read = rows(&bytes).unwrap();
        let shown: Vec<_> = read
            .iter()
            .map(|row| (row.key, row.body, row.entry))
            .collect();
        assert_eq!(
            shown,
            [
                (&b"key"[..], &b"body"[..], None),
                (b"key", b"body", Some(&b"entry"[..]))
            ]
        );
        assert_eq!(read[1].meta.updated_ms, meta.updated_ms);
        assert!(rows(&bytes[..bytes.len() - 1]).is_err());
    }
}
