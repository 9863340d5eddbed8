//! Writes BSON as text.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::date::to_rfc3339;
use crate::bson::{Array, Document, ValueRef};

/// Which of the two forms is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Every type can be read back.
    Canonical,
    /// Plain JSON where that is readable and safe.
    #[default]
    Relaxed,
}

/// Integers of at most this magnitude are exact in every reader of JSON.
const SAFE_INTEGER: u64 = 1 << 53;

/// The text of a document.
#[must_use]
pub fn document_to_string(document: Document<'_>, form: Form) -> String {
    value_to_string(ValueRef::Document(document), form)
}

/// The text of a value.
#[must_use]
pub fn value_to_string(value: ValueRef<'_>, form: Form) -> String {
    let mut text = String::new();
    write_value(&mut text, value, form);
    text
}

/// Appends the text of a value.
pub fn write_value(out: &mut String, value: ValueRef<'_>, form: Form) {
    match value {
        ValueRef::Null => out.push_str("null"),
        ValueRef::Bool(bool) => out.push_str(if bool { "true" } else { "false" }),
        ValueRef::String(text) => quoted(out, text),
        ValueRef::Document(inner) => document(out, inner, form),
        ValueRef::Array(inner) => array(out, inner, form),
        ValueRef::Int32(int) if form == Form::Relaxed => append(out, int),
        ValueRef::Int64(int) if form == Form::Relaxed && int.unsigned_abs() <= SAFE_INTEGER => {
            append(out, int)
        }
        ValueRef::Double(double) if form == Form::Relaxed && double.is_finite() => {
            append(out, Shortest(double))
        }
        ValueRef::Int32(int) => tagged(out, "$numberInt", &int.to_string()),
        ValueRef::Int64(int) => tagged(out, "$numberLong", &int.to_string()),
        ValueRef::Double(double) => tagged(out, "$numberDouble", &Shortest(double).to_string()),
        ValueRef::Decimal(decimal) => tagged(out, "$numberDecimal", &decimal.to_string()),
        ValueRef::ObjectId(id) => tagged(out, "$oid", &id.to_hex()),
        ValueRef::Symbol(text) => tagged(out, "$symbol", text),
        ValueRef::Code(text) => tagged(out, "$code", text),
        ValueRef::Date(millis) => date(out, millis, form),
        ValueRef::Undefined => out.push_str(r#"{"$undefined":true}"#),
        ValueRef::MinKey => out.push_str(r#"{"$minKey":1}"#),
        ValueRef::MaxKey => out.push_str(r#"{"$maxKey":1}"#),
        _ => composite(out, value, form),
    }
}

fn composite(out: &mut String, value: ValueRef<'_>, form: Form) {
    match value {
        ValueRef::Binary(binary) => {
            out.push_str(r#"{"$binary":{"base64":"#);
            quoted(out, &STANDARD.encode(binary.bytes));
            append(
                out,
                format_args!(r#","subType":"{:02x}"}}}}"#, binary.subtype),
            );
        }
        ValueRef::Regex(regex) => {
            out.push_str(r#"{"$regularExpression":{"pattern":"#);
            quoted(out, regex.pattern);
            out.push_str(r#","options":"#);
            quoted(out, regex.options);
            out.push_str("}}");
        }
        ValueRef::DbPointer(name, id) => {
            out.push_str(r#"{"$dbPointer":{"$ref":"#);
            quoted(out, name);
            append(
                out,
                format_args!(r#","$id":{{"$oid":"{}"}}}}}}"#, id.to_hex()),
            );
        }
        ValueRef::CodeWithScope(code, scope) => {
            out.push_str(r#"{"$code":"#);
            quoted(out, code);
            out.push_str(r#","$scope":"#);
            document(out, scope, form);
            out.push('}');
        }
        ValueRef::Timestamp(stamp) => {
            let (seconds, ordinal) = (stamp >> 32, stamp & 0xFFFF_FFFF);
            append(
                out,
                format_args!(r#"{{"$timestamp":{{"t":{seconds},"i":{ordinal}}}}}"#),
            );
        }
        _ => {}
    }
}

fn append(out: &mut String, shown: impl std::fmt::Display) {
    // Writing to a String cannot fail.
    let _ = write!(out, "{shown}");
}

fn tagged(out: &mut String, tag: &str, text: &str) {
    append(out, format_args!(r#"{{"{tag}":"#));
    quoted(out, text);
    out.push('}');
}

fn date(out: &mut String, millis: i64, form: Form) {
    // The relaxed form covers 1970 to 9999, as the specification requires.
    match to_rfc3339(millis).filter(|_| form == Form::Relaxed && millis >= 0) {
        Some(text) => tagged(out, "$date", &text),
        None => append(
            out,
            format_args!(r#"{{"$date":{{"$numberLong":"{millis}"}}}}"#),
        ),
    }
}

fn document(out: &mut String, document: Document<'_>, form: Form) {
    out.push('{');
    for (index, (key, value)) in document.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        quoted(out, key);
        out.push(':');
        write_value(out, value, form);
    }
    out.push('}');
}

fn array(out: &mut String, array: Array<'_>, form: Form) {
    out.push('[');
    for (index, value) in array.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        write_value(out, value, form);
    }
    out.push(']');
}

fn quoted(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || matches!(c, '"' | '\\')) {
        let (plain, after) = rest.split_at_checked(at).unwrap_or((rest, ""));
        out.push_str(plain);
        let mut characters = after.chars();
        match characters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some(control) => append(out, format_args!("\\u{:04x}", u32::from(control))),
            None => {}
        }
        rest = characters.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

/// The shortest digits that read back as the same double; always with a point
/// or an exponent, so that it stays a double.
pub(crate) struct Shortest(pub(crate) f64);

impl std::fmt::Display for Shortest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let double = self.0;
        if double.is_nan() {
            f.write_str("NaN")
        } else if double.is_infinite() {
            f.write_str(if double > 0.0 {
                "Infinity"
            } else {
                "-Infinity"
            })
        } else {
            // Debug writes 1.0, 1e100 and -0.0.
            write!(f, "{double:?}")
        }
    }
}
