//! Frames for subscribers, as JSON text.

use std::fmt::Write;
use std::sync::Arc;

use rillbase_documents::envelope::{self, Meta};
use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::{Form, write_value};
use rillbase_query::environment::EvaluationContext;
use rillbase_query::projection::{Matched, Projection};

use crate::message::{RemovalReason, ResultRow};

use super::change::ResultChange;

/// Documents larger than this, as JSON, are omitted from events.
const MAX_DOCUMENT_BYTES: usize = 1024 * 1024;

/// The place of a frame among the events of one group.
#[derive(Debug, Clone, Copy)]
pub(super) struct EventPart {
    pub(super) group: u64,
    pub(super) index: usize,
    pub(super) count: usize,
}

fn string(out: &mut String, text: &str) {
    write_value(out, ValueRef::String(text), Form::Relaxed);
}

fn begin(kind: &str, name: &str) -> String {
    let mut out = String::with_capacity(256);
    let _ = write!(out, r#"{{"type":"{kind}","id":"#);
    string(&mut out, name);
    out
}

fn end(mut out: String, resume: Option<&str>) -> String {
    if let Some(resume) = resume {
        let _ = write!(out, r#","resume":"{resume}""#);
    }
    out.push('}');
    out
}

pub(super) fn ready(name: &str, resume: &str) -> String {
    end(begin("ready", name), Some(resume))
}

pub(super) fn reset(name: &str, reason: &str) -> String {
    let mut out = begin("reset", name);
    let _ = write!(out, r#","reason":"{reason}""#);
    end(out, None)
}

pub(super) fn status(name: &str, live: bool) -> String {
    let mut out = begin("status", name);
    let state = if live { "live" } else { "stale" };
    let reason = if live { "caught_up" } else { "grid_behind" };
    let _ = write!(out, r#","state":"{state}","reason":"{reason}""#);
    end(out, None)
}

/// Reports documents that are omitted from the result.
pub(super) fn unevaluated(name: &str, count: u32) -> String {
    let mut out = begin("notice", name);
    let detail = "Documents that cannot be evaluated are missing from the result.";
    let code = "documents_not_evaluated";
    let _ = write!(
        out,
        r#","code":"{code}","count":{count},"detail":"{detail}""#
    );
    end(out, None)
}

pub(super) fn ended(name: &str, problem: &str) -> String {
    let mut out = begin("end", name);
    out.push_str(r#","error":"#);
    out.push_str(problem);
    end(out, None)
}

/// A part of a result.
pub(super) fn result(
    name: &str,
    items: &str,
    part: usize,
    last: bool,
    resume: Option<&str>,
) -> String {
    let mut out = begin("result", name);
    let _ = write!(out, r#","items":[{items}],"part":{part},"last":{last}"#);
    end(out, resume)
}

/// Appends a row as an envelope.
pub(super) fn item(out: &mut String, row: &ResultRow, projection: Option<&Projection>, form: Form) {
    let id = Document::trusted(&row.body).get("_id");
    let id = id.unwrap_or(ValueRef::Null);
    if row.is_group() {
        return envelope::write_group(out, id, row.document(), form);
    }
    let meta = Meta {
        version: i64::try_from(row.document_version()).unwrap_or(i64::MAX),
        created_ms: row.document_created_ms(),
        updated_ms: row.document_updated_ms(),
    };
    match shown(row, projection) {
        None => envelope::write(out, meta, id, row.document(), form),
        Some(shown) => envelope::write(out, meta, id, shown.as_ref(), form),
    }
}

fn shown(
    row: &ResultRow,
    projection: Option<&Projection>,
) -> Option<rillbase_query::bson::DocumentBuf> {
    let environment = EvaluationContext::at(row.document_updated_ms());
    let (shown, _) = projection?.apply_or_id(row.document(), Matched::default(), &environment);
    Some(shown)
}

/// The middle of an event's frame, which is the same for all subscribers with one projection and one
/// form of Extended JSON.
pub(super) fn event_body(
    change: &ResultChange,
    projection: Option<&Projection>,
    form: Form,
) -> Arc<str> {
    let mut out = String::with_capacity(256);
    let (kind, row, version) = match change {
        ResultChange::Add { row, .. } => ("add", row, row.document_version()),
        ResultChange::Stay { row, .. } => ("change", row, row.document_version()),
        ResultChange::Move { row, .. } => ("changeIndex", row, row.document_version()),
        ResultChange::Remove { row, version, .. } => ("remove", row, *version),
    };
    let _ = write!(out, r#","match":"{kind}","key":"#);
    let document = Document::trusted(&row.body);
    let id = document.get("_id").unwrap_or(ValueRef::Null);
    write_value(&mut out, id, form);
    if row.is_group() {
        out.push_str(r#","version":null"#);
    } else {
        let _ = write!(out, r#","version":{version}"#);
    }
    indexes(&mut out, change);
    match change {
        ResultChange::Remove { reason, .. } => {
            let reason = match reason {
                RemovalReason::Deleted => "deleted",
                RemovalReason::Left => "left",
            };
            let _ = write!(out, r#","reason":"{reason}""#);
        }
        _ => put_document(&mut out, row, projection, form),
    }
    out.into()
}

fn indexes(out: &mut String, change: &ResultChange) {
    let (index, old) = match change {
        ResultChange::Add { index, .. } => (*index, None),
        ResultChange::Stay { index, .. } => (*index, *index),
        ResultChange::Move {
            old_index, index, ..
        } => (Some(*index), Some(*old_index)),
        ResultChange::Remove { old_index, .. } => (None, *old_index),
    };
    if index.is_none() && old.is_none() {
        return;
    }
    for (name, value) in [("index", index), ("old_index", old)] {
        match value {
            Some(value) => {
                let _ = write!(out, r#","{name}":{value}"#);
            }
            None => {
                let _ = write!(out, r#","{name}":null"#);
            }
        }
    }
}

fn put_document(out: &mut String, row: &ResultRow, projection: Option<&Projection>, form: Form) {
    let before = out.len();
    out.push_str(r#","document":"#);
    match shown(row, projection) {
        None if row.is_group() => {
            envelope::write_row(out, row.document(), form);
        }
        None => write_value(out, ValueRef::Document(row.document()), form),
        Some(shown) => write_value(out, ValueRef::Document(shown.as_ref()), form),
    }
    if out.len() - before > MAX_DOCUMENT_BYTES {
        out.truncate(before);
        out.push_str(r#","omitted":"size""#);
    }
}

/// An event's frame.
pub(super) fn event(
    name: &str,
    seq: u64,
    body: &str,
    part: Option<EventPart>,
    resume: Option<&str>,
) -> String {
    let mut out = begin("event", name);
    let _ = write!(out, r#","seq":{seq}"#);
    out.push_str(body);
    if let Some(EventPart {
        group,
        index,
        count,
    }) = part
    {
        let _ = write!(
            out,
            r#","txn":{{"id":"{group}","index":{index},"count":{count}}}"#
        );
    }
    end(out, resume)
}
