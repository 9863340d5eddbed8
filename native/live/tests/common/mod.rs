//! Short ways to say what nodes are told and what they answer.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::sync::Arc;

use rillbase_live::message::{
    AfterImage, Content, Definition, Gone, News, Notification, QueryHash, Request, Row, Source,
    StreamId, Tick, Token, WindowChange, WriteEntry,
};
use rillbase_live::node::Output;
use rillbase_live::snapshot::Snapshot;
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

/// A query in its first life.
pub(crate) fn query(name: &str, filter: &str) -> Definition {
    Definition {
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

/// The first rows by `n`.
pub(crate) fn sorted(name: &str, offset: u32, limit: u32, slack: u32) -> Definition {
    Definition {
        sort: bson(r#"{"sort":[["n",1]]}"#),
        offset,
        limit: Some(limit),
        sorted: true,
        slack,
        ..query(name, r#"{"n":{"$gte":0}}"#)
    }
}

/// The key of a one-letter `_id`, as short as can be: nodes take any bytes.
pub(crate) fn key(id: &str) -> Arc<[u8]> {
    id.as_bytes().into()
}

pub(crate) fn body(id: &str, n: i64) -> Arc<[u8]> {
    bson(&format!(r#"{{"_id":"{id}","n":{n}}}"#))
}

/// A row as a registration brings it.
pub(crate) fn row(id: &str, version: u64, n: i64) -> Row {
    Row {
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
        Some(n) => Content::Document(body(id, n)),
        None => Content::Deleted(bson(&format!(r#"{{"_id":"{id}"}}"#))),
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
pub(crate) fn until(next: u64) -> Snapshot {
    Snapshot {
        xmin: next,
        xmax: next,
        running: Vec::new(),
    }
}

/// Everything below `next` but `running` is visible.
pub(crate) fn without(next: u64, running: &[u64]) -> Snapshot {
    Snapshot {
        xmin: running.first().copied().unwrap_or(next),
        xmax: next,
        running: running.into(),
    }
}

pub(crate) fn tick(count: u64, snapshot: Snapshot) -> Tick {
    Tick {
        time_us: count * 1_000,
        count,
        token: Token(1),
        incarnation: [1; 16],
        snapshot,
    }
}

pub(crate) fn at(number: u64) -> StreamId {
    StreamId { ms: 1, number }
}

pub(crate) fn register(
    query: &Definition,
    position: u64,
    snapshot: &Snapshot,
    rows: &[Row],
    complete: bool,
) -> Request {
    Request::Register {
        query: query.clone(),
        positions: vec![at(position); 2],
        snapshot: snapshot.clone(),
        rows: rows.to_vec(),
        complete,
        foreign: Vec::new(),
        renewal: false,
    }
}

pub(crate) fn renewal(mut request: Request) -> Request {
    if let Request::Register { renewal, .. } = &mut request {
        *renewal = true;
    }
    request
}

pub(crate) fn told(source: Source, token: u64, count: u64, news: News) -> Notification {
    Notification {
        source,
        token: Token(token),
        count,
        news,
    }
}

/// What a node gave out, a line each.
pub(crate) fn lines(out: &[Output]) -> Vec<String> {
    out.iter()
        .map(|output| match output {
            Output::Rebuild(why) => format!("rebuild {why:?}"),
            Output::Notify(notification) => line(&notification.news),
        })
        .collect()
}

fn line(news: &News) -> String {
    match news {
        News::Start => "start".into(),
        News::Match {
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
        News::Done { xid } => format!("done {xid}"),
        News::Active {
            query, activation, ..
        } => format!("active {} {activation}", name(query)),
        News::TooOld { query, .. } => format!("too old {}", name(query)),
        News::Failed { query, code, .. } => format!("failed {} {code}", name(query)),
        News::Tick(tick) => format!("tick {}", tick.count),
        News::Rebase {
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
        News::Rebased { .. } => "rebased".into(),
        News::Window { query, changes, .. } => {
            let changes: Vec<_> = changes.iter().map(change).collect();
            format!("window {} [{}]", name(query), changes.join(", "))
        }
        News::Renew { query, slack, .. } => format!("renew {} {slack}", name(query)),
        News::Fetch { asked, keys } => {
            let keys: Vec<_> = keys.iter().flatten().map(|key| letter(key)).collect();
            format!("fetch {} {}", name(&asked.query), keys.join(" "))
        }
        News::Unevaluated { queries } => {
            let queries: Vec<_> = queries.iter().map(name).collect();
            format!("unevaluated {}", queries.join(" "))
        }
    }
}

fn letter(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

fn shown(row: &Row) -> String {
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
            gone,
            ..
        } => {
            let why = match gone {
                Gone::Deleted => "deleted",
                Gone::Left => "left",
            };
            format!("-{old_index} {}@{version} {why}", letter(key))
        }
    }
}
