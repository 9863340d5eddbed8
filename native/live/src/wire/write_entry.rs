//! Entries of write streams: after-images and ticks.

use std::sync::Arc;

use crate::message::{AfterImage, ImageContent, WriteEntry};

use super::bytes::{MessageReader, Put, partitions};
use super::{FORMAT, MalformedMessage};

const PUT: u8 = 1;
const DELETE: u8 = 2;
const SUPERSEDED: u8 = 3;
const TICK: u8 = 4;

/// Reads the fields `e` and `p` of a stream entry; without `p` it is not part of a batch.
pub fn decode(entry: &[u8], parts: Option<&[u8]>) -> Result<WriteEntry, MalformedMessage> {
    let mut reader = MessageReader::new(entry);
    if reader.u8()? != FORMAT {
        return Err(MalformedMessage("not an entry of this format"));
    }
    let kind = reader.u8()?;
    let entry = match kind {
        TICK => WriteEntry::Tick(reader.tick()?),
        PUT | DELETE | SUPERSEDED => {
            let parts = partitions(parts.unwrap_or_default())?;
            WriteEntry::Image(image(&mut reader, kind, parts)?)
        }
        _ => return Err(MalformedMessage("unknown kind of entry")),
    };
    reader.finish()?;
    Ok(entry)
}

fn image(
    reader: &mut MessageReader<'_>,
    kind: u8,
    parts: Arc<[u16]>,
) -> Result<AfterImage, MalformedMessage> {
    let xid = reader.u64()?;
    let tenant = reader.array()?;
    let collection = reader.array()?;
    let version = reader.u64()?;
    let rules_version = reader.u64()?;
    let created_ms = reader.i64()?;
    let written_us = reader.i64()?;
    let key_length = reader.u16()?;
    let body_length = usize::try_from(reader.u32()?).map_err(|_| MalformedMessage("cut off"))?;
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
        content: content(kind, body)?,
        parts,
    })
}

pub(super) fn content(kind: u8, body: &[u8]) -> Result<ImageContent, MalformedMessage> {
    match kind {
        PUT => Ok(ImageContent::Document(body.into())),
        DELETE => Ok(ImageContent::Deleted(body.into())),
        SUPERSEDED if body.is_empty() => Ok(ImageContent::Superseded),
        _ => Err(MalformedMessage("unknown content")),
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
    out.put_u64(image.xid);
    out.put(&image.tenant);
    out.put(&image.collection);
    out.put_u64(image.version);
    out.put_u64(image.rules_version);
    out.put_i64(image.created_ms);
    out.put_i64(image.written_us);
    out.put_u16(u16::try_from(image.key.len()).unwrap_or(u16::MAX));
    out.put_u32(u32::try_from(body.len()).unwrap_or(u32::MAX));
    out.put(&image.key);
    out.put(body);
    let parts = image.parts.iter().flat_map(|part| part.to_be_bytes());
    (out, parts.collect())
}
