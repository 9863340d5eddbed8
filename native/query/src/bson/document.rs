//! Views of the bytes of documents and arrays.
//!
//! Invariant: the bytes passed [`super::validate`] once, when they entered.
//! Reading still checks every length, because a wrong answer for bytes that
//! rotted on a disk is better than a panic in a matching node.

use super::{BinaryRef, BsonType, ObjectId, Regex, ValueRef, validate};
use crate::decimal::Decimal;
use crate::error::Error;

/// The bytes of a document, with length and closing zero.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    bytes: &'a [u8],
}

/// The bytes of an array: a document whose keys are ignored.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a> {
    bytes: &'a [u8],
}

/// The smallest document.
const EMPTY: &[u8] = &[5, 0, 0, 0, 0];

impl<'a> Document<'a> {
    /// Validates `bytes` and views them.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        validate(bytes)?;
        Ok(Self { bytes })
    }

    /// Views bytes that were validated before, for example before they were
    /// stored.
    #[must_use]
    pub const fn trusted(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The document without fields.
    #[must_use]
    pub const fn empty() -> Self {
        Self { bytes: EMPTY }
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The elements in order.
    #[must_use]
    pub fn elements(&self) -> DocumentElements<'a> {
        DocumentElements {
            rest: self.bytes.get(4..).unwrap_or_default(),
        }
    }

    /// Keys with values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> + use<'a> {
        self.elements()
            .filter_map(|element| Some((element.key()?, element.value()?)))
    }

    /// The first value with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<ValueRef<'a>> {
        self.elements()
            .find(|element| element.key_bytes() == key.as_bytes())?
            .value()
    }

    /// Whether it has no fields.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.len() <= EMPTY.len()
    }

    /// The number of fields, which is counted by iterating.
    #[must_use]
    pub fn len(&self) -> usize {
        self.elements().count()
    }
}

impl<'a> Array<'a> {
    /// Views bytes that were validated before as an array.
    #[must_use]
    pub const fn trusted(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The same bytes as a document with the keys `"0"`, `"1"`, …
    #[must_use]
    pub const fn as_document(&self) -> Document<'a> {
        Document { bytes: self.bytes }
    }

    /// The elements' values in order.
    #[must_use]
    pub fn iter(&self) -> ArrayValues<'a> {
        ArrayValues {
            elements: self.as_document().elements(),
        }
    }

    /// The value at `index`.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<ValueRef<'a>> {
        self.iter().nth(index)
    }

    /// Whether it has no elements.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.bytes.len() <= EMPTY.len()
    }

    /// The number of elements, which is counted by iterating.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_document().len()
    }
}

/// One element, its value not yet decoded.
#[derive(Debug, Clone, Copy)]
pub struct BsonElement<'a> {
    kind: BsonType,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> BsonElement<'a> {
    /// The type.
    #[must_use]
    pub const fn kind(&self) -> BsonType {
        self.kind
    }

    /// The key's bytes; comparing them needs no UTF-8 check.
    #[must_use]
    pub const fn key_bytes(&self) -> &'a [u8] {
        self.key
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> Option<&'a str> {
        std::str::from_utf8(self.key).ok()
    }

    /// The value's bytes, without type and key.
    #[must_use]
    pub const fn value_bytes(&self) -> &'a [u8] {
        self.value
    }

    /// Decodes the value.
    #[must_use]
    pub fn value(&self) -> Option<ValueRef<'a>> {
        let bytes = self.value;
        Some(match self.kind {
            BsonType::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::String => ValueRef::String(text(bytes)?),
            BsonType::Document => ValueRef::Document(Document { bytes }),
            BsonType::Array => ValueRef::Array(Array { bytes }),
            BsonType::Binary => ValueRef::Binary(binary(bytes)?),
            BsonType::Undefined => ValueRef::Undefined,
            BsonType::ObjectId => ValueRef::ObjectId(ObjectId(bytes.try_into().ok()?)),
            BsonType::Bool => ValueRef::Bool(bytes != [0]),
            BsonType::Date => ValueRef::Date(i64::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::Null => ValueRef::Null,
            BsonType::Regex => ValueRef::Regex(regex(bytes)?),
            BsonType::DbPointer => {
                let (name, id) = bytes.split_last_chunk::<12>()?;
                ValueRef::DbPointer(text(name)?, ObjectId(*id))
            }
            BsonType::Code => ValueRef::Code(text(bytes)?),
            BsonType::Symbol => ValueRef::Symbol(text(bytes)?),
            BsonType::CodeWithScope => code_with_scope(bytes)?,
            BsonType::Int32 => ValueRef::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::Timestamp => ValueRef::Timestamp(u64::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::Int64 => ValueRef::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::Decimal => ValueRef::Decimal(Decimal::from_le_bytes(bytes.try_into().ok()?)),
            BsonType::MaxKey => ValueRef::MaxKey,
            BsonType::MinKey => ValueRef::MinKey,
        })
    }
}

/// Reads a length-prefixed, zero-terminated string.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = bytes.get(4..bytes.len().checked_sub(1)?)?;
    std::str::from_utf8(text).ok()
}

fn binary(bytes: &[u8]) -> Option<BinaryRef<'_>> {
    let (_, rest) = bytes.split_first_chunk::<4>()?;
    let (subtype, bytes) = rest.split_first()?;
    // The old generic subtype repeats the length inside.
    let bytes = if *subtype == 2 {
        bytes.get(4..)?
    } else {
        bytes
    };
    Some(BinaryRef {
        subtype: *subtype,
        bytes,
    })
}

fn regex(bytes: &[u8]) -> Option<Regex<'_>> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    let (pattern, options) = bytes.split_at_checked(end)?;
    let options = options.get(1..options.len().checked_sub(1)?)?;
    Some(Regex {
        pattern: std::str::from_utf8(pattern).ok()?,
        options: std::str::from_utf8(options).ok()?,
    })
}

fn code_with_scope(bytes: &[u8]) -> Option<ValueRef<'_>> {
    let rest = bytes.get(4..)?;
    let length = length_at(rest)?.checked_add(4)?;
    let (code, scope) = rest.split_at_checked(length)?;
    Some(ValueRef::CodeWithScope(
        text(code)?,
        Document { bytes: scope },
    ))
}

/// The little-endian length at the front of `bytes`.
pub(super) fn length_at(bytes: &[u8]) -> Option<usize> {
    let (length, _) = bytes.split_first_chunk::<4>()?;
    usize::try_from(i32::from_le_bytes(*length)).ok()
}

/// How many bytes the value at the front of `rest` takes.
#[inline]
pub(super) fn value_length(kind: BsonType, rest: &[u8]) -> Option<usize> {
    match kind {
        BsonType::Double | BsonType::Date | BsonType::Timestamp | BsonType::Int64 => Some(8),
        BsonType::Int32 => Some(4),
        BsonType::Bool => Some(1),
        BsonType::ObjectId => Some(12),
        BsonType::Decimal => Some(16),
        BsonType::Undefined | BsonType::Null | BsonType::MaxKey | BsonType::MinKey => Some(0),
        BsonType::String | BsonType::Code | BsonType::Symbol => length_at(rest)?.checked_add(4),
        BsonType::Document | BsonType::Array | BsonType::CodeWithScope => length_at(rest),
        BsonType::Binary => length_at(rest)?.checked_add(5),
        BsonType::DbPointer => length_at(rest)?.checked_add(16),
        BsonType::Regex => {
            let pattern = rest.iter().position(|byte| *byte == 0)?.checked_add(1)?;
            let options = rest.get(pattern..)?.iter().position(|byte| *byte == 0)?;
            pattern.checked_add(options)?.checked_add(1)
        }
    }
}

/// The elements of a document.
#[derive(Debug, Clone)]
pub struct DocumentElements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for DocumentElements<'a> {
    type Item = BsonElement<'a>;

    #[inline]
    fn next(&mut self) -> Option<BsonElement<'a>> {
        let (code, rest) = self.rest.split_first()?;
        let kind = BsonType::from_code(*code)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (key, rest) = rest.split_at_checked(end)?;
        let rest = rest.get(1..)?;
        let (value, rest) = rest.split_at_checked(value_length(kind, rest)?)?;
        self.rest = rest;
        Some(BsonElement { kind, key, value })
    }
}

/// The values of an array.
#[derive(Debug, Clone)]
pub struct ArrayValues<'a> {
    elements: DocumentElements<'a>,
}

impl<'a> Iterator for ArrayValues<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        self.elements.next()?.value()
    }
}
