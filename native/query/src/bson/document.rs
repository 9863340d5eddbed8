//! Views of the bytes of documents and arrays.
//!
//! Invariant: the bytes passed [`super::validate`] once, when they entered.
//! Reading still checks every length, because a wrong answer for bytes that
//! rotted on a disk is better than a panic in a matching node.

use super::{Binary, Kind, ObjectId, Regex, ValueRef, validate};
use crate::decimal::Decimal;
use crate::error::Error;

/// The bytes of a document, with length and closing zero.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    bytes: &'a [u8],
}

/// The bytes of an array: a document whose keys are not looked at.
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
    pub fn elements(&self) -> Elements<'a> {
        Elements {
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

    /// The number of fields; counts them.
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
    pub fn iter(&self) -> Values<'a> {
        Values {
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

    /// The number of elements; counts them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.as_document().len()
    }
}

/// One element, its value not yet decoded.
#[derive(Debug, Clone, Copy)]
pub struct Element<'a> {
    kind: Kind,
    key: &'a [u8],
    value: &'a [u8],
}

impl<'a> Element<'a> {
    /// The type.
    #[must_use]
    pub const fn kind(&self) -> Kind {
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
            Kind::Double => ValueRef::Double(f64::from_le_bytes(bytes.try_into().ok()?)),
            Kind::String => ValueRef::String(text(bytes)?),
            Kind::Document => ValueRef::Document(Document { bytes }),
            Kind::Array => ValueRef::Array(Array { bytes }),
            Kind::Binary => ValueRef::Binary(binary(bytes)?),
            Kind::Undefined => ValueRef::Undefined,
            Kind::ObjectId => ValueRef::ObjectId(ObjectId(bytes.try_into().ok()?)),
            Kind::Bool => ValueRef::Bool(bytes != [0]),
            Kind::Date => ValueRef::Date(i64::from_le_bytes(bytes.try_into().ok()?)),
            Kind::Null => ValueRef::Null,
            Kind::Regex => ValueRef::Regex(regex(bytes)?),
            Kind::DbPointer => {
                let (name, id) = bytes.split_last_chunk::<12>()?;
                ValueRef::DbPointer(text(name)?, ObjectId(*id))
            }
            Kind::Code => ValueRef::Code(text(bytes)?),
            Kind::Symbol => ValueRef::Symbol(text(bytes)?),
            Kind::CodeWithScope => code_with_scope(bytes)?,
            Kind::Int32 => ValueRef::Int32(i32::from_le_bytes(bytes.try_into().ok()?)),
            Kind::Timestamp => ValueRef::Timestamp(u64::from_le_bytes(bytes.try_into().ok()?)),
            Kind::Int64 => ValueRef::Int64(i64::from_le_bytes(bytes.try_into().ok()?)),
            Kind::Decimal => ValueRef::Decimal(Decimal::from_le_bytes(bytes.try_into().ok()?)),
            Kind::MaxKey => ValueRef::MaxKey,
            Kind::MinKey => ValueRef::MinKey,
        })
    }
}

/// Reads a length-prefixed, zero-terminated string.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = bytes.get(4..bytes.len().checked_sub(1)?)?;
    std::str::from_utf8(text).ok()
}

fn binary(bytes: &[u8]) -> Option<Binary<'_>> {
    let (_, rest) = bytes.split_first_chunk::<4>()?;
    let (subtype, bytes) = rest.split_first()?;
    // The old generic subtype repeats the length inside.
    let bytes = if *subtype == 2 {
        bytes.get(4..)?
    } else {
        bytes
    };
    Some(Binary {
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
pub(super) fn value_length(kind: Kind, rest: &[u8]) -> Option<usize> {
    match kind {
        Kind::Double | Kind::Date | Kind::Timestamp | Kind::Int64 => Some(8),
        Kind::Int32 => Some(4),
        Kind::Bool => Some(1),
        Kind::ObjectId => Some(12),
        Kind::Decimal => Some(16),
        Kind::Undefined | Kind::Null | Kind::MaxKey | Kind::MinKey => Some(0),
        Kind::String | Kind::Code | Kind::Symbol => length_at(rest)?.checked_add(4),
        Kind::Document | Kind::Array | Kind::CodeWithScope => length_at(rest),
        Kind::Binary => length_at(rest)?.checked_add(5),
        Kind::DbPointer => length_at(rest)?.checked_add(16),
        Kind::Regex => {
            let pattern = rest.iter().position(|byte| *byte == 0)?.checked_add(1)?;
            let options = rest.get(pattern..)?.iter().position(|byte| *byte == 0)?;
            pattern.checked_add(options)?.checked_add(1)
        }
    }
}

/// The elements of a document.
#[derive(Debug, Clone)]
pub struct Elements<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (code, rest) = self.rest.split_first()?;
        let kind = Kind::from_code(*code)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        let (key, rest) = rest.split_at_checked(end)?;
        let rest = rest.get(1..)?;
        let (value, rest) = rest.split_at_checked(value_length(kind, rest)?)?;
        self.rest = rest;
        Some(Element { kind, key, value })
    }
}

/// The values of an array.
#[derive(Debug, Clone)]
pub struct Values<'a> {
    elements: Elements<'a>,
}

impl<'a> Iterator for Values<'a> {
    type Item = ValueRef<'a>;

    fn next(&mut self) -> Option<ValueRef<'a>> {
        self.elements.next()?.value()
    }
}
