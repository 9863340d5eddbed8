//! Errors: a stable code and a location.
//!
//! All errors of a caller are found while parsing, so that an [`Error`] has a JSON pointer (RFC
//! 6901) into the text that the caller sent. Evaluation can fail too ([`EvaluationFailure`]), but
//! only because it runs out of fuel or because an aggregation expression does not accept a value.

use std::fmt;

/// The stable name of a refusal; [`ErrorCode::as_str`] is part of the public API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The bytes are not BSON, or break a limit of the format.
    InvalidBson,
    /// The text is not strict JSON or not Extended JSON.
    InvalidJson,
    /// The document is larger than 16 MiB.
    DocumentTooLarge,
    /// Nesting is deeper than allowed.
    NestingTooDeep,
    /// The filter is malformed.
    InvalidFilter,
    /// The filter has too many nodes, is too deep or too long.
    FilterTooLarge,
    /// The operator is unknown or not supported; the detail names it.
    UnsupportedOperator,
    /// The regular expression is malformed, too large, or not linear-time.
    InvalidRegex,
    /// The sort is malformed.
    InvalidSort,
    /// The projection is malformed.
    InvalidProjection,
    /// The group is malformed, or combined with something that excludes it.
    InvalidGroup,
    /// The lookups are malformed, or combined with a group.
    InvalidLookup,
    /// The update is malformed or cannot be applied to this document.
    InvalidUpdate,
    /// The aggregation expression is malformed.
    InvalidExpression,
    /// The JSON Schema is malformed.
    InvalidSchema,
    /// The geometry is malformed.
    InvalidGeometry,
    /// A filter that depends on the current time cannot be subscribed to.
    NotLive,
    /// One evaluation needed more steps or memory than allowed.
    QueryTooExpensive,
    /// An expression was applied to a value that it does not accept.
    EvaluationFailed,
}

impl ErrorCode {
    /// The code as callers see it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidBson => "invalid_bson",
            Self::InvalidJson => "invalid_json",
            Self::DocumentTooLarge => "document_too_large",
            Self::NestingTooDeep => "nesting_too_deep",
            Self::InvalidFilter => "invalid_filter",
            Self::FilterTooLarge => "filter_too_large",
            Self::UnsupportedOperator => "unsupported_operator",
            Self::InvalidRegex => "invalid_regex",
            Self::InvalidSort => "invalid_sort",
            Self::InvalidProjection => "invalid_projection",
            Self::InvalidGroup => "invalid_group",
            Self::InvalidLookup => "invalid_lookup",
            Self::InvalidUpdate => "invalid_update",
            Self::InvalidExpression => "invalid_expression",
            Self::InvalidSchema => "invalid_schema",
            Self::InvalidGeometry => "invalid_geometry",
            Self::NotLive => "not_live",
            Self::QueryTooExpensive => "query_too_expensive",
            Self::EvaluationFailed => "evaluation_failed",
        }
    }
}

/// A refusal: its code, where (a JSON pointer, `""` being the whole), and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The stable name.
    pub code: ErrorCode,
    /// The offending location as an RFC 6901 pointer.
    pub pointer: String,
    /// One sentence for people.
    pub detail: String,
}

impl Error {
    /// A refusal at `location`.
    pub fn new(code: ErrorCode, location: &ParseLocation<'_>, detail: impl Into<String>) -> Self {
        Self {
            code,
            pointer: location.pointer(),
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} at '{}': {}",
            self.code.as_str(),
            self.pointer,
            self.detail
        )
    }
}

impl std::error::Error for Error {}

/// Where a parser is: a list on the stack, rendered only for errors, so that precise locations cost
/// nothing for correct input.
#[derive(Debug, Clone, Copy)]
pub struct ParseLocation<'p> {
    parent: Option<&'p ParseLocation<'p>>,
    segment: LocationSegment<'p>,
}

#[derive(Debug, Clone, Copy)]
enum LocationSegment<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl<'p> ParseLocation<'p> {
    /// The whole input.
    #[must_use]
    pub const fn root() -> Self {
        Self {
            parent: None,
            segment: LocationSegment::Root,
        }
    }

    /// The member `key` of this location.
    #[must_use]
    pub const fn key(&'p self, key: &'p str) -> Self {
        Self {
            parent: Some(self),
            segment: LocationSegment::Key(key),
        }
    }

    /// The element at `index` of this location.
    #[must_use]
    pub const fn index(&'p self, index: usize) -> Self {
        Self {
            parent: Some(self),
            segment: LocationSegment::Index(index),
        }
    }

    /// The member of this name beside this one, or below the root.
    #[must_use]
    pub fn sibling<'s>(&'s self, name: &'s str) -> ParseLocation<'s> {
        self.parent.unwrap_or(self).key(name)
    }

    /// The location as an RFC 6901 pointer.
    #[must_use]
    pub fn pointer(&self) -> String {
        let mut segments = Vec::new();
        let mut location = Some(self);
        while let Some(here) = location {
            match here.segment {
                LocationSegment::Root => {}
                LocationSegment::Key(key) => {
                    segments.push(key.replace('~', "~0").replace('/', "~1"))
                }
                LocationSegment::Index(index) => segments.push(index.to_string()),
            }
            location = here.parent;
        }
        let mut pointer = String::new();
        for segment in segments.iter().rev() {
            pointer.push('/');
            pointer.push_str(segment);
        }
        pointer
    }
}

/// Why an evaluation failed.
///
/// It is two words wide so that the `Result<bool, EvaluationFailure>` of the matcher
/// stays cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EvaluationFailure {
    /// More than the allowed number of steps.
    OutOfSteps,
    /// More than the allowed memory.
    OutOfMemory,
    /// An expression was applied to a value that it does not accept.
    Refused(Box<str>),
}

impl EvaluationFailure {
    /// A rejection by an expression.
    pub fn refused(detail: impl Into<String>) -> Self {
        Self::Refused(detail.into().into_boxed_str())
    }

    /// The failure as a refusal with a stable code.
    #[must_use]
    pub fn into_error(self) -> Error {
        let (code, detail) = match self {
            Self::OutOfSteps => (
                ErrorCode::QueryTooExpensive,
                "the evaluation took more than a million steps".into(),
            ),
            Self::OutOfMemory => (
                ErrorCode::QueryTooExpensive,
                "the evaluation needed more than 16 MiB".into(),
            ),
            Self::Refused(detail) => (ErrorCode::EvaluationFailed, String::from(detail)),
        };
        Error {
            code,
            pointer: String::new(),
            detail,
        }
    }
}

impl fmt::Display for EvaluationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.clone().into_error().detail)
    }
}

impl std::error::Error for EvaluationFailure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_escape_tilde_and_slash() {
        let root = ParseLocation::root();
        let and = root.key("$and");
        let first = and.index(0);
        assert_eq!(first.key("a/b~c").pointer(), "/$and/0/a~1b~0c");
        assert_eq!(root.pointer(), "");
    }
}
