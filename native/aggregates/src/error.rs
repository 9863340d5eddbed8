//! What is refused, by a stable code, and where.

use std::fmt;

/// The result of everything that can be refused.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something was not done. Nothing has changed then.
#[derive(Debug, Clone)]
pub enum Error {
    /// What was asked makes no sense, or cannot be done.
    Refused(AggregateRefusal),
    /// The engine could not.
    Engine(rillbase_engine::Error),
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AggregateRefusal {
    /// The stable name.
    pub code: AggregateErrorCode,
    /// Which of many events, counted from 0.
    pub index: Option<usize>,
    /// The offending place as an RFC 6901 pointer.
    pub pointer: String,
    /// One sentence for people.
    pub detail: String,
}

/// The stable name of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AggregateErrorCode {
    /// The definition is malformed.
    BadDefinition,
    /// An aggregate of that name has another definition.
    Exists,
    /// There is no aggregate of that name.
    Unknown,
    /// There is no such generation of the aggregate.
    NoGeneration,
    /// The generation is still being filled.
    NotReady,
    /// An event is malformed, or lacks what the definition asks for.
    BadEvent,
    /// An event is older than is remembered.
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
    /// A row would have more items than it may.
    TooManyItems,
    /// The moment that is asked about is not held, or has no rows.
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
    /// A refusal of the whole.
    pub fn new(code: AggregateErrorCode, detail: impl Into<String>) -> Self {
        Self::at(code, "", detail)
    }

    /// A refusal at a place.
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

    /// The same, of the event with this index.
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

/// Bytes that this crate wrote are not what they were.
pub(crate) fn malformed() -> Error {
    Error::Engine(rillbase_engine::Error::InvalidArgument {
        what: "an entry of an aggregate is malformed although its checksum matches".into(),
    })
}

/// A key as a segment of a pointer.
pub(crate) fn segment(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
