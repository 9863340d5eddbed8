//! Documents as rows of `PostgreSQL`'s binary copy format, which `grid_nodes/src/rows.rs` reads. The
//! header and the trailer of a copy come from the server.

use rillbase_binary_format::ByteWriter as _;
use rillbase_collections::DocumentHead;

const COLUMNS: u16 = 6;
const EPOCH_2000_US: i64 = 946_684_800_000_000;

/// Appends a document: collection, key, version, created, updated, body.
pub(crate) fn put_copy_row(
    out: &mut Vec<u8>,
    collection: [u8; 16],
    key: &[u8],
    (head, body): (&DocumentHead, &[u8]),
) {
    out.put_u16_be(COLUMNS);
    for cell in [
        &collection,
        key,
        &head.version.to_be_bytes(),
        &timestamp(head.created_ms).to_be_bytes(),
        &timestamp(head.updated_ms).to_be_bytes(),
        body,
    ] {
        // Documents and keys are much shorter than 2 GiB.
        out.put_u32_be(u32::try_from(cell.len()).unwrap_or(0));
        out.put(cell);
    }
}

/// Microseconds since 2000.
fn timestamp(ms: i64) -> i64 {
    ms.saturating_mul(1_000).saturating_sub(EPOCH_2000_US)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rillbase_grid_nodes::rows::CopyReader;

    #[test]
    fn a_rebuild_reads_the_rows() {
        let mut copy = b"PGCOPY\n\xff\r\n\0".to_vec();
        copy.extend([0; 8]);
        for version in [1, i64::MAX] {
            let head = DocumentHead {
                version,
                created_ms: 1_700_000_000_001,
                updated_ms: 5,
                ..DocumentHead::default()
            };
            put_copy_row(&mut copy, [7; 16], b"key", (&head, b"body"));
        }
        copy.put_u16_be(u16::MAX);
        let (mut reader, mut rows) = (CopyReader::default(), Vec::new());
        reader.push(&copy, &mut rows).unwrap();
        reader.finish().unwrap();
        let versions: Vec<u64> = rows.iter().map(|(_, row)| row.version).collect();
        assert_eq!(versions, [1, i64::MAX.unsigned_abs()]);
        let (collection, row) = &rows[0];
        assert_eq!(
            (collection, &*row.key, &*row.body),
            (&[7; 16], &b"key"[..], &b"body"[..])
        );
        assert_eq!((row.created_ms, row.updated_ms), (1_700_000_000_001, 5));
    }
}
