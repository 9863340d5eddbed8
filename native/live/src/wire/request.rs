//! Requests, and definitions of queries as the registry keeps them.

use std::sync::Arc;

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::message::{FetchId, FetchedDocument, Foreign, LookupSide, NodeRequest, QueryDefinition};

use super::FORMAT;
use super::bytes::{
    MessageWriter as _, read_fetch_id, read_hash, read_keys, read_rows, read_snapshot,
    read_stream_id,
};

const REGISTER: u8 = 1;
const EXPIRE: u8 = 2;
const DEFINITION: u8 = 3;
const FETCHED: u8 = 4;
const QUESTION: u8 = 5;

const UNSORTED: u8 = 0;
const SORTED: u8 = 1;
const GROUPED: u8 = 2;
const LOOKS_UP: u8 = 3;
/// Added to the kind: an access rule follows.
const RULED: u8 = 0x80;

const COMPLETE: u8 = 1;
const RENEWAL: u8 = 2;

/// The offset of the activation number in requests and in definitions: the event layer's function
/// writes it there.
pub const ACTIVATION_OFFSET: usize = 18;

/// Reads a request.
pub fn decode(bytes: &[u8]) -> ReadResult<NodeRequest> {
    let mut reader = ByteReader::new(bytes);
    if reader.byte()? != FORMAT {
        return Err(reader.error("a request of this format"));
    }
    let request = match reader.byte()? {
        REGISTER => register(&mut reader)?,
        EXPIRE => NodeRequest::Expire {
            query: read_hash(&mut reader)?,
            activation: reader.u64_be()?,
        },
        FETCHED => NodeRequest::Fetched {
            fetch: read_fetch_id(&mut reader)?,
            documents: reader.list_32(4, |reader| reader.list_32(19, fetched))?,
        },
        _ => return Err(reader.error("a kind of request")),
    };
    reader.finish()?;
    Ok(request)
}

fn register(reader: &mut ByteReader<'_>) -> ReadResult<NodeRequest> {
    let query = read_definition(reader)?;
    let flags = reader.byte()?;
    if flags & !(COMPLETE | RENEWAL) != 0 {
        return Err(reader.error("known flags"));
    }
    let positions = reader.list_32(16, read_stream_id)?;
    let snapshot = read_snapshot(reader)?;
    let rows = read_rows(reader)?;
    let sides = query.sides.iter().map(|_| foreign(reader));
    Ok(NodeRequest::Register {
        foreign: sides.collect::<ReadResult<_>>()?,
        query,
        positions,
        snapshot,
        rows,
        complete: flags & COMPLETE != 0,
        renewal: flags & RENEWAL != 0,
    })
}

fn fetched(reader: &mut ByteReader<'_>) -> ReadResult<FetchedDocument> {
    Ok(FetchedDocument {
        version: reader.u64_be()?,
        xid: reader.u64_be()?,
        key: reader.slice_16()?.into(),
        body: if reader.flag()? {
            Some(reader.slice_32()?.into())
        } else {
            None
        },
    })
}

fn put_fetched(out: &mut Vec<u8>, document: &FetchedDocument) {
    out.put_u64_be(document.version);
    out.put_u64_be(document.xid);
    out.put_slice_16(&document.key);
    out.push(document.body.is_some().into());
    if let Some(body) = &document.body {
        out.put_slice_32(body);
    }
}

fn foreign(reader: &mut ByteReader<'_>) -> ReadResult<Foreign> {
    Ok(Foreign {
        complete: reader.flag()?,
        rows: read_rows(reader)?,
    })
}

/// The bytes of a request.
pub fn encode(request: &NodeRequest) -> Vec<u8> {
    let mut out = vec![FORMAT];
    match request {
        NodeRequest::Register {
            query,
            positions,
            snapshot,
            rows,
            complete,
            foreign,
            renewal,
        } => {
            out.push(REGISTER);
            put_definition(&mut out, query);
            out.push(u8::from(*complete) * COMPLETE + u8::from(*renewal) * RENEWAL);
            out.put_count_32(positions.len());
            for position in positions {
                out.put_stream_id(*position);
            }
            out.put_snapshot(snapshot);
            out.put_rows(rows);
            // The definition tells readers how many there are.
            for side in foreign {
                out.push(side.complete.into());
                out.put_rows(&side.rows);
            }
        }
        NodeRequest::Expire { query, activation } => {
            out.push(EXPIRE);
            out.put(&query.0);
            out.put_u64_be(*activation);
        }
        NodeRequest::Fetched { fetch, documents } => {
            out.push(FETCHED);
            out.put_fetch_id(fetch);
            out.put_count_32(documents.len());
            for side in documents {
                out.put_count_32(side.len());
                for document in side {
                    put_fetched(&mut out, document);
                }
            }
        }
    }
    out
}

/// A sort node's request for documents, as it is passed to the reader.
pub type FetchRequest = (FetchId, Vec<Vec<Arc<[u8]>>>);

/// Reads a question.
pub fn decode_question(bytes: &[u8]) -> ReadResult<FetchRequest> {
    let mut reader = ByteReader::new(bytes);
    if reader.array()? != [FORMAT, QUESTION] {
        return Err(reader.error("a question of this format"));
    }
    let question = (read_fetch_id(&mut reader)?, reader.list_32(4, read_keys)?);
    reader.finish()?;
    Ok(question)
}

/// The bytes of a question.
pub fn encode_question(fetch: &FetchId, keys: &[Vec<Arc<[u8]>>]) -> Vec<u8> {
    let mut out = vec![FORMAT, QUESTION];
    out.put_fetch_id(fetch);
    out.put_count_32(keys.len());
    for side in keys {
        out.put_keys(side);
    }
    out
}

/// Reads a definition from the registry.
pub fn decode_definition(bytes: &[u8]) -> ReadResult<QueryDefinition> {
    let mut reader = ByteReader::new(bytes);
    if reader.array()? != [FORMAT, DEFINITION] {
        return Err(reader.error("a definition of this format"));
    }
    let definition = read_definition(&mut reader)?;
    reader.finish()?;
    Ok(definition)
}

/// The bytes of a definition, as the registry keeps it.
pub fn encode_definition(definition: &QueryDefinition) -> Vec<u8> {
    let mut out = vec![FORMAT, DEFINITION];
    put_definition(&mut out, definition);
    out
}

fn read_definition(reader: &mut ByteReader<'_>) -> ReadResult<QueryDefinition> {
    let (hash, activation) = (read_hash(reader)?, reader.u64_be()?);
    let (tenant, collection) = (reader.array()?, reader.array()?);
    let rules_version = reader.u64_be()?;
    let kind = reader.byte()?;
    let (kind, is_ruled) = (kind & !RULED, kind & RULED != 0);
    if kind > LOOKS_UP {
        return Err(reader.error("a kind of query"));
    }
    let mut definition = QueryDefinition {
        hash,
        activation,
        tenant,
        collection,
        rules_version,
        sorted: kind != UNSORTED,
        offset: reader.u32_be()?,
        limit: match (reader.flag()?, reader.u32_be()?) {
            (true, limit) => Some(limit),
            (false, 0) => None,
            (false, _) => return Err(reader.error("a limit of 0")),
        },
        slack: reader.u32_be()?,
        filter: reader.slice_32()?.into(),
        sort: reader.slice_32()?.into(),
        group: [].into(),
        lookups: [].into(),
        sides: [].into(),
        rule: [].into(),
    };
    if kind == GROUPED {
        definition.group = not_empty(reader)?.into();
    } else if kind == LOOKS_UP {
        definition.lookups = not_empty(reader)?.into();
        definition.sides = reader.list_32(44, side)?.into();
    }
    if is_ruled {
        definition.rule = not_empty(reader)?.into();
    }
    Ok(definition)
}

fn not_empty<'r>(reader: &mut ByteReader<'r>) -> ReadResult<&'r [u8]> {
    let document = reader.slice_32()?;
    if document.is_empty() {
        return Err(reader.error("a group, lookups or a rule"));
    }
    Ok(document)
}

fn side(reader: &mut ByteReader<'_>) -> ReadResult<LookupSide> {
    Ok(LookupSide {
        hash: read_hash(reader)?,
        collection: reader.array()?,
        rules_version: reader.u64_be()?,
        filter: reader.slice_32()?.into(),
    })
}

fn put_definition(out: &mut Vec<u8>, definition: &QueryDefinition) {
    out.put(&definition.hash.0);
    out.put_u64_be(definition.activation);
    out.put(&definition.tenant);
    out.put(&definition.collection);
    out.put_u64_be(definition.rules_version);
    let kind = match definition {
        grouped if grouped.is_grouped() => GROUPED,
        with_others if with_others.looks_up() => LOOKS_UP,
        sorted if sorted.sorted => SORTED,
        _ => UNSORTED,
    };
    let is_ruled = !definition.rule.is_empty();
    out.push(kind | (u8::from(is_ruled) * RULED));
    out.put_u32_be(definition.offset);
    out.push(definition.limit.is_some().into());
    out.put_u32_be(definition.limit.unwrap_or(0));
    out.put_u32_be(definition.slack);
    out.put_slice_32(&definition.filter);
    out.put_slice_32(&definition.sort);
    if definition.is_grouped() {
        out.put_slice_32(&definition.group);
    } else if definition.looks_up() {
        out.put_slice_32(&definition.lookups);
        out.put_count_32(definition.sides.len());
        for side in definition.sides.iter() {
            out.put(&side.hash.0);
            out.put(&side.collection);
            out.put_u64_be(side.rules_version);
            out.put_slice_32(&side.filter);
        }
    }
    if is_ruled {
        out.put_slice_32(&definition.rule);
    }
}
