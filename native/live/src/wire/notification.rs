//! Entries of the notification log.

use rillbase_binary_format::{ByteReader, ByteWriter as _, ReadResult};

use crate::message::{
    AfterImage, Cause, EmptyResult, FencingToken, NodeEvent, Notification, NotificationSource,
    RemovalReason, WindowChange,
};

use super::FORMAT;
use super::bytes::{
    MessageWriter as _, read_fetch_id, read_hash, read_hashes, read_keys, read_partitions,
    read_row, read_rows, read_snapshot, read_stream_id, read_text, read_tick,
};
use super::write_entry::{content, kind_and_body};

const START: u8 = 1;
const MATCH: u8 = 2;
const DONE: u8 = 3;
const ACTIVE: u8 = 4;
const TOO_OLD: u8 = 5;
const FAILED: u8 = 6;
const TICK: u8 = 7;
const REBASE: u8 = 8;
const REBASED: u8 = 9;
const WINDOW: u8 = 10;
const RENEW: u8 = 11;
const FETCH: u8 = 12;
const UNEVALUATED: u8 = 13;
const EMPTY: u8 = 14;

const FILTER: u8 = 0;
const SORT: u8 = 1;

const ADD: u8 = 1;
const CHANGE: u8 = 2;
const MOVE: u8 = 3;
const REMOVE_DELETED: u8 = 4;
const REMOVE_LEFT: u8 = 5;

/// Reads a notification.
pub fn decode(bytes: &[u8]) -> ReadResult<Notification> {
    let mut reader = ByteReader::new(bytes);
    if reader.byte()? != FORMAT {
        return Err(reader.error("a notification of this format"));
    }
    let kind = reader.byte()?;
    let source = match (reader.byte()?, reader.u16_be()?) {
        (FILTER, partition) => NotificationSource::Filter(partition),
        (SORT, 0) => NotificationSource::Sort,
        _ => return Err(reader.error("a source")),
    };
    let token = FencingToken(reader.u64_be()?);
    let count = reader.u64_be()?;
    let event = event(&mut reader, kind)?;
    reader.finish()?;
    Ok(Notification {
        source,
        token,
        count,
        event,
    })
}

fn event(reader: &mut ByteReader<'_>, kind: u8) -> ReadResult<NodeEvent> {
    Ok(match kind {
        START => NodeEvent::Start,
        MATCH => NodeEvent::Match {
            image: image(reader)?,
            added: read_hashes(reader)?,
            changed: read_hashes(reader)?,
            removed: read_hashes(reader)?,
        },
        DONE => NodeEvent::Done {
            xid: reader.u64_be()?,
        },
        ACTIVE => NodeEvent::Active {
            query: read_hash(reader)?,
            activation: reader.u64_be()?,
            request: read_stream_id(reader)?,
        },
        TOO_OLD => NodeEvent::TooOld {
            query: read_hash(reader)?,
            activation: reader.u64_be()?,
            request: read_stream_id(reader)?,
        },
        FAILED => NodeEvent::Failed {
            query: read_hash(reader)?,
            code: read_text(reader)?,
            detail: read_text(reader)?,
        },
        TICK => NodeEvent::Tick(read_tick(reader)?),
        REBASE => NodeEvent::Rebase {
            query: read_hash(reader)?,
            activation: reader.u64_be()?,
            snapshot: read_snapshot(reader)?,
            rules_version: reader.u64_be()?,
            part: reader.u32_be()?,
            last: reader.flag()?,
            rows: read_rows(reader)?,
        },
        REBASED => NodeEvent::Rebased {
            snapshot: read_snapshot(reader)?,
        },
        WINDOW => NodeEvent::Window {
            query: read_hash(reader)?,
            activation: reader.u64_be()?,
            rules_version: reader.u64_be()?,
            image: reader.flag()?.then(|| cause(reader)).transpose()?,
            changes: reader.list_32(5, change)?,
        },
        RENEW => NodeEvent::Renew {
            query: read_hash(reader)?,
            activation: reader.u64_be()?,
            slack: reader.u32_be()?,
        },
        FETCH => NodeEvent::Fetch {
            fetch: read_fetch_id(reader)?,
            keys: reader.list_32(4, read_keys)?,
        },
        UNEVALUATED => NodeEvent::Unevaluated {
            queries: read_hashes(reader)?,
        },
        EMPTY => NodeEvent::Empty {
            snapshot: read_snapshot(reader)?,
            request: read_stream_id(reader)?,
            queries: reader.list_32(32, empty_result)?,
        },
        _ => return Err(reader.error("a kind of notification")),
    })
}

fn empty_result(reader: &mut ByteReader<'_>) -> ReadResult<EmptyResult> {
    Ok(EmptyResult {
        query: read_hash(reader)?,
        activation: reader.u64_be()?,
        rules_version: reader.u64_be()?,
    })
}

fn image(reader: &mut ByteReader<'_>) -> ReadResult<AfterImage> {
    let kind = reader.byte()?;
    Ok(AfterImage {
        xid: reader.u64_be()?,
        tenant: reader.array()?,
        collection: reader.array()?,
        version: reader.u64_be()?,
        rules_version: reader.u64_be()?,
        created_ms: reader.i64_be()?,
        written_us: reader.i64_be()?,
        parts: read_partitions(reader)?,
        key: reader.slice_16()?.into(),
        content: {
            let body = reader.slice_32()?;
            content(reader, kind, body)?
        },
    })
}

fn cause(reader: &mut ByteReader<'_>) -> ReadResult<Cause> {
    Ok(Cause {
        xid: reader.u64_be()?,
        rules_version: reader.u64_be()?,
        written_us: reader.i64_be()?,
        parts: read_partitions(reader)?,
    })
}

fn change(reader: &mut ByteReader<'_>) -> ReadResult<WindowChange> {
    let kind = reader.byte()?;
    let place = reader.u32_be()?;
    Ok(match kind {
        ADD => WindowChange::Add {
            index: place,
            row: read_row(reader)?,
        },
        CHANGE => WindowChange::Change {
            index: place,
            row: read_row(reader)?,
        },
        MOVE => WindowChange::Move {
            old_index: place,
            index: reader.u32_be()?,
            row: read_row(reader)?,
        },
        REMOVE_DELETED | REMOVE_LEFT => WindowChange::Remove {
            old_index: place,
            version: reader.u64_be()?,
            key: reader.slice_16()?.into(),
            id: reader.slice_32()?.into(),
            reason: if kind == REMOVE_DELETED {
                RemovalReason::Deleted
            } else {
                RemovalReason::Left
            },
        },
        _ => return Err(reader.error("a kind of change")),
    })
}

/// The bytes of a notification.
pub fn encode(notification: &Notification) -> Vec<u8> {
    let mut out = vec![FORMAT, kind(&notification.event)];
    match notification.source {
        NotificationSource::Filter(partition) => {
            out.push(FILTER);
            out.put_u16_be(partition);
        }
        NotificationSource::Sort => {
            out.push(SORT);
            out.put_u16_be(0);
        }
    }
    out.put_u64_be(notification.token.0);
    out.put_u64_be(notification.count);
    put_event(&mut out, &notification.event);
    out
}

const fn kind(event: &NodeEvent) -> u8 {
    match event {
        NodeEvent::Start => START,
        NodeEvent::Match { .. } => MATCH,
        NodeEvent::Done { .. } => DONE,
        NodeEvent::Active { .. } => ACTIVE,
        NodeEvent::TooOld { .. } => TOO_OLD,
        NodeEvent::Failed { .. } => FAILED,
        NodeEvent::Tick(_) => TICK,
        NodeEvent::Rebase { .. } => REBASE,
        NodeEvent::Rebased { .. } => REBASED,
        NodeEvent::Window { .. } => WINDOW,
        NodeEvent::Renew { .. } => RENEW,
        NodeEvent::Fetch { .. } => FETCH,
        NodeEvent::Unevaluated { .. } => UNEVALUATED,
        NodeEvent::Empty { .. } => EMPTY,
    }
}

fn put_event(out: &mut Vec<u8>, event: &NodeEvent) {
    match event {
        NodeEvent::Start => {}
        NodeEvent::Match {
            image,
            added,
            changed,
            removed,
        } => {
            put_image(out, image);
            out.put_hashes(added);
            out.put_hashes(changed);
            out.put_hashes(removed);
        }
        NodeEvent::Done { xid } => out.put_u64_be(*xid),
        NodeEvent::Active {
            query,
            activation,
            request,
        }
        | NodeEvent::TooOld {
            query,
            activation,
            request,
        } => {
            out.put(&query.0);
            out.put_u64_be(*activation);
            out.put_stream_id(*request);
        }
        NodeEvent::Failed {
            query,
            code,
            detail,
        } => {
            out.put(&query.0);
            out.put_text(code);
            out.put_text(detail);
        }
        NodeEvent::Tick(tick) => out.put_tick(tick),
        NodeEvent::Rebased { snapshot } => out.put_snapshot(snapshot),
        NodeEvent::Fetch { fetch, keys } => {
            out.put_fetch_id(fetch);
            out.put_count_32(keys.len());
            for side in keys {
                out.put_keys(side);
            }
        }
        NodeEvent::Unevaluated { queries } => out.put_hashes(queries),
        NodeEvent::Empty {
            queries,
            snapshot,
            request,
        } => {
            out.put_snapshot(snapshot);
            out.put_stream_id(*request);
            out.put_count_32(queries.len());
            for empty in queries {
                out.put(&empty.query.0);
                out.put_u64_be(empty.activation);
                out.put_u64_be(empty.rules_version);
            }
        }
        NodeEvent::Rebase { .. } | NodeEvent::Window { .. } | NodeEvent::Renew { .. } => {
            put_state(out, event);
        }
    }
}

/// Appends a query's whole state.
fn put_state(out: &mut Vec<u8>, event: &NodeEvent) {
    match event {
        NodeEvent::Rebase {
            query,
            activation,
            snapshot,
            rules_version,
            rows,
            part,
            last,
        } => {
            out.put(&query.0);
            out.put_u64_be(*activation);
            out.put_snapshot(snapshot);
            out.put_u64_be(*rules_version);
            out.put_u32_be(*part);
            out.push((*last).into());
            out.put_rows(rows);
        }
        NodeEvent::Window {
            query,
            activation,
            rules_version,
            image,
            changes,
        } => {
            out.put(&query.0);
            out.put_u64_be(*activation);
            out.put_u64_be(*rules_version);
            out.push(image.is_some().into());
            if let Some(cause) = image {
                put_cause(out, cause);
            }
            out.put_count_32(changes.len());
            for change in changes {
                put_change(out, change);
            }
        }
        NodeEvent::Renew {
            query,
            activation,
            slack,
        } => {
            out.put(&query.0);
            out.put_u64_be(*activation);
            out.put_u32_be(*slack);
        }
        _ => {}
    }
}

fn put_image(out: &mut Vec<u8>, image: &AfterImage) {
    let (kind, body) = kind_and_body(&image.content);
    out.reserve(128 + image.key.len() + body.len());
    out.push(kind);
    out.put_u64_be(image.xid);
    out.put(&image.tenant);
    out.put(&image.collection);
    out.put_u64_be(image.version);
    out.put_u64_be(image.rules_version);
    out.put_i64_be(image.created_ms);
    out.put_i64_be(image.written_us);
    out.put_parts(&image.parts);
    out.put_slice_16(&image.key);
    out.put_slice_32(body);
}

fn put_cause(out: &mut Vec<u8>, cause: &Cause) {
    out.put_u64_be(cause.xid);
    out.put_u64_be(cause.rules_version);
    out.put_i64_be(cause.written_us);
    out.put_parts(&cause.parts);
}

fn put_change(out: &mut Vec<u8>, change: &WindowChange) {
    match change {
        WindowChange::Add { index, row } | WindowChange::Change { index, row } => {
            let kind = if matches!(change, WindowChange::Add { .. }) {
                ADD
            } else {
                CHANGE
            };
            out.push(kind);
            out.put_u32_be(*index);
            out.put_row(row);
        }
        WindowChange::Move {
            old_index,
            index,
            row,
        } => {
            out.push(MOVE);
            out.put_u32_be(*old_index);
            out.put_u32_be(*index);
            out.put_row(row);
        }
        WindowChange::Remove {
            old_index,
            key,
            id,
            version,
            reason,
        } => {
            out.push(match reason {
                RemovalReason::Deleted => REMOVE_DELETED,
                RemovalReason::Left => REMOVE_LEFT,
            });
            out.put_u32_be(*old_index);
            out.put_u64_be(*version);
            out.put_slice_16(key);
            out.put_slice_32(id);
        }
    }
}
