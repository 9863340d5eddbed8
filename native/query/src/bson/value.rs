//! One value, borrowed from the bytes of a document.

use super::{Array, BsonType, Document};
use crate::decimal::Decimal;

/// Twelve bytes: seconds, random, counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId(pub [u8; 12]);

impl ObjectId {
    /// Reads 24 hex digits.
    #[must_use]
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 24 {
            return None;
        }
        let mut bytes = [0; 12];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return None };
            let high = char::from(*high).to_digit(16)?;
            let low = char::from(*low).to_digit(16)?;
            *byte = u8::try_from(high * 16 + low).ok()?;
        }
        Some(Self(bytes))
    }

    /// As 24 lower-case hex digits.
    #[must_use]
    pub fn to_hex(self) -> String {
        self.0
            .iter()
            .fold(String::with_capacity(24), |mut text, byte| {
                for digit in [byte >> 4, byte & 15] {
                    text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
                }
                text
            })
    }

    /// The time of its creation, in seconds since 1970.
    #[must_use]
    pub const fn seconds(self) -> u32 {
        let [a, b, c, d, ..] = self.0;
        u32::from_be_bytes([a, b, c, d])
    }
}

/// Bytes with a subtype.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinaryRef<'a> {
    /// 0 generic, 3 and 4 UUID, 5 MD5, 128 and above user-defined, …
    pub subtype: u8,
    /// The bytes; for the old subtype 2 without the inner length.
    pub bytes: &'a [u8],
}

/// A regular expression as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regex<'a> {
    /// The pattern.
    pub pattern: &'a str,
    /// Option letters.
    pub options: &'a str,
}

/// A value borrowed from a document.
#[derive(Debug, Clone, Copy)]
#[allow(
    missing_docs,
    reason = "the variants are named like the kinds, which are explained"
)]
pub enum ValueRef<'a> {
    Double(f64),
    String(&'a str),
    Document(Document<'a>),
    Array(Array<'a>),
    Binary(BinaryRef<'a>),
    Undefined,
    ObjectId(ObjectId),
    Bool(bool),
    Date(i64),
    Null,
    Regex(Regex<'a>),
    DbPointer(&'a str, ObjectId),
    Code(&'a str),
    Symbol(&'a str),
    CodeWithScope(&'a str, Document<'a>),
    Int32(i32),
    Timestamp(u64),
    Int64(i64),
    Decimal(Decimal),
    MaxKey,
    MinKey,
}

impl<'a> ValueRef<'a> {
    /// The element type.
    #[must_use]
    pub const fn kind(&self) -> BsonType {
        match self {
            Self::Double(_) => BsonType::Double,
            Self::String(_) => BsonType::String,
            Self::Document(_) => BsonType::Document,
            Self::Array(_) => BsonType::Array,
            Self::Binary(_) => BsonType::Binary,
            Self::Undefined => BsonType::Undefined,
            Self::ObjectId(_) => BsonType::ObjectId,
            Self::Bool(_) => BsonType::Bool,
            Self::Date(_) => BsonType::Date,
            Self::Null => BsonType::Null,
            Self::Regex(_) => BsonType::Regex,
            Self::DbPointer(..) => BsonType::DbPointer,
            Self::Code(_) => BsonType::Code,
            Self::Symbol(_) => BsonType::Symbol,
            Self::CodeWithScope(..) => BsonType::CodeWithScope,
            Self::Int32(_) => BsonType::Int32,
            Self::Timestamp(_) => BsonType::Timestamp,
            Self::Int64(_) => BsonType::Int64,
            Self::Decimal(_) => BsonType::Decimal,
            Self::MaxKey => BsonType::MaxKey,
            Self::MinKey => BsonType::MinKey,
        }
    }

    /// The bytes of what a string, a document or an array holds; other values from JSON are small.
    #[must_use]
    pub const fn content_bytes(&self) -> usize {
        match self {
            Self::String(text) => text.len(),
            Self::Document(document) => document.as_bytes().len(),
            Self::Array(array) => array.as_bytes().len(),
            _ => 0,
        }
    }

    /// The rank of its type in the order over types.
    #[must_use]
    pub const fn rank(&self) -> u8 {
        self.kind().rank()
    }

    /// Whether it is a number.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        self.kind().is_number()
    }

    /// The text of a string (not of a symbol).
    #[must_use]
    pub const fn as_str(&self) -> Option<&'a str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The embedded document.
    #[must_use]
    pub const fn as_document(&self) -> Option<Document<'a>> {
        match self {
            Self::Document(document) => Some(*document),
            _ => None,
        }
    }

    /// The array.
    #[must_use]
    pub const fn as_array(&self) -> Option<Array<'a>> {
        match self {
            Self::Array(array) => Some(*array),
            _ => None,
        }
    }

    /// Whether it is NaN, binary or decimal.
    #[must_use]
    pub fn is_nan(&self) -> bool {
        match self {
            Self::Double(double) => double.is_nan(),
            Self::Decimal(decimal) => decimal.is_nan(),
            _ => false,
        }
    }

    /// The integer with the same value, if there is one that fits.
    #[must_use]
    pub fn as_exact_i64(&self) -> Option<i64> {
        match self {
            Self::Int32(int) => Some(i64::from(*int)),
            Self::Int64(int) => Some(*int),
            Self::Double(double) => crate::double::exact_i64(*double),
            Self::Decimal(decimal) => decimal.to_exact_i64(),
            _ => None,
        }
    }
}
