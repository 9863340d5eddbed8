//! Entries of write streams: after-images and ticks.

use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::message::{AfterImage, ImageContent, WriteEntry};

use super::FORMAT;
use super::bytes::{MessageWriter as _, partitions, read_tick};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const SUPERSEDED: u8 = 3;
const TICK: u8 = 4;

/// Reads the fields `e` and `p` of a stream entry; without `p` it is not part of a batch.
pub fn decode(entry: &[u8], parts: Option<&[u8]>) -> ReadResult<WriteEntry> {
    let mut reader = ByteReader::new(entry);
    if reader.byte()? != FORMAT {
        return Err(reader.error("an entry of this format"));
    }
    let kind = reader.byte()?;
    let entry = match kind {
        TICK => WriteEntry::Tick(read_tick(&mut reader)?),
        PUT | DELETE | SUPERSEDED => {
            let parts = partitions(parts.unwrap_or_default())?;
            WriteEntry::Image(image(&mut reader, kind, parts)?)
        }
        _ => return Err(reader.error("a kind of entry")),
    };
    reader.finish()?;
    Ok(entry)
}

fn image(reader: &mut ByteReader<'_>, kind: u8, parts: Arc<[u16]>) -> ReadResult<AfterImage> {
    let xid = reader.u64_be()?;
    let tenant = reader.array()?;
    let collection = reader.array()?;
    let version = reader.u64_be()?;
    let rules_version = reader.u64_be()?;
    let created_ms = reader.i64_be()?;
    let written_us = reader.i64_be()?;
    let key_length = reader.u16_be()?;
    let body_length = usize::try_from(reader.u32_be()?).unwrap_or(usize::MAX);
    let key = reader.take(key_length.into())?.into();
    let body = reader.take(body_length)?;
    Ok(AfterImage {
        xid,
        tenant,
        collection,
        version,
        rules_version,
        created_ms,
        written_us,
        key,
        content: content(reader, kind, body)?,
        parts,
    })
}

pub(super) fn content(reader: &ByteReader<'_>, kind: u8, body: &[u8]) -> ReadResult<ImageContent> {
    match kind {
        PUT => Ok(ImageContent::Document(body.into())),
        DELETE => Ok(ImageContent::Deleted(body.into())),
        SUPERSEDED if body.is_empty() => Ok(ImageContent::Superseded),
        _ => Err(reader.error("content of this kind")),
    }
}

pub(super) fn kind_and_body(content: &ImageContent) -> (u8, &[u8]) {
    match content {
        ImageContent::Document(body) => (PUT, body),
        ImageContent::Deleted(body) => (DELETE, body),
        ImageContent::Superseded => (SUPERSEDED, &[]),
    }
}

/// The fields `e` and `p` of an entry. Production entries are written by the outbox and by the
/// event layer's function; load generators and tests write them here.
pub fn encode(entry: &WriteEntry) -> (Vec<u8>, Vec<u8>) {
    match entry {
        WriteEntry::Tick(tick) => {
            let mut out = vec![FORMAT, TICK];
            out.put_tick(tick);
            (out, Vec::new())
        }
        WriteEntry::Image(image) => encode_image(image),
    }
}

fn encode_image(image: &AfterImage) -> (Vec<u8>, Vec<u8>) {
    let (kind, body) = kind_and_body(&image.content);
    let mut out = Vec::with_capacity(80 + image.key.len() + body.len());
    out.put(&[FORMAT, kind]);
    out.put_u64_be(image.xid);
    out.put(&image.tenant);
    out.put(&image.collection);
    out.put_u64_be(image.version);
    out.put_u64_be(image.rules_version);
    out.put_i64_be(image.created_ms);
    out.put_i64_be(image.written_us);
    out.put_u16_be(u16::try_from(image.key.len()).unwrap_or(u16::MAX));
    out.put_u32_be(u32::try_from(body.len()).unwrap_or(u32::MAX));
    out.put(&image.key);
    out.put(body);
    let parts = image.parts.iter().flat_map(|part| part.to_be_bytes());
    (out, parts.collect())
}
