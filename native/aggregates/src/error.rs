//! Errors: a stable code and a location.

use rillbase_binary_format::ReadError;
use std::fmt;

/// The result of anything that can be rejected.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed. Nothing has changed then.
#[derive(Debug, Clone)]
pub enum Error {
    /// The request is invalid or cannot be satisfied.
    Refused(AggregateRefusal),
    /// The engine failed.
    Engine(rillbase_engine::Error),
}

/// The reason for a rejection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateRefusal {
    /// The stable name.
    pub code: AggregateErrorCode,
    /// Which of many events, counted from 0.
    pub index: Option<usize>,
    /// The offending location as an RFC 6901 pointer.
    pub pointer: String,
    /// One sentence for people.
    pub detail: String,
}

/// The stable name of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateErrorCode {
    /// The definition is malformed.
    BadDefinition,
    /// An aggregate of that name has another definition.
    Exists,
    /// No aggregate has that name.
    Unknown,
    /// The aggregate has no such generation.
    NoGeneration,
    /// The generation is still being filled.
    NotReady,
    /// An event is malformed, or lacks what the definition requires.
    BadEvent,
    /// An event is older than what is remembered.
    EventTooOld,
    /// A number does not fit.
    Overflow,
    /// A change of a view is malformed.
    BadChange,
    /// The query is malformed.
    BadQuery,
    /// The query reads more than is allowed.
    TooExpensive,
    /// Too many of something.
    TooMany,
    /// A row would exceed the maximum number of items.
    TooManyItems,
    /// The snapshot is not open, or has no rows.
    SnapshotExpired,
}

impl AggregateErrorCode {
    /// The code as clients see it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BadDefinition => "BADDEFINITION",
            Self::Exists => "AGGEXISTS",
            Self::Unknown => "NO_AGGREGATE",
            Self::NoGeneration => "NOGENERATION",
            Self::NotReady => "NOTREADY",
            Self::BadEvent => "BADEVENT",
            Self::EventTooOld => "EVENTTOOOLD",
            Self::Overflow => "OVERFLOW",
            Self::BadChange => "BADCHANGE",
            Self::BadQuery => "BADQUERY",
            Self::TooExpensive => "TOOEXPENSIVE",
            Self::TooMany => "TOO_MANY",
            Self::TooManyItems => "TOOMANYITEMS",
            Self::SnapshotExpired => "SNAPSHOTEXPIRED",
        }
    }
}

impl Error {
    /// An error of the whole request.
    pub fn new(code: AggregateErrorCode, detail: impl Into<String>) -> Self {
        Self::at(code, "", detail)
    }

    /// An error at a location.
    pub fn at(
        code: AggregateErrorCode,
        pointer: impl Into<String>,
        detail: impl Into<String>,
    ) -> Self {
        Self::Refused(AggregateRefusal {
            code,
            index: None,
            pointer: pointer.into(),
            detail: detail.into(),
        })
    }

    /// The same, for the event with this index.
    #[must_use]
    pub fn of_event(self, index: usize) -> Self {
        match self {
            Self::Refused(refused) => Self::Refused(AggregateRefusal {
                index: Some(index),
                ..refused
            }),
            other @ Self::Engine(_) => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(out),
            Self::Refused(refused) => {
                if let Some(index) = refused.index {
                    write!(out, "{index} ")?;
                }
                let pointer = match refused.pointer.as_str() {
                    "" => "-",
                    pointer => pointer,
                };
                match refused.code {
                    AggregateErrorCode::BadEvent
                    | AggregateErrorCode::EventTooOld
                    | AggregateErrorCode::Overflow
                    | AggregateErrorCode::TooManyItems
                    | AggregateErrorCode::BadChange
                    | AggregateErrorCode::BadDefinition
                    | AggregateErrorCode::BadQuery => write!(out, "{pointer} {}", refused.detail),
                    _ => out.write_str(&refused.detail),
                }
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<rillbase_engine::Error> for Error {
    fn from(error: rillbase_engine::Error) -> Self {
        Self::Engine(error)
    }
}

/// Bytes written by this crate are damaged.
pub(crate) fn malformed() -> Error {
    Error::Engine(rillbase_engine::Error::InvalidArgument {
        what: "an entry of an aggregate is malformed although its checksum matches".into(),
    })
}

impl From<ReadError> for Error {
    fn from(_: ReadError) -> Self {
        malformed()
    }
}

/// A key as a segment of a pointer.
pub(crate) fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
