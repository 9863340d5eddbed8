//! What several messages have in common.

use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter, ReadResult};

use crate::message::{FencingToken, FetchId, QueryHash, ResultRow, StreamId, StreamTick};
use crate::snapshot::PgSnapshot;

/// A text behind its length.
pub(super) fn read_text(reader: &mut ByteReader<'_>) -> ReadResult<String> {
    let text = String::from_utf8(reader.slice_16()?.to_vec()).ok();
    reader.check(text, "UTF-8")
}

pub(super) fn read_hash(reader: &mut ByteReader<'_>) -> ReadResult<QueryHash> {
    reader.array().map(QueryHash)
}

pub(super) fn read_hashes(reader: &mut ByteReader<'_>) -> ReadResult<Vec<QueryHash>> {
    reader.list_32(16, read_hash)
}

pub(super) fn read_partitions(reader: &mut ByteReader<'_>) -> ReadResult<Arc<[u16]>> {
    let bytes = reader.slice_16()?;
    partitions(bytes)
}

pub(super) fn read_stream_id(reader: &mut ByteReader<'_>) -> ReadResult<StreamId> {
    Ok(StreamId {
        ms: reader.u64_be()?,
        number: reader.u64_be()?,
    })
}

pub(super) fn read_snapshot(reader: &mut ByteReader<'_>) -> ReadResult<PgSnapshot> {
    let (xmin, xmax) = (reader.u64_be()?, reader.u64_be()?);
    let running = reader.list_32(8, ByteReader::u64_be)?;
    if !running.is_sorted() {
        return Err(reader.error("ascending transactions"));
    }
    Ok(PgSnapshot {
        xmin,
        xmax,
        running,
    })
}

pub(super) fn read_tick(reader: &mut ByteReader<'_>) -> ReadResult<StreamTick> {
    Ok(StreamTick {
        time_us: reader.u64_be()?,
        count: reader.u64_be()?,
        token: FencingToken(reader.u64_be()?),
        incarnation: reader.array()?,
        snapshot: read_snapshot(reader)?,
    })
}

pub(super) fn read_row(reader: &mut ByteReader<'_>) -> ReadResult<ResultRow> {
    Ok(ResultRow {
        version: reader.u64_be()?,
        created_ms: reader.i64_be()?,
        updated_ms: reader.i64_be()?,
        key: reader.slice_16()?.into(),
        body: reader.slice_32()?.into(),
    })
}

pub(super) fn read_rows(reader: &mut ByteReader<'_>) -> ReadResult<Vec<ResultRow>> {
    reader.list_32(30, read_row)
}

pub(super) fn read_fetch_id(reader: &mut ByteReader<'_>) -> ReadResult<FetchId> {
    Ok(FetchId {
        query: read_hash(reader)?,
        activation: reader.u64_be()?,
        token: FencingToken(reader.u64_be()?),
        number: reader.u64_be()?,
    })
}

pub(super) fn read_keys(reader: &mut ByteReader<'_>) -> ReadResult<Vec<Arc<[u8]>>> {
    reader.list_32(2, |reader| reader.slice_16().map(Arc::from))
}

/// Two bytes for each partition.
pub(super) fn partitions(bytes: &[u8]) -> ReadResult<Arc<[u16]>> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    ByteReader::new(rest).finish()?;
    Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
}

/// Appends what several messages have in common. A value that exceeds its length field is
/// truncated; the store does not admit such values.
pub(super) trait MessageWriter: ByteWriter {
    fn put_text(&mut self, text: &str) {
        let mut end = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.put_slice_16(text.as_bytes().get(..end).unwrap_or_default());
    }

    fn put_hashes(&mut self, hashes: &[QueryHash]) {
        self.put_count_32(hashes.len());
        for hash in hashes {
            self.put(&hash.0);
        }
    }

    fn put_parts(&mut self, parts: &[u16]) {
        self.put_u16_be(u16::try_from(2 * parts.len()).unwrap_or(u16::MAX - 1));
        for part in parts.iter().take(usize::from(u16::MAX / 2)) {
            self.put_u16_be(*part);
        }
    }

    fn put_stream_id(&mut self, id: StreamId) {
        self.put_u64_be(id.ms);
        self.put_u64_be(id.number);
    }

    fn put_snapshot(&mut self, snapshot: &PgSnapshot) {
        self.put_u64_be(snapshot.xmin);
        self.put_u64_be(snapshot.xmax);
        self.put_count_32(snapshot.running.len());
        for xid in &snapshot.running {
            self.put_u64_be(*xid);
        }
    }

    fn put_tick(&mut self, tick: &StreamTick) {
        self.put_u64_be(tick.time_us);
        self.put_u64_be(tick.count);
        self.put_u64_be(tick.token.0);
        self.put(&tick.incarnation);
        self.put_snapshot(&tick.snapshot);
    }

    fn put_row(&mut self, row: &ResultRow) {
        self.put_u64_be(row.version);
        self.put_i64_be(row.created_ms);
        self.put_i64_be(row.updated_ms);
        self.put_slice_16(&row.key);
        self.put_slice_32(&row.body);
    }

    fn put_fetch_id(&mut self, fetch: &FetchId) {
        self.put(&fetch.query.0);
        self.put_u64_be(fetch.activation);
        self.put_u64_be(fetch.token.0);
        self.put_u64_be(fetch.number);
    }

    fn put_keys(&mut self, keys: &[Arc<[u8]>]) {
        self.put_count_32(keys.len());
        for key in keys {
            self.put_slice_16(key);
        }
    }

    fn put_rows(&mut self, rows: &[ResultRow]) {
        self.put_count_32(rows.len());
        for row in rows {
            self.put_row(row);
        }
    }
}

impl MessageWriter for Vec<u8> {}
