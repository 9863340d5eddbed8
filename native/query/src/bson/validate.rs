//! The check of all external bytes before they are used.
//!
//! Rejected: wrong lengths, unknown types, bytes that are not UTF-8, booleans other than 0 and 1, a
//! zero inside a string (PostgreSQL and C clients would truncate it), documents deeper or larger
//! than [`crate::limits`] allow.

use super::document::{length_at, value_length};
use super::{BsonType, DocumentElements};
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::limits::{DOCUMENT_BYTES, NESTING_DEPTH};

/// Checks that `bytes` are one document and nothing else.
pub fn validate(bytes: &[u8]) -> Result<(), Error> {
    let location = ParseLocation::root();
    if bytes.len() > DOCUMENT_BYTES {
        let detail = format!(
            "the document has {} bytes; at most {DOCUMENT_BYTES} are allowed",
            bytes.len()
        );
        return Err(Error::new(ErrorCode::DocumentTooLarge, &location, detail));
    }
    document(bytes, 1, &location)
}

fn refuse(location: &ParseLocation<'_>, detail: &str) -> Error {
    Error::new(ErrorCode::InvalidBson, location, detail)
}

fn document(bytes: &[u8], depth: usize, location: &ParseLocation<'_>) -> Result<(), Error> {
    if depth > NESTING_DEPTH {
        let detail = format!("documents may be nested at most {NESTING_DEPTH} levels deep");
        return Err(Error::new(ErrorCode::NestingTooDeep, location, detail));
    }
    if length_at(bytes) != Some(bytes.len()) || bytes.len() < 5 {
        return Err(refuse(location, "the length of a document is wrong"));
    }
    let Some((0, body)) = bytes.split_last() else {
        return Err(refuse(location, "a document does not end with a zero byte"));
    };
    let mut rest = body.get(4..).unwrap_or_default();
    while let Some((code, after)) = rest.split_first() {
        let Some(kind) = BsonType::from_code(*code) else {
            return Err(refuse(location, "an element has an unknown type"));
        };
        let (key, after) = key(after, location)?;
        let here = location.key(key);
        let value = value_length(kind, after).and_then(|length| after.split_at_checked(length));
        let Some((value, after)) = value else {
            return Err(refuse(&here, "a value is longer than its document"));
        };
        check(kind, value, depth, &here)?;
        rest = after;
    }
    Ok(())
}

fn key<'a>(bytes: &'a [u8], location: &ParseLocation<'_>) -> Result<(&'a str, &'a [u8]), Error> {
    let end = bytes.iter().position(|byte| *byte == 0);
    let parts = end.and_then(|end| Some((bytes.get(..end)?, bytes.get(end + 1..)?)));
    let Some((key, after)) = parts else {
        return Err(refuse(location, "a key does not end"));
    };
    let key = std::str::from_utf8(key).map_err(|_| refuse(location, "a key is not UTF-8"))?;
    Ok((key, after))
}

fn check(
    kind: BsonType,
    value: &[u8],
    depth: usize,
    location: &ParseLocation<'_>,
) -> Result<(), Error> {
    match kind {
        BsonType::String | BsonType::Code | BsonType::Symbol => text(value, location),
        BsonType::Document => document(value, depth + 1, location),
        BsonType::Array => {
            document(value, depth + 1, location)?;
            array_keys(value, location)
        }
        BsonType::Bool if !matches!(value, [0 | 1]) => {
            Err(refuse(location, "a boolean is neither 0 nor 1"))
        }
        BsonType::Binary => binary(value, location),
        BsonType::Regex => match std::str::from_utf8(value) {
            Ok(_) => Ok(()),
            Err(_) => Err(refuse(location, "a regular expression is not UTF-8")),
        },
        BsonType::DbPointer => match value.split_last_chunk::<12>() {
            Some((name, _)) => text(name, location),
            None => Err(refuse(location, "a pointer is too short")),
        },
        BsonType::CodeWithScope => code_with_scope(value, depth, location),
        _ => Ok(()),
    }
}

fn text(bytes: &[u8], location: &ParseLocation<'_>) -> Result<(), Error> {
    let framed = bytes.get(4..).and_then(<[u8]>::split_last);
    let Some((0, text)) = framed else {
        return Err(refuse(location, "a string does not end with a zero byte"));
    };
    if text.contains(&0) {
        return Err(refuse(location, "a string contains U+0000"));
    }
    match std::str::from_utf8(text) {
        Ok(_) => Ok(()),
        Err(_) => Err(refuse(location, "a string is not UTF-8")),
    }
}

/// Numeric path segments rely on the keys being the positions.
fn array_keys(bytes: &[u8], location: &ParseLocation<'_>) -> Result<(), Error> {
    let elements: DocumentElements<'_> = super::Document::trusted(bytes).elements();
    for (index, element) in elements.enumerate() {
        if element.key_bytes() != index.to_string().as_bytes() {
            return Err(refuse(location, "the keys of an array are not 0, 1, 2, …"));
        }
    }
    Ok(())
}

fn binary(value: &[u8], location: &ParseLocation<'_>) -> Result<(), Error> {
    let Some((2, old)) = value.get(4..).and_then(<[u8]>::split_first) else {
        return Ok(());
    };
    if length_at(old).and_then(|inner| inner.checked_add(4)) == Some(old.len()) {
        return Ok(());
    }
    Err(refuse(
        location,
        "the inner length of old binary data is wrong",
    ))
}

fn code_with_scope(value: &[u8], depth: usize, location: &ParseLocation<'_>) -> Result<(), Error> {
    let wrong = || refuse(location, "JavaScript with scope has wrong lengths");
    let rest = value.get(4..).ok_or_else(wrong)?;
    let code_length = length_at(rest)
        .and_then(|length| length.checked_add(4))
        .ok_or_else(wrong)?;
    let (code, scope) = rest.split_at_checked(code_length).ok_or_else(wrong)?;
    text(code, location)?;
    document(scope, depth + 1, location)
}
