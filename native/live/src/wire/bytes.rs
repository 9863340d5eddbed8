//! Numbers, strings and lists as bytes, and what several messages have in common.

use std::sync::Arc;

use crate::message::{FencingToken, FetchId, QueryHash, ResultRow, StreamId, StreamTick};
use crate::snapshot::PgSnapshot;

use super::MalformedMessage;

/// Reads from the front of bytes.
#[derive(Debug)]
pub(super) struct MessageReader<'a> {
    rest: &'a [u8],
}

impl<'a> MessageReader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(super) fn take(&mut self, length: usize) -> Result<&'a [u8], MalformedMessage> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(CUT)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], MalformedMessage> {
        let (taken, rest) = self.rest.split_first_chunk::<N>().ok_or(CUT)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, MalformedMessage> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn u16(&mut self) -> Result<u16, MalformedMessage> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, MalformedMessage> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, MalformedMessage> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, MalformedMessage> {
        self.array().map(i64::from_be_bytes)
    }

    pub(super) fn flag(&mut self) -> Result<bool, MalformedMessage> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(MalformedMessage("a flag is neither 0 nor 1")),
        }
    }

    /// A length in two bytes, then that many bytes.
    pub(super) fn short(&mut self) -> Result<&'a [u8], MalformedMessage> {
        let length = self.u16()?;
        self.take(length.into())
    }

    /// A length in four bytes, then that many bytes.
    pub(super) fn long(&mut self) -> Result<&'a [u8], MalformedMessage> {
        let length = self.u32()?;
        self.take(usize::try_from(length).map_err(|_| CUT)?)
    }

    /// A count in four bytes, then that many items of at least `least` bytes each.
    pub(super) fn list<T>(
        &mut self,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, MalformedMessage>,
    ) -> Result<Vec<T>, MalformedMessage> {
        let count = usize::try_from(self.u32()?).map_err(|_| CUT)?;
        // A count that the bytes cannot contain must not reserve memory.
        if count.saturating_mul(least) > self.rest.len() {
            return Err(CUT);
        }
        let mut items = Vec::with_capacity(count);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    pub(super) fn finish(self) -> Result<(), MalformedMessage> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(MalformedMessage("bytes follow the end"))
        }
    }

    pub(super) fn text(&mut self) -> Result<String, MalformedMessage> {
        let bytes = self.short()?;
        let text =
            std::str::from_utf8(bytes).map_err(|_| MalformedMessage("a text is not UTF-8"))?;
        Ok(text.to_owned())
    }

    pub(super) fn hash(&mut self) -> Result<QueryHash, MalformedMessage> {
        self.array().map(QueryHash)
    }

    pub(super) fn hashes(&mut self) -> Result<Vec<QueryHash>, MalformedMessage> {
        self.list(16, Self::hash)
    }

    pub(super) fn parts(&mut self) -> Result<Arc<[u16]>, MalformedMessage> {
        let bytes = self.short()?;
        partitions(bytes)
    }

    pub(super) fn stream_id(&mut self) -> Result<StreamId, MalformedMessage> {
        Ok(StreamId {
            ms: self.u64()?,
            number: self.u64()?,
        })
    }

    pub(super) fn snapshot(&mut self) -> Result<PgSnapshot, MalformedMessage> {
        let (xmin, xmax) = (self.u64()?, self.u64()?);
        let running = self.list(8, Self::u64)?;
        if !running.is_sorted() {
            return Err(MalformedMessage(
                "the running transactions are not in ascending order",
            ));
        }
        Ok(PgSnapshot {
            xmin,
            xmax,
            running,
        })
    }

    pub(super) fn tick(&mut self) -> Result<StreamTick, MalformedMessage> {
        Ok(StreamTick {
            time_us: self.u64()?,
            count: self.u64()?,
            token: FencingToken(self.u64()?),
            incarnation: self.array()?,
            snapshot: self.snapshot()?,
        })
    }

    pub(super) fn row(&mut self) -> Result<ResultRow, MalformedMessage> {
        Ok(ResultRow {
            version: self.u64()?,
            created_ms: self.i64()?,
            updated_ms: self.i64()?,
            key: self.short()?.into(),
            body: self.long()?.into(),
        })
    }

    pub(super) fn rows(&mut self) -> Result<Vec<ResultRow>, MalformedMessage> {
        self.list(30, Self::row)
    }

    pub(super) fn fetch_id(&mut self) -> Result<FetchId, MalformedMessage> {
        Ok(FetchId {
            query: self.hash()?,
            activation: self.u64()?,
            token: FencingToken(self.u64()?),
            number: self.u64()?,
        })
    }

    pub(super) fn keys(&mut self) -> Result<Vec<Arc<[u8]>>, MalformedMessage> {
        self.list(2, |reader| reader.short().map(Arc::from))
    }
}

const CUT: MalformedMessage = MalformedMessage("cut off");

/// Two bytes for each partition.
pub(super) fn partitions(bytes: &[u8]) -> Result<Arc<[u16]>, MalformedMessage> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    if !rest.is_empty() {
        return Err(MalformedMessage("half a partition"));
    }
    Ok(pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect())
}

/// Appends to bytes. A value that exceeds its length field is truncated; the store does not admit
/// such values.
pub(super) trait Put {
    fn put(&mut self, bytes: &[u8]);

    fn put_u8(&mut self, number: u8) {
        self.put(&[number]);
    }

    fn put_u16(&mut self, number: u16) {
        self.put(&number.to_be_bytes());
    }

    fn put_u32(&mut self, number: u32) {
        self.put(&number.to_be_bytes());
    }

    fn put_u64(&mut self, number: u64) {
        self.put(&number.to_be_bytes());
    }

    fn put_i64(&mut self, number: i64) {
        self.put(&number.to_be_bytes());
    }

    fn put_short(&mut self, bytes: &[u8]) {
        let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.put_u16(length);
        self.put(bytes.get(..length.into()).unwrap_or(bytes));
    }

    fn put_long(&mut self, bytes: &[u8]) {
        self.put_u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.put(bytes);
    }

    fn put_count(&mut self, count: usize) {
        self.put_u32(u32::try_from(count).unwrap_or(u32::MAX));
    }

    fn put_text(&mut self, text: &str) {
        let mut end = text.len().min(usize::from(u16::MAX));
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.put_short(text.as_bytes().get(..end).unwrap_or_default());
    }

    fn put_hashes(&mut self, hashes: &[QueryHash]) {
        self.put_count(hashes.len());
        for hash in hashes {
            self.put(&hash.0);
        }
    }

    fn put_parts(&mut self, parts: &[u16]) {
        self.put_u16(u16::try_from(2 * parts.len()).unwrap_or(u16::MAX - 1));
        for part in parts.iter().take(usize::from(u16::MAX / 2)) {
            self.put_u16(*part);
        }
    }

    fn put_stream_id(&mut self, id: StreamId) {
        self.put_u64(id.ms);
        self.put_u64(id.number);
    }

    fn put_snapshot(&mut self, snapshot: &PgSnapshot) {
        self.put_u64(snapshot.xmin);
        self.put_u64(snapshot.xmax);
        self.put_count(snapshot.running.len());
        for xid in &snapshot.running {
            self.put_u64(*xid);
        }
    }

    fn put_tick(&mut self, tick: &StreamTick) {
        self.put_u64(tick.time_us);
        self.put_u64(tick.count);
        self.put_u64(tick.token.0);
        self.put(&tick.incarnation);
        self.put_snapshot(&tick.snapshot);
    }

    fn put_row(&mut self, row: &ResultRow) {
        self.put_u64(row.version);
        self.put_i64(row.created_ms);
        self.put_i64(row.updated_ms);
        self.put_short(&row.key);
        self.put_long(&row.body);
    }

    fn put_fetch_id(&mut self, fetch: &FetchId) {
        self.put(&fetch.query.0);
        self.put_u64(fetch.activation);
        self.put_u64(fetch.token.0);
        self.put_u64(fetch.number);
    }

    fn put_keys(&mut self, keys: &[Arc<[u8]>]) {
        self.put_count(keys.len());
        for key in keys {
            self.put_short(key);
        }
    }

    fn put_rows(&mut self, rows: &[ResultRow]) {
        self.put_count(rows.len());
        for row in rows {
            self.put_row(row);
        }
    }
}

impl Put for Vec<u8> {
    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}
