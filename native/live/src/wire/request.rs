//! Requests, and definitions of queries as the registry keeps them.

use std::sync::Arc;

use crate::message::{FetchId, FetchedDocument, Foreign, LookupSide, NodeRequest, QueryDefinition};

use super::bytes::{MessageReader, Put};
use super::{FORMAT, MalformedMessage};

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
pub fn decode(bytes: &[u8]) -> Result<NodeRequest, MalformedMessage> {
    let mut reader = MessageReader::new(bytes);
    if reader.u8()? != FORMAT {
        return Err(MalformedMessage("not a request of this format"));
    }
    let request = match reader.u8()? {
        REGISTER => register(&mut reader)?,
        EXPIRE => NodeRequest::Expire {
            query: reader.hash()?,
            activation: reader.u64()?,
        },
        FETCHED => NodeRequest::Fetched {
            fetch: reader.fetch_id()?,
            documents: reader.list(4, |reader| reader.list(19, fetched))?,
        },
        _ => return Err(MalformedMessage("unknown kind of request")),
    };
    reader.finish()?;
    Ok(request)
}

fn register(reader: &mut MessageReader<'_>) -> Result<NodeRequest, MalformedMessage> {
    let query = read_definition(reader)?;
    let flags = reader.u8()?;
    if flags & !(COMPLETE | RENEWAL) != 0 {
        return Err(MalformedMessage("unknown flags"));
    }
    let positions = reader.list(16, MessageReader::stream_id)?;
    let snapshot = reader.snapshot()?;
    let rows = reader.rows()?;
    let sides = query.sides.iter().map(|_| foreign(reader));
    Ok(NodeRequest::Register {
        foreign: sides.collect::<Result<_, MalformedMessage>>()?,
        query,
        positions,
        snapshot,
        rows,
        complete: flags & COMPLETE != 0,
        renewal: flags & RENEWAL != 0,
    })
}

fn fetched(reader: &mut MessageReader<'_>) -> Result<FetchedDocument, MalformedMessage> {
    Ok(FetchedDocument {
        version: reader.u64()?,
        xid: reader.u64()?,
        key: reader.short()?.into(),
        body: if reader.flag()? {
            Some(reader.long()?.into())
        } else {
            None
        },
    })
}

fn put_fetched(out: &mut Vec<u8>, document: &FetchedDocument) {
    out.put_u64(document.version);
    out.put_u64(document.xid);
    out.put_short(&document.key);
    out.put_u8(document.body.is_some().into());
    if let Some(body) = &document.body {
        out.put_long(body);
    }
}

fn foreign(reader: &mut MessageReader<'_>) -> Result<Foreign, MalformedMessage> {
    Ok(Foreign {
        complete: reader.flag()?,
        rows: reader.rows()?,
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
            out.put_u8(REGISTER);
            put_definition(&mut out, query);
            out.put_u8(u8::from(*complete) * COMPLETE + u8::from(*renewal) * RENEWAL);
            out.put_count(positions.len());
            for position in positions {
                out.put_stream_id(*position);
            }
            out.put_snapshot(snapshot);
            out.put_rows(rows);
            // The definition tells readers how many there are.
            for side in foreign {
                out.put_u8(side.complete.into());
                out.put_rows(&side.rows);
            }
        }
        NodeRequest::Expire { query, activation } => {
            out.put_u8(EXPIRE);
            out.put(&query.0);
            out.put_u64(*activation);
        }
        NodeRequest::Fetched { fetch, documents } => {
            out.put_u8(FETCHED);
            out.put_fetch_id(fetch);
            out.put_count(documents.len());
            for side in documents {
                out.put_count(side.len());
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
pub fn decode_question(bytes: &[u8]) -> Result<FetchRequest, MalformedMessage> {
    let mut reader = MessageReader::new(bytes);
    if reader.array()? != [FORMAT, QUESTION] {
        return Err(MalformedMessage("not a question of this format"));
    }
    let question = (reader.fetch_id()?, reader.list(4, MessageReader::keys)?);
    reader.finish()?;
    Ok(question)
}

/// The bytes of a question.
pub fn encode_question(fetch: &FetchId, keys: &[Vec<Arc<[u8]>>]) -> Vec<u8> {
    let mut out = vec![FORMAT, QUESTION];
    out.put_fetch_id(fetch);
    out.put_count(keys.len());
    for side in keys {
        out.put_keys(side);
    }
    out
}

/// Reads a definition from the registry.
pub fn decode_definition(bytes: &[u8]) -> Result<QueryDefinition, MalformedMessage> {
    let mut reader = MessageReader::new(bytes);
    if reader.array()? != [FORMAT, DEFINITION] {
        return Err(MalformedMessage("not a definition of this format"));
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

fn read_definition(reader: &mut MessageReader<'_>) -> Result<QueryDefinition, MalformedMessage> {
    let (hash, activation) = (reader.hash()?, reader.u64()?);
    let (tenant, collection) = (reader.array()?, reader.array()?);
    let rules_version = reader.u64()?;
    let kind = reader.u8()?;
    let (kind, is_ruled) = (kind & !RULED, kind & RULED != 0);
    if kind > LOOKS_UP {
        return Err(MalformedMessage("unknown kind of query"));
    }
    let mut definition = QueryDefinition {
        hash,
        activation,
        tenant,
        collection,
        rules_version,
        sorted: kind != UNSORTED,
        offset: reader.u32()?,
        limit: match (reader.flag()?, reader.u32()?) {
            (true, limit) => Some(limit),
            (false, 0) => None,
            (false, _) => return Err(MalformedMessage("invalid limit")),
        },
        slack: reader.u32()?,
        filter: reader.long()?.into(),
        sort: reader.long()?.into(),
        group: [].into(),
        lookups: [].into(),
        sides: [].into(),
        rule: [].into(),
    };
    if kind == GROUPED {
        definition.group = not_empty(reader)?.into();
    } else if kind == LOOKS_UP {
        definition.lookups = not_empty(reader)?.into();
        definition.sides = reader.list(44, side)?.into();
    }
    if is_ruled {
        definition.rule = not_empty(reader)?.into();
    }
    Ok(definition)
}

fn not_empty<'r>(reader: &mut MessageReader<'r>) -> Result<&'r [u8], MalformedMessage> {
    let document = reader.long()?;
    if document.is_empty() {
        return Err(MalformedMessage("invalid group, lookups or rule"));
    }
    Ok(document)
}

fn side(reader: &mut MessageReader<'_>) -> Result<LookupSide, MalformedMessage> {
    Ok(LookupSide {
        hash: reader.hash()?,
        collection: reader.array()?,
        rules_version: reader.u64()?,
        filter: reader.long()?.into(),
    })
}

fn put_definition(out: &mut Vec<u8>, definition: &QueryDefinition) {
    out.put(&definition.hash.0);
    out.put_u64(definition.activation);
    out.put(&definition.tenant);
    out.put(&definition.collection);
    out.put_u64(definition.rules_version);
    let kind = match definition {
        grouped if grouped.is_grouped() => GROUPED,
        with_others if with_others.looks_up() => LOOKS_UP,
        sorted if sorted.sorted => SORTED,
        _ => UNSORTED,
    };
    let is_ruled = !definition.rule.is_empty();
    out.put_u8(kind | (u8::from(is_ruled) * RULED));
    out.put_u32(definition.offset);
    out.put_u8(definition.limit.is_some().into());
    out.put_u32(definition.limit.unwrap_or(0));
    out.put_u32(definition.slack);
    out.put_long(&definition.filter);
    out.put_long(&definition.sort);
    if definition.is_grouped() {
        out.put_long(&definition.group);
    } else if definition.looks_up() {
        out.put_long(&definition.lookups);
        out.put_count(definition.sides.len());
        for side in definition.sides.iter() {
            out.put(&side.hash.0);
            out.put(&side.collection);
            out.put_u64(side.rules_version);
            out.put_long(&side.filter);
        }
    }
    if is_ruled {
        out.put_long(&definition.rule);
    }
}
