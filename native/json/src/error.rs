//! What can be wrong with a document, and where.

use std::fmt;

/// The stable name of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JsonErrorCode {
    /// The text does not follow the grammar.
    Malformed,
    /// The bytes are not UTF-8.
    BadUtf8,
    /// The text starts with a byte order mark.
    ByteOrderMark,
    /// A string or key holds U+0000, raw or escaped.
    NulInString,
    /// An escape names one half of a surrogate pair without the other.
    LoneSurrogate,
    /// An object names the same key twice.
    DuplicateKey,
    /// More arrays and objects are nested than [`JsonLimits::max_depth`](crate::JsonLimits).
    TooDeep,
    /// There are more values than [`JsonLimits::max_values`](crate::JsonLimits).
    TooManyValues,
    /// A number is longer than allowed, or larger than any double.
    NumberOutOfRange,
}

impl JsonErrorCode {
    /// The name under which callers see the code.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::BadUtf8 => "bad_utf8",
            Self::ByteOrderMark => "byte_order_mark",
            Self::NulInString => "nul_in_string",
            Self::LoneSurrogate => "lone_surrogate",
            Self::DuplicateKey => "duplicate_key",
            Self::TooDeep => "too_deep",
            Self::TooManyValues => "too_many_values",
            Self::NumberOutOfRange => "number_out_of_range",
        }
    }
}

/// Where in a document something is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JsonLocation {
    /// Bytes before it.
    pub offset: usize,
    /// Line, from 1. Lines end with a line feed.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// RFC 6901 pointer to the innermost value that had begun. A pointer longer than 1,024 bytes
    /// is cut to the enclosing value that still fits, so that an answer cannot be inflated.
    pub pointer: String,
}

/// Why and where a document was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// What is wrong.
    pub code: JsonErrorCode,
    /// What is wrong, in words; never holds text of the document.
    pub detail: &'static str,
    /// Where.
    pub location: JsonLocation,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JsonLocation { line, column, .. } = self.location;
        write!(f, "{} at line {line} column {column}", self.detail)
    }
}

impl std::error::Error for Error {}

/// Why reading ended early.
#[derive(Debug)]
pub enum ReadFailure<E> {
    /// The document was rejected.
    Json(Error),
    /// The sink rejected a value or failed.
    Sink {
        /// What the sink answered.
        error: E,
        /// The location of that value.
        location: JsonLocation,
    },
}
