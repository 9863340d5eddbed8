//! How a document is represented: with its id, version and times.

use rillbase_query::bson::{Document, DocumentBuf, DocumentWriter, ValueRef};
use rillbase_query::ejson::date::to_rfc3339;
use rillbase_query::ejson::{Form, write_value};

/// The metadata of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Its version.
    pub version: i64,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: i64,
    /// When it was last changed.
    pub updated_ms: i64,
}

/// Appends the envelope of a row that stands for a group: it has no version or times. Its `_id` is
/// that of the envelope.
pub fn write_group(out: &mut String, id: ValueRef<'_>, row: Document<'_>, form: Form) {
    out.push_str(r#"{"id":"#);
    write_value(out, id, form);
    out.push_str(r#","version":null,"document":"#);
    write_row(out, row, form);
    out.push('}');
}

/// Appends what a row that stands for a group shows: all but its `_id`.
pub fn write_row(out: &mut String, row: Document<'_>, form: Form) {
    let mut shown = DocumentWriter::with_capacity(row.as_bytes().len());
    for element in row.elements().filter(|one| one.key() != Some("_id")) {
        shown.append_element(&element);
    }
    let shown = DocumentBuf::from(shown);
    write_value(out, ValueRef::Document(shown.as_ref()), form);
}

/// Appends the envelope of a document. `shown` is what a projection left of it.
pub fn write(out: &mut String, meta: Meta, id: ValueRef<'_>, shown: Document<'_>, form: Form) {
    out.push_str(r#"{"id":"#);
    write_value(out, id, form);
    out.push_str(r#","version":"#);
    out.push_str(&meta.version.to_string());
    for (name, moment) in [
        ("created_at", meta.created_ms),
        ("updated_at", meta.updated_ms),
    ] {
        out.push_str(",\"");
        out.push_str(name);
        out.push_str("\":\"");
        let text = to_rfc3339(moment).unwrap_or_default();
        match text.strip_suffix('Z') {
            Some(seconds) if !seconds.contains('.') => {
                out.push_str(seconds);
                out.push_str(".000Z");
            }
            _ => out.push_str(&text),
        }
        out.push('"');
    }
    out.push_str(r#","document":"#);
    write_value(out, ValueRef::Document(shown), form);
    out.push('}');
}
