//! Values that own their bytes.

use super::{Array, ArrayWriter, BinaryRef, Document, DocumentWriter, ObjectId, Regex, ValueRef};
use crate::decimal::Decimal;
use crate::error::Error;

/// A document that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DocumentBuf(Vec<u8>);

impl DocumentBuf {
    /// Validates and wraps bytes.
    pub fn parse(bytes: Vec<u8>) -> Result<Self, Error> {
        super::validate(&bytes)?;
        Ok(Self(bytes))
    }

    /// Wraps bytes that a writer of this crate created, or that were validated.
    #[must_use]
    pub const fn trusted(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The view.
    #[must_use]
    pub fn as_ref(&self) -> Document<'_> {
        Document::trusted(&self.0)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

impl Default for DocumentBuf {
    fn default() -> Self {
        Self(DocumentWriter::new().finish())
    }
}

impl From<Document<'_>> for DocumentBuf {
    fn from(document: Document<'_>) -> Self {
        Self(document.as_bytes().to_vec())
    }
}

impl From<DocumentWriter> for DocumentBuf {
    fn from(writer: DocumentWriter) -> Self {
        Self(writer.finish())
    }
}

/// An array that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArrayBuf(Vec<u8>);

impl ArrayBuf {
    /// The view.
    #[must_use]
    pub fn as_ref(&self) -> Array<'_> {
        Array::trusted(&self.0)
    }
}

impl From<ArrayWriter> for ArrayBuf {
    fn from(writer: ArrayWriter) -> Self {
        Self(writer.finish())
    }
}

impl From<Array<'_>> for ArrayBuf {
    fn from(array: Array<'_>) -> Self {
        Self(array.as_bytes().to_vec())
    }
}

impl<'a> FromIterator<ValueRef<'a>> for ArrayBuf {
    fn from_iter<I: IntoIterator<Item = ValueRef<'a>>>(values: I) -> Self {
        let mut writer = ArrayWriter::new();
        values.into_iter().for_each(|value| writer.push(value));
        writer.into()
    }
}

/// A value that owns its bytes.
#[derive(Debug, Clone)]
#[allow(
    missing_docs,
    reason = "the variants are named like the kinds, which are explained"
)]
pub enum Value {
    Double(f64),
    String(String),
    Document(DocumentBuf),
    Array(ArrayBuf),
    Binary(u8, Vec<u8>),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    Date(i64),
    Null,
    Regex(String, String),
    DbPointer(String, ObjectId),
    Code(String),
    Symbol(String),
    CodeWithScope(String, DocumentBuf),
    Int32(i32),
    Timestamp(u64),
    Int64(i64),
    Decimal(Decimal),
    MaxKey,
    MinKey,
}

impl Value {
    /// The view.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Double(double) => ValueRef::Double(*double),
            Self::String(text) => ValueRef::String(text),
            Self::Document(document) => ValueRef::Document(document.as_ref()),
            Self::Array(array) => ValueRef::Array(array.as_ref()),
            Self::Binary(subtype, bytes) => ValueRef::Binary(BinaryRef {
                subtype: *subtype,
                bytes,
            }),
            Self::Undefined => ValueRef::Undefined,
            Self::ObjectId(id) => ValueRef::ObjectId(*id),
            Self::Bool(bool) => ValueRef::Bool(*bool),
            Self::Date(date) => ValueRef::Date(*date),
            Self::Null => ValueRef::Null,
            Self::Regex(pattern, options) => ValueRef::Regex(Regex { pattern, options }),
            Self::DbPointer(name, id) => ValueRef::DbPointer(name, *id),
            Self::Code(code) => ValueRef::Code(code),
            Self::Symbol(text) => ValueRef::Symbol(text),
            Self::CodeWithScope(code, scope) => ValueRef::CodeWithScope(code, scope.as_ref()),
            Self::Int32(int) => ValueRef::Int32(*int),
            Self::Timestamp(stamp) => ValueRef::Timestamp(*stamp),
            Self::Int64(int) => ValueRef::Int64(*int),
            Self::Decimal(decimal) => ValueRef::Decimal(*decimal),
            Self::MaxKey => ValueRef::MaxKey,
            Self::MinKey => ValueRef::MinKey,
        }
    }

    /// Its approximate size in bytes, for the fuel.
    #[must_use]
    pub fn size(&self) -> usize {
        match self {
            Self::String(text) | Self::Code(text) | Self::Symbol(text) => text.len(),
            Self::Document(document) => document.0.len(),
            Self::Array(array) => array.0.len(),
            Self::Binary(_, bytes) => bytes.len(),
            _ => 16,
        }
    }
}

impl From<ValueRef<'_>> for Value {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Double(double) => Self::Double(double),
            ValueRef::String(text) => Self::String(text.into()),
            ValueRef::Document(document) => Self::Document(document.into()),
            ValueRef::Array(array) => Self::Array(array.into()),
            ValueRef::Binary(binary) => Self::Binary(binary.subtype, binary.bytes.into()),
            ValueRef::Undefined => Self::Undefined,
            ValueRef::ObjectId(id) => Self::ObjectId(id),
            ValueRef::Bool(bool) => Self::Bool(bool),
            ValueRef::Date(date) => Self::Date(date),
            ValueRef::Null => Self::Null,
            ValueRef::Regex(regex) => Self::Regex(regex.pattern.into(), regex.options.into()),
            ValueRef::DbPointer(name, id) => Self::DbPointer(name.into(), id),
            ValueRef::Code(code) => Self::Code(code.into()),
            ValueRef::Symbol(text) => Self::Symbol(text.into()),
            ValueRef::CodeWithScope(code, scope) => Self::CodeWithScope(code.into(), scope.into()),
            ValueRef::Int32(int) => Self::Int32(int),
            ValueRef::Timestamp(stamp) => Self::Timestamp(stamp),
            ValueRef::Int64(int) => Self::Int64(int),
            ValueRef::Decimal(decimal) => Self::Decimal(decimal),
            ValueRef::MaxKey => Self::MaxKey,
            ValueRef::MinKey => Self::MinKey,
        }
    }
}
