//! The element types of BSON with their codes, `$type` aliases and ranks.

/// An element type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BsonType {
    /// 64-bit binary floating point.
    Double,
    /// UTF-8 text.
    String,
    /// An embedded document.
    Document,
    /// An array.
    Array,
    /// Bytes with a subtype.
    Binary,
    /// Deprecated; ordered before null.
    Undefined,
    /// Twelve bytes.
    ObjectId,
    /// True or false.
    Bool,
    /// Milliseconds since 1970, may be negative.
    Date,
    /// Null.
    Null,
    /// A regular expression as a value.
    Regex,
    /// Deprecated pointer to a document.
    DbPointer,
    /// JavaScript text, never run.
    Code,
    /// Deprecated text; equal to the string of the same text.
    Symbol,
    /// JavaScript with variables, never run.
    CodeWithScope,
    /// 32-bit integer.
    Int32,
    /// Seconds and ordinal of a replication clock.
    Timestamp,
    /// 64-bit integer.
    Int64,
    /// IEEE 754 decimal128.
    Decimal,
    /// After everything.
    MaxKey,
    /// Before everything.
    MinKey,
}

/// Every kind with its code in the format and its `$type` alias.
const TABLE: [(BsonType, u8, &str); 21] = [
    (BsonType::Double, 0x01, "double"),
    (BsonType::String, 0x02, "string"),
    (BsonType::Document, 0x03, "object"),
    (BsonType::Array, 0x04, "array"),
    (BsonType::Binary, 0x05, "binData"),
    (BsonType::Undefined, 0x06, "undefined"),
    (BsonType::ObjectId, 0x07, "objectId"),
    (BsonType::Bool, 0x08, "bool"),
    (BsonType::Date, 0x09, "date"),
    (BsonType::Null, 0x0A, "null"),
    (BsonType::Regex, 0x0B, "regex"),
    (BsonType::DbPointer, 0x0C, "dbPointer"),
    (BsonType::Code, 0x0D, "javascript"),
    (BsonType::Symbol, 0x0E, "symbol"),
    (BsonType::CodeWithScope, 0x0F, "javascriptWithScope"),
    (BsonType::Int32, 0x10, "int"),
    (BsonType::Timestamp, 0x11, "timestamp"),
    (BsonType::Int64, 0x12, "long"),
    (BsonType::Decimal, 0x13, "decimal"),
    (BsonType::MaxKey, 0x7F, "maxKey"),
    (BsonType::MinKey, 0xFF, "minKey"),
];

impl BsonType {
    /// The kind with this code.
    #[must_use]
    pub const fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0x01 => Self::Double,
            0x02 => Self::String,
            0x03 => Self::Document,
            0x04 => Self::Array,
            0x05 => Self::Binary,
            0x06 => Self::Undefined,
            0x07 => Self::ObjectId,
            0x08 => Self::Bool,
            0x09 => Self::Date,
            0x0A => Self::Null,
            0x0B => Self::Regex,
            0x0C => Self::DbPointer,
            0x0D => Self::Code,
            0x0E => Self::Symbol,
            0x0F => Self::CodeWithScope,
            0x10 => Self::Int32,
            0x11 => Self::Timestamp,
            0x12 => Self::Int64,
            0x13 => Self::Decimal,
            0x7F => Self::MaxKey,
            0xFF => Self::MinKey,
            _ => return None,
        })
    }

    /// The code in the format.
    #[must_use]
    pub fn code(self) -> u8 {
        TABLE
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or(0, |(_, code, _)| *code)
    }

    /// The number in `$type`, where MinKey is −1.
    #[must_use]
    pub fn type_number(self) -> i32 {
        if self == Self::MinKey {
            -1
        } else {
            i32::from(self.code())
        }
    }

    /// The alias in `$type`.
    #[must_use]
    pub fn alias(self) -> &'static str {
        TABLE
            .iter()
            .find(|(kind, ..)| *kind == self)
            .map_or("", |(.., alias)| *alias)
    }

    /// The kind with this `$type` alias.
    #[must_use]
    pub fn from_alias(alias: &str) -> Option<Self> {
        TABLE
            .iter()
            .find(|(.., name)| *name == alias)
            .map(|(kind, ..)| *kind)
    }

    /// The kind with this `$type` number.
    #[must_use]
    pub fn from_type_number(number: i64) -> Option<Self> {
        TABLE
            .iter()
            .find(|(kind, ..)| i64::from(kind.type_number()) == number)
            .map(|(kind, ..)| *kind)
    }

    /// Whether it is one of the four number types.
    #[must_use]
    pub const fn is_number(self) -> bool {
        matches!(
            self,
            Self::Int32 | Self::Int64 | Self::Double | Self::Decimal
        )
    }

    /// The rank in the order over types. Kinds of one rank are compared by
    /// value; comparison operators never match across ranks.
    #[must_use]
    pub const fn rank(self) -> u8 {
        match self {
            Self::MinKey => 1,
            Self::Undefined => 2,
            Self::Null => 5,
            Self::Int32 | Self::Int64 | Self::Double | Self::Decimal => 10,
            Self::String | Self::Symbol => 15,
            Self::Document => 20,
            Self::Array => 25,
            Self::Binary => 30,
            Self::ObjectId => 35,
            Self::Bool => 40,
            Self::Date => 45,
            Self::Timestamp => 47,
            Self::Regex => 50,
            Self::DbPointer => 55,
            Self::Code => 60,
            Self::CodeWithScope => 65,
            Self::MaxKey => 127,
        }
    }
}
