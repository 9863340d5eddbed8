//! Shorthands for the input and output of nodes.

use std::sync::Arc;

use rillbase_live::message::{
    AfterImage, EmptyResult, FencingToken, ImageContent, NodeEvent, NodeRequest, Notification,
    NotificationSource, QueryDefinition, QueryHash, RemovalReason, ResultRow, StreamId, StreamTick,
    WindowChange, WriteEntry,
};
use rillbase_live::node::NodeOutput;
use rillbase_live::snapshot::PgSnapshot;
use rillbase_query::bson::Value;
use rillbase_query::ejson::parse_value;

pub(crate) const COLLECTION: [u8; 16] = [7; 16];

/// A document in BSON, from JSON.
pub(crate) fn bson(json: &str) -> Arc<[u8]> {
    match parse_value(json.as_bytes()) {
        Ok(Value::Document(document)) => document.as_bytes().into(),
        other => panic!("{json}: {other:?}"),
    }
}

pub(crate) fn hash(name: &str) -> QueryHash {
    let mut bytes = [b' '; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    QueryHash(bytes)
}

fn name(hash: &QueryHash) -> String {
    String::from_utf8_lossy(&hash.0).trim().to_owned()
}

/// A query in its first activation.
pub(crate) fn query(name: &str, filter: &str) -> QueryDefinition {
    QueryDefinition {
        hash: hash(name),
        activation: 1,
        tenant: [1; 16],
        collection: COLLECTION,
        rules_version: 0,
        filter: bson(filter),
        sort: [].into(),
        offset: 0,
        limit: None,
        sorted: false,
        slack: 0,
        group: [].into(),
        lookups: [].into(),
        sides: [].into(),
        rule: [].into(),
    }
}

/// A query sorted by `n`, with a window.
pub(crate) fn sorted(name: &str, offset: u32, limit: u32, slack: u32) -> QueryDefinition {
    QueryDefinition {
        sort: bson(r#"{"sort":[["n",1]]}"#),
        offset,
        limit: Some(limit),
        sorted: true,
        slack,
        ..query(name, r#"{"n":{"$gte":0}}"#)
    }
}

/// The key of a one-letter `_id`, in its shortest form: nodes accept any bytes.
pub(crate) fn key(id: &str) -> Arc<[u8]> {
    id.as_bytes().into()
}

pub(crate) fn body(id: &str, n: i64) -> Arc<[u8]> {
    bson(&format!(r#"{{"_id":"{id}","n":{n}}}"#))
}

/// A row of a registration.
pub(crate) fn row(id: &str, version: u64, n: i64) -> ResultRow {
    ResultRow {
        key: key(id),
        version,
        created_ms: 0,
        updated_ms: 0,
        body: body(id, n),
    }
}

/// A write by a transaction; without `n` a delete.
pub(crate) fn image(xid: u64, id: &str, version: u64, n: Option<i64>) -> AfterImage {
    let content = match n {
        Some(n) => ImageContent::Document(body(id, n)),
        None => ImageContent::Deleted(bson(&format!(r#"{{"_id":"{id}"}}"#))),
    };
    AfterImage {
        xid,
        tenant: [1; 16],
        collection: COLLECTION,
        version,
        rules_version: 0,
        created_ms: 0,
        written_us: 0,
        key: key(id),
        content,
        parts: [].into(),
    }
}

pub(crate) fn in_batch(mut image: AfterImage, parts: &[u16]) -> WriteEntry {
    image.parts = parts.into();
    WriteEntry::Image(image)
}

/// Everything below `next` is visible.
pub(crate) fn until(next: u64) -> PgSnapshot {
    PgSnapshot {
        xmin: next,
        xmax: next,
        running: Vec::new(),
    }
}

/// Everything below `next` but `running` is visible.
pub(crate) fn without(next: u64, running: &[u64]) -> PgSnapshot {
    PgSnapshot {
        xmin: running.first().copied().unwrap_or(next),
        xmax: next,
        running: running.into(),
    }
}

pub(crate) fn tick(count: u64, snapshot: PgSnapshot) -> StreamTick {
    StreamTick {
        time_us: count * 1_000,
        count,
        token: FencingToken(1),
        incarnation: [1; 16],
        snapshot,
    }
}

pub(crate) fn at(number: u64) -> StreamId {
    StreamId { ms: 1, number }
}

pub(crate) fn register(
    query: &QueryDefinition,
    position: u64,
    snapshot: &PgSnapshot,
    rows: &[ResultRow],
    complete: bool,
) -> NodeRequest {
    NodeRequest::Register {
        query: query.clone(),
        positions: vec![at(position); 2],
        snapshot: snapshot.clone(),
        rows: rows.to_vec(),
        complete,
        foreign: Vec::new(),
        renewal: false,
    }
}

pub(crate) fn renewal(mut request: NodeRequest) -> NodeRequest {
    if let NodeRequest::Register { renewal, .. } = &mut request {
        *renewal = true;
    }
    request
}

pub(crate) fn notification(
    source: NotificationSource,
    token: u64,
    count: u64,
    event: NodeEvent,
) -> Notification {
    Notification {
        source,
        token: FencingToken(token),
        count,
        event,
    }
}

/// The output of a node, one line each.
pub(crate) fn lines(out: &[NodeOutput]) -> Vec<String> {
    out.iter()
        .map(|output| match output {
            NodeOutput::Rebuild(why) => format!("rebuild {why:?}"),
            NodeOutput::Notify(notification) => line(&notification.event),
        })
        .collect()
}

fn line(event: &NodeEvent) -> String {
    match event {
        NodeEvent::Start => "start".into(),
        NodeEvent::Match {
            image,
            added,
            changed,
            removed,
        } => {
            let mut line = format!("{}@{}", letter(&image.key), image.version);
            for (sign, queries) in [('+', added), ('=', changed), ('-', removed)] {
                for query in queries {
                    line += &format!(" {sign}{}", name(query));
                }
            }
            line
        }
        NodeEvent::Done { xid } => format!("done {xid}"),
        NodeEvent::Active {
            query, activation, ..
        } => format!("active {} {activation}", name(query)),
        NodeEvent::TooOld { query, .. } => format!("too old {}", name(query)),
        NodeEvent::Failed { query, code, .. } => format!("failed {} {code}", name(query)),
        NodeEvent::Tick(tick) => format!("tick {}", tick.count),
        NodeEvent::Rebase {
            query,
            rows,
            part,
            last,
            ..
        } => {
            let rows: Vec<_> = rows.iter().map(shown).collect();
            let more = if *last { "" } else { " …" };
            let part = if *part == 0 {
                String::new()
            } else {
                format!(" {part}")
            };
            format!("rebase {}{part} [{}]{more}", name(query), rows.join(" "))
        }
        NodeEvent::Rebased { .. } => "rebased".into(),
        NodeEvent::Window { query, changes, .. } => {
            let changes: Vec<_> = changes.iter().map(change).collect();
            format!("window {} [{}]", name(query), changes.join(", "))
        }
        NodeEvent::Renew { query, slack, .. } => format!("renew {} {slack}", name(query)),
        NodeEvent::Fetch { fetch, keys } => {
            let keys: Vec<_> = keys.iter().flatten().map(|key| letter(key)).collect();
            format!("fetch {} {}", name(&fetch.query), keys.join(" "))
        }
        NodeEvent::Unevaluated { queries } => {
            let queries: Vec<_> = queries.iter().map(name).collect();
            format!("unevaluated {}", queries.join(" "))
        }
        NodeEvent::Empty { queries, .. } => {
            let line = |empty: &EmptyResult| format!("{} {}", name(&empty.query), empty.activation);
            let queries: Vec<_> = queries.iter().map(line).collect();
            format!("empty {}", queries.join(" "))
        }
    }
}

fn letter(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn shown(row: &ResultRow) -> String {
    format!("{}@{}", letter(&row.key), row.version)
}

fn change(change: &WindowChange) -> String {
    match change {
        WindowChange::Add { index, row } => format!("+{index} {}", shown(row)),
        WindowChange::Change { index, row } => format!("={index} {}", shown(row)),
        WindowChange::Move {
            old_index,
            index,
            row,
        } => format!("{old_index}>{index} {}", shown(row)),
        WindowChange::Remove {
            old_index,
            key,
            version,
            reason,
            ..
        } => {
            let why = match reason {
                RemovalReason::Deleted => "deleted",
                RemovalReason::Left => "left",
            };
            format!("-{old_index} {}@{version} {why}", letter(key))
        }
    }
}
