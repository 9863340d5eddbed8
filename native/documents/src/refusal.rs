//! Errors: a stable code and a location.

use std::borrow::Cow;

use rillbase_query::error::{Error, EvaluationFailure, ParseLocation};
use rillbase_query::schema::SchemaViolation;

/// An error as callers of the API see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentRefusal {
    /// The stable name.
    pub code: Cow<'static, str>,
    /// The offending location as an RFC 6901 pointer.
    pub pointer: String,
    /// One sentence for people.
    pub detail: String,
    /// The rules of a JSON Schema that a document violates: pointer and detail.
    pub violations: Vec<(String, String)>,
}

impl DocumentRefusal {
    /// An error at `location`.
    #[must_use]
    pub fn at(code: &'static str, location: &ParseLocation<'_>, detail: impl Into<String>) -> Self {
        Self {
            code: Cow::Borrowed(code),
            pointer: location.pointer(),
            detail: detail.into(),
            violations: Vec::new(),
        }
    }

    /// An error of the whole input.
    #[must_use]
    pub fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Self::at(code, &ParseLocation::root(), detail)
    }

    /// The same error inside a larger input.
    #[must_use]
    pub fn inside(mut self, location: &ParseLocation<'_>) -> Self {
        let prefix = location.pointer();
        for (pointer, _) in &mut self.violations {
            pointer.insert_str(0, &prefix);
        }
        self.pointer.insert_str(0, &prefix);
        self
    }

    /// A document that violates its collection's schema.
    #[must_use]
    pub fn of_schema(violations: Vec<SchemaViolation>) -> Self {
        let violations: Vec<_> = violations
            .into_iter()
            .map(|violation| (violation.pointer, violation.detail))
            .collect();
        let (pointer, _) = violations.first().cloned().unwrap_or_default();
        Self {
            code: Cow::Borrowed("invalid_document"),
            pointer,
            detail: "the document violates the collection's schema".into(),
            violations,
        }
    }
}

impl From<Error> for DocumentRefusal {
    fn from(error: Error) -> Self {
        Self {
            code: Cow::Borrowed(error.code.as_str()),
            pointer: error.pointer,
            detail: error.detail,
            violations: Vec::new(),
        }
    }
}

impl From<EvaluationFailure> for DocumentRefusal {
    fn from(failure: EvaluationFailure) -> Self {
        failure.into_error().into()
    }
}
