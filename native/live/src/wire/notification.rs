//! Entries of the notification log.

use crate::message::{
    AfterImage, Cause, FencingToken, NodeEvent, Notification, NotificationSource, RemovalReason,
    WindowChange,
};

use super::bytes::{MessageReader, Put};
use super::write_entry::{content, kind_and_body};
use super::{FORMAT, MalformedMessage};

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

const FILTER: u8 = 0;
const SORT: u8 = 1;

const ADD: u8 = 1;
const CHANGE: u8 = 2;
const MOVE: u8 = 3;
const REMOVE_DELETED: u8 = 4;
const REMOVE_LEFT: u8 = 5;

/// Reads a notification.
pub fn decode(bytes: &[u8]) -> Result<Notification, MalformedMessage> {
    let mut reader = MessageReader::new(bytes);
    if reader.u8()? != FORMAT {
        return Err(MalformedMessage("not a notification of this format"));
    }
    let kind = reader.u8()?;
    let source = match (reader.u8()?, reader.u16()?) {
        (FILTER, partition) => NotificationSource::Filter(partition),
        (SORT, 0) => NotificationSource::Sort,
        _ => return Err(MalformedMessage("unknown source")),
    };
    let token = FencingToken(reader.u64()?);
    let count = reader.u64()?;
    let event = event(&mut reader, kind)?;
    reader.finish()?;
    Ok(Notification {
        source,
        token,
        count,
        event,
    })
}

fn event(reader: &mut MessageReader<'_>, kind: u8) -> Result<NodeEvent, MalformedMessage> {
    Ok(match kind {
        START => NodeEvent::Start,
        MATCH => NodeEvent::Match {
            image: image(reader)?,
            added: reader.hashes()?,
            changed: reader.hashes()?,
            removed: reader.hashes()?,
        },
        DONE => NodeEvent::Done { xid: reader.u64()? },
        ACTIVE => NodeEvent::Active {
            query: reader.hash()?,
            activation: reader.u64()?,
            request: reader.stream_id()?,
        },
        TOO_OLD => NodeEvent::TooOld {
            query: reader.hash()?,
            activation: reader.u64()?,
            request: reader.stream_id()?,
        },
        FAILED => NodeEvent::Failed {
            query: reader.hash()?,
            code: reader.text()?,
            detail: reader.text()?,
        },
        TICK => NodeEvent::Tick(reader.tick()?),
        REBASE => NodeEvent::Rebase {
            query: reader.hash()?,
            activation: reader.u64()?,
            snapshot: reader.snapshot()?,
            rules_version: reader.u64()?,
            part: reader.u32()?,
            last: reader.flag()?,
            rows: reader.rows()?,
        },
        REBASED => NodeEvent::Rebased {
            snapshot: reader.snapshot()?,
        },
        WINDOW => NodeEvent::Window {
            query: reader.hash()?,
            activation: reader.u64()?,
            rules_version: reader.u64()?,
            image: reader.flag()?.then(|| cause(reader)).transpose()?,
            changes: reader.list(5, change)?,
        },
        RENEW => NodeEvent::Renew {
            query: reader.hash()?,
            activation: reader.u64()?,
            slack: reader.u32()?,
        },
        FETCH => NodeEvent::Fetch {
            fetch: reader.fetch_id()?,
            keys: reader.list(4, MessageReader::keys)?,
        },
        UNEVALUATED => NodeEvent::Unevaluated {
            queries: reader.hashes()?,
        },
        _ => return Err(MalformedMessage("unknown kind of notification")),
    })
}

fn image(reader: &mut MessageReader<'_>) -> Result<AfterImage, MalformedMessage> {
    let kind = reader.u8()?;
    Ok(AfterImage {
        xid: reader.u64()?,
        tenant: reader.array()?,
        collection: reader.array()?,
        version: reader.u64()?,
        rules_version: reader.u64()?,
        created_ms: reader.i64()?,
        written_us: reader.i64()?,
        parts: reader.parts()?,
        key: reader.short()?.into(),
        content: content(kind, reader.long()?)?,
    })
}

fn cause(reader: &mut MessageReader<'_>) -> Result<Cause, MalformedMessage> {
    Ok(Cause {
        xid: reader.u64()?,
        rules_version: reader.u64()?,
        written_us: reader.i64()?,
        parts: reader.parts()?,
    })
}

fn change(reader: &mut MessageReader<'_>) -> Result<WindowChange, MalformedMessage> {
    let kind = reader.u8()?;
    let place = reader.u32()?;
    Ok(match kind {
        ADD => WindowChange::Add {
            index: place,
            row: reader.row()?,
        },
        CHANGE => WindowChange::Change {
            index: place,
            row: reader.row()?,
        },
        MOVE => WindowChange::Move {
            old_index: place,
            index: reader.u32()?,
            row: reader.row()?,
        },
        REMOVE_DELETED | REMOVE_LEFT => WindowChange::Remove {
            old_index: place,
            version: reader.u64()?,
            key: reader.short()?.into(),
            id: reader.long()?.into(),
            reason: if kind == REMOVE_DELETED {
                RemovalReason::Deleted
            } else {
                RemovalReason::Left
            },
        },
        _ => return Err(MalformedMessage("unknown change")),
    })
}

/// The bytes of a notification.
pub fn encode(notification: &Notification) -> Vec<u8> {
    let mut out = vec![FORMAT, kind(&notification.event)];
    match notification.source {
        NotificationSource::Filter(partition) => {
            out.put_u8(FILTER);
            out.put_u16(partition);
        }
        NotificationSource::Sort => {
            out.put_u8(SORT);
            out.put_u16(0);
        }
    }
    out.put_u64(notification.token.0);
    out.put_u64(notification.count);
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
        NodeEvent::Done { xid } => out.put_u64(*xid),
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
            out.put_u64(*activation);
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
            out.put_count(keys.len());
            for side in keys {
                out.put_keys(side);
            }
        }
        NodeEvent::Unevaluated { queries } => out.put_hashes(queries),
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
            out.put_u64(*activation);
            out.put_snapshot(snapshot);
            out.put_u64(*rules_version);
            out.put_u32(*part);
            out.put_u8((*last).into());
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
            out.put_u64(*activation);
            out.put_u64(*rules_version);
            out.put_u8(image.is_some().into());
            if let Some(cause) = image {
                put_cause(out, cause);
            }
            out.put_count(changes.len());
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
            out.put_u64(*activation);
            out.put_u32(*slack);
        }
        _ => {}
    }
}

fn put_image(out: &mut Vec<u8>, image: &AfterImage) {
    let (kind, body) = kind_and_body(&image.content);
    out.reserve(128 + image.key.len() + body.len());
    out.put_u8(kind);
    out.put_u64(image.xid);
    out.put(&image.tenant);
    out.put(&image.collection);
    out.put_u64(image.version);
    out.put_u64(image.rules_version);
    out.put_i64(image.created_ms);
    out.put_i64(image.written_us);
    out.put_parts(&image.parts);
    out.put_short(&image.key);
    out.put_long(body);
}

fn put_cause(out: &mut Vec<u8>, cause: &Cause) {
    out.put_u64(cause.xid);
    out.put_u64(cause.rules_version);
    out.put_i64(cause.written_us);
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
            out.put_u8(kind);
            out.put_u32(*index);
            out.put_row(row);
        }
        WindowChange::Move {
            old_index,
            index,
            row,
        } => {
            out.put_u8(MOVE);
            out.put_u32(*old_index);
            out.put_u32(*index);
            out.put_row(row);
        }
        WindowChange::Remove {
            old_index,
            key,
            id,
            version,
            reason,
        } => {
            out.put_u8(match reason {
                RemovalReason::Deleted => REMOVE_DELETED,
                RemovalReason::Left => REMOVE_LEFT,
            });
            out.put_u32(*old_index);
            out.put_u64(*version);
            out.put_short(key);
            out.put_long(id);
        }
    }
}
