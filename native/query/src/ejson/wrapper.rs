//! Objects that denote typed values, such as `{"$numberLong":"1"}`.
//!
//! `$regex` with `$options` is also a query operator. A pair of strings is parsed as a value, since
//! a filter treats a regular expression value and the operator alike.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::build_refusal::BuildRefusal;
use super::date::from_rfc3339;
use crate::bson::{BinaryRef, Document, ObjectId, Regex, Value, ValueRef};
use crate::decimal::{Decimal, ParseError};

/// What an object whose first key starts with `$` denotes.
pub(super) enum Unwrapped<'a> {
    /// A document, such as an operator of a filter.
    Plain,
    /// A typed value.
    Borrowed(ValueRef<'a>),
    /// A typed value that was computed.
    Owned(Value),
}

/// Decides what the object is, by its first key.
pub(super) fn unwrap(document: Document<'_>) -> Result<Unwrapped<'_>, BuildRefusal> {
    let Some((key, value)) = document.iter().next() else {
        return Ok(Unwrapped::Plain);
    };
    let alone = document.len() == 1;
    let borrowed = match key {
        "$oid" => ValueRef::ObjectId(object_id(text(key, value)?)?),
        "$symbol" => ValueRef::Symbol(text(key, value)?),
        "$numberInt" => ValueRef::Int32(integer(key, value)?),
        "$numberLong" => ValueRef::Int64(integer(key, value)?),
        "$numberDouble" => ValueRef::Double(double(text(key, value)?)?),
        "$numberDecimal" => ValueRef::Decimal(decimal(text(key, value)?)?),
        "$date" => ValueRef::Date(date(value)?),
        "$timestamp" => ValueRef::Timestamp(timestamp(value)?),
        "$undefined" => marked(
            key,
            matches!(value, ValueRef::Bool(true)),
            ValueRef::Undefined,
        )?,
        "$minKey" => marked(key, is_one(value), ValueRef::MinKey)?,
        "$maxKey" => marked(key, is_one(value), ValueRef::MaxKey)?,
        "$regularExpression" => ValueRef::Regex(regular_expression(value)?),
        "$dbPointer" => pointer(value)?,
        "$binary" => return binary(document, value).map(Unwrapped::Owned),
        "$uuid" if alone => return uuid(text(key, value)?).map(Unwrapped::Owned),
        "$code" | "$scope" => return code(document),
        "$regex" | "$options" => return Ok(legacy_regex(document)),
        _ => return Ok(Unwrapped::Plain),
    };
    if !alone {
        return Err(BuildRefusal::new(format!(
            "{key} must be the only member of its object"
        )));
    }
    Ok(Unwrapped::Borrowed(borrowed))
}

fn text<'a>(key: &str, value: ValueRef<'a>) -> Result<&'a str, BuildRefusal> {
    value
        .as_str()
        .ok_or_else(|| BuildRefusal::new(format!("{key} takes a string")))
}

fn object_id(hex: &str) -> Result<ObjectId, BuildRefusal> {
    ObjectId::from_hex(hex).ok_or_else(|| BuildRefusal::new("$oid takes 24 hex digits"))
}

fn integer<I: std::str::FromStr>(key: &str, value: ValueRef<'_>) -> Result<I, BuildRefusal> {
    let digits = text(key, value)?;
    let body = digits.strip_prefix('-').unwrap_or(digits);
    let plain = !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_digit());
    let refused = || BuildRefusal::new(format!("{key} takes an integer in range, as a string"));
    if plain {
        digits.parse().map_err(|_| refused())
    } else {
        Err(refused())
    }
}

fn double(digits: &str) -> Result<f64, BuildRefusal> {
    match digits {
        "NaN" => return Ok(f64::NAN),
        "Infinity" => return Ok(f64::INFINITY),
        "-Infinity" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    let numeric = digits
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'));
    match digits.parse::<f64>() {
        Ok(double) if numeric && double.is_finite() => Ok(double),
        _ => Err(BuildRefusal::new(
            "$numberDouble takes a finite number, NaN, Infinity or -Infinity, as a string",
        )),
    }
}

fn decimal(digits: &str) -> Result<Decimal, BuildRefusal> {
    Decimal::parse_exact(digits).map_err(|error| {
        BuildRefusal::new(match error {
            ParseError::Malformed => "$numberDecimal takes a number as a string",
            ParseError::Inexact => {
                "$numberDecimal takes at most 34 digits and exponents from -6176 to 6144"
            }
        })
    })
}

/// A date as text or as milliseconds.
fn date(value: ValueRef<'_>) -> Result<i64, BuildRefusal> {
    match value {
        ValueRef::String(text) => match from_rfc3339(text) {
            Some(millis) => Ok(millis),
            None => Err(BuildRefusal::new(
                "$date takes an RFC 3339 date with time and offset",
            )),
        },
        ValueRef::Int64(millis) => Ok(millis),
        ValueRef::Int32(millis) => Ok(i64::from(millis)),
        _ => Err(BuildRefusal::new(
            "$date takes a string or {\"$numberLong\"}",
        )),
    }
}

fn timestamp(value: ValueRef<'_>) -> Result<u64, BuildRefusal> {
    let refused =
        || BuildRefusal::new("$timestamp takes {\"t\": seconds, \"i\": ordinal} of 32 bits each");
    let inner = value
        .as_document()
        .filter(|inner| inner.len() == 2)
        .ok_or_else(refused)?;
    let part = |key| {
        let int = inner.get(key).and_then(|value| value.as_exact_i64());
        int.and_then(|int| u32::try_from(int).ok())
            .ok_or_else(refused)
    };
    Ok((u64::from(part("t")?) << 32) | u64::from(part("i")?))
}

fn is_one(value: ValueRef<'_>) -> bool {
    matches!(value, ValueRef::Int32(1))
}

fn marked<'a>(
    key: &str,
    is_right: bool,
    value: ValueRef<'a>,
) -> Result<ValueRef<'a>, BuildRefusal> {
    if is_right {
        Ok(value)
    } else {
        Err(BuildRefusal::new(format!(
            "{key} takes only its single value"
        )))
    }
}

fn two<'a>(value: ValueRef<'a>, keys: [&str; 2]) -> Option<(ValueRef<'a>, ValueRef<'a>)> {
    let [first, second] = keys;
    let inner = value.as_document().filter(|inner| inner.len() == 2)?;
    Some((inner.get(first)?, inner.get(second)?))
}

fn regular_expression(value: ValueRef<'_>) -> Result<Regex<'_>, BuildRefusal> {
    let parts = two(value, ["pattern", "options"]);
    match parts.and_then(|(pattern, options)| Some((pattern.as_str()?, options.as_str()?))) {
        Some((pattern, options)) => regex(pattern, options),
        None => Err(BuildRefusal::new(
            "$regularExpression takes {\"pattern\", \"options\"}, both strings",
        )),
    }
}

/// Options are in alphabetical order, so that equal ones have equal bytes.
fn regex<'a>(pattern: &'a str, options: &'a str) -> Result<Regex<'a>, BuildRefusal> {
    if options.as_bytes().is_sorted_by(|a, b| a < b) {
        Ok(Regex { pattern, options })
    } else {
        Err(BuildRefusal::new(
            "the options of a regular expression are in alphabetical order, each once",
        ))
    }
}

/// `{"$regex":"…","$options":"…"}` of strings, in either order; with other
/// arguments it is the operator.
fn legacy_regex(document: Document<'_>) -> Unwrapped<'_> {
    let parts = two(ValueRef::Document(document), ["$regex", "$options"]);
    match parts.and_then(|(pattern, options)| Some((pattern.as_str()?, options.as_str()?))) {
        Some((pattern, options)) if options.as_bytes().is_sorted_by(|a, b| a < b) => {
            Unwrapped::Borrowed(ValueRef::Regex(Regex { pattern, options }))
        }
        _ => Unwrapped::Plain,
    }
}

fn pointer(value: ValueRef<'_>) -> Result<ValueRef<'_>, BuildRefusal> {
    match two(value, ["$ref", "$id"]) {
        Some((ValueRef::String(name), ValueRef::ObjectId(id))) => Ok(ValueRef::DbPointer(name, id)),
        _ => Err(BuildRefusal::new(
            "$dbPointer takes {\"$ref\": string, \"$id\": ObjectId}",
        )),
    }
}

/// `{"$binary":{"base64","subType"}}`, or the older `{"$binary","$type"}`.
fn binary(document: Document<'_>, value: ValueRef<'_>) -> Result<Value, BuildRefusal> {
    let parts = match document.len() {
        1 => two(value, ["base64", "subType"]),
        _ => two(ValueRef::Document(document), ["$binary", "$type"]),
    };
    let texts = parts.and_then(|(bytes, subtype)| Some((bytes.as_str()?, subtype.as_str()?)));
    let refused =
        || BuildRefusal::new("$binary takes {\"base64\", \"subType\": one or two hex digits}");
    let (encoded, subtype) = texts.ok_or_else(refused)?;
    let is_hex =
        (1..=2).contains(&subtype.len()) && subtype.bytes().all(|byte| byte.is_ascii_hexdigit());
    let subtype = u8::from_str_radix(subtype, 16)
        .ok()
        .filter(|_| is_hex)
        .ok_or_else(refused)?;
    let bytes = STANDARD
        .decode(encoded)
        .map_err(|_| BuildRefusal::new("$binary is not canonical base64"))?;
    Ok(Value::from(ValueRef::Binary(BinaryRef {
        subtype,
        bytes: &bytes,
    })))
}

/// Eight, four, four, four and twelve hex digits.
fn uuid(text: &str) -> Result<Value, BuildRefusal> {
    let refused = || BuildRefusal::new("$uuid takes a UUID with its four hyphens");
    let lengths: Vec<usize> = text.split('-').map(str::len).collect();
    let hex: String = text.split('-').collect();
    if lengths != [8, 4, 4, 4, 12] || !hex.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refused());
    }
    let number = u128::from_str_radix(&hex, 16).map_err(|_| refused())?;
    Ok(Value::Binary(4, number.to_be_bytes().to_vec()))
}

fn code(document: Document<'_>) -> Result<Unwrapped<'_>, BuildRefusal> {
    let code = document.get("$code").and_then(|code| code.as_str());
    match (code, document.get("$scope"), document.len()) {
        (Some(code), None, 1) => Ok(Unwrapped::Borrowed(ValueRef::Code(code))),
        (Some(code), Some(ValueRef::Document(scope)), 2) => {
            Ok(Unwrapped::Borrowed(ValueRef::CodeWithScope(code, scope)))
        }
        _ => Err(BuildRefusal::new(
            "$code takes a string; only $scope, a document, may accompany it",
        )),
    }
}
