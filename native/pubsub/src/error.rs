//! Errors.

use std::fmt;

/// The result of operations that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation was rejected or failed.
#[derive(Debug, Clone)]
pub enum Error {
    /// The underlying store failed.
    Engine(rillbase_engine::Error),
    /// A subscription's filter is invalid, or depends on more than one publication.
    Filter(rillbase_query::error::Error),
    /// An id is malformed.
    InvalidId {
        /// The error.
        what: &'static str,
    },
    /// An area or a grid is malformed.
    InvalidArea {
        /// The error.
        what: &'static str,
    },
    /// A place would take more cells than one operation may write.
    TooManyCells,
    /// A publication would live longer than its topic keeps publications.
    LivesTooLong,
    /// This kind of store does not support the operation.
    Unsupported {
        /// The operation.
        what: &'static str,
    },
    /// A stored record, or the name of a subscription, was not written by this code.
    Malformed {
        /// What was being read.
        what: &'static str,
    },
}

impl Error {
    /// A stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::Filter(error) => error.code.as_str(),
            Self::InvalidId { .. } => "invalid_id",
            Self::InvalidArea { .. } => "invalid_area",
            Self::TooManyCells => "too_many_cells",
            Self::LivesTooLong => "lives_too_long",
            Self::Unsupported { .. } => "unsupported",
            Self::Malformed { .. } => "malformed",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => error.fmt(out),
            Self::Filter(error) => error.fmt(out),
            Self::InvalidId { what }
            | Self::InvalidArea { what }
            | Self::Unsupported { what }
            | Self::Malformed { what } => out.write_str(what),
            Self::TooManyCells => {
                out.write_str("the place has more cells than one operation may write")
            }
            Self::LivesTooLong => {
                out.write_str("the publication would live longer than its topic keeps publications")
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

impl From<rillbase_query::error::Error> for Error {
    fn from(error: rillbase_query::error::Error) -> Self {
        Self::Filter(error)
    }
}
