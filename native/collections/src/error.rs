//! Errors, grouped by what the caller does about them.

use std::fmt;

use rillbase_documents::refusal::DocumentRefusal;

/// The result of an operation on a collection.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation failed.
#[derive(Debug, Clone)]
pub enum Error {
    /// The storage engine failed.
    Engine(rillbase_engine::Error),
    /// The collection does not exist here.
    NoCollection,
    /// The request was made with another version of the collection's definition: it has to be read
    /// again.
    Stale {
        /// The installed version.
        installed: u64,
    },
    /// The key of a claim was used with another request.
    Mismatch,
    /// Another write of the group has the key of its claim.
    InProgress,
    /// The documents of a write are too large together.
    TooLarge,
    /// The write has to be sent again: the documents of its group are too large together, or its
    /// collection is about to have moved to another backend.
    Postponed,
    /// The definition has no index with this number.
    NoIndex,
    /// Two documents have the same values in a unique index that is being built.
    DuplicateKey {
        /// The shortened `_id` of each as Extended JSON.
        ids: [String; 2],
    },
    /// A document cannot be in an index that is being built.
    Unindexed {
        /// The document's shortened `_id` as Extended JSON.
        id: String,
        /// Why.
        refusal: Box<DocumentRefusal>,
    },
    /// A definition cannot be compiled.
    Definition(String),
    /// Stored bytes are malformed although their checksums match.
    Malformed(&'static str),
}

impl Error {
    /// A stable name of the error, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::NoCollection => "no_collection",
            Self::Stale { .. } => "stale",
            Self::Mismatch => "mismatch",
            Self::InProgress => "in_progress",
            Self::TooLarge => "too_large",
            Self::Postponed => "postponed",
            Self::NoIndex => "no_index",
            Self::DuplicateKey { .. } => "duplicate_key",
            Self::Unindexed { .. } => "not_indexable",
            Self::Definition(_) => "invalid_definition",
            Self::Malformed(_) => "corruption",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(error) => write!(out, "{error}"),
            Self::NoCollection => write!(out, "the collection does not exist"),
            Self::Stale { installed } => {
                write!(out, "the installed definition has version {installed}")
            }
            Self::Mismatch => write!(out, "the key was used with another request"),
            Self::InProgress => write!(out, "another write with the key is in progress"),
            Self::TooLarge => write!(out, "the documents of the write are too large together"),
            Self::Postponed => write!(out, "other writes have large documents: send it again"),
            Self::NoIndex => write!(out, "the index does not exist"),
            Self::DuplicateKey {
                ids: [first, second],
            } => {
                write!(out, "Documents {first} and {second} have the same key.")
            }
            Self::Unindexed { id, refusal } => {
                write!(out, "Document {id}: {}.", refusal.detail)
            }
            Self::Definition(why) => write!(out, "the definition is invalid: {why}"),
            Self::Malformed(what) => write!(out, "{what} is malformed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rillbase_engine::Error> for Error {
    fn from(error: rillbase_engine::Error) -> Self {
        Self::Engine(error)
    }
}
