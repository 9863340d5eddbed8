//! Updates: operators that change a document.
//!
//! Parsing produces a list of changes, one for each path, in the order in which MongoDB applies
//! them: by path, segment by segment, numbers as numbers. Applying walks a [`tree::ValueTree`],
//! which decodes only the documents and arrays on a path and keeps the rest as bytes. An update is
//! applied completely or not at all.

mod apply;
mod array;
mod operation;
mod outcome;
mod parse;
mod tree;
mod update_path;

use crate::bson::{Array, ArrayBuf, Document, DocumentBuf, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, ErrorCode, ParseLocation};
use crate::order::equal;

use parse::PathChange;
use update_path::ArrayFilters;

/// A parsed update.
#[derive(Debug)]
pub struct Update {
    changes: Vec<PathChange>,
    filters: ArrayFilters,
    source: UpdateSource,
}

/// The BSON from which an update was parsed.
#[derive(Debug)]
pub struct UpdateSource {
    /// The operators.
    pub document: DocumentBuf,
    /// The array filters.
    pub array_filters: Option<ArrayBuf>,
}

/// How an update is applied.
#[derive(Debug, Clone, Copy, Default)]
pub struct Applied {
    /// The position that the positional operator `$` denotes: where the filter matched an array.
    pub position: Option<u32>,
    /// Whether an upsert is creating the document.
    pub inserting: bool,
}

impl Update {
    /// Parses a document of update operators with its array filters, which are next to it.
    pub fn parse(
        document: Document<'_>,
        array_filters: Option<Array<'_>>,
        location: &ParseLocation<'_>,
    ) -> Result<Self, Error> {
        let beside = location.sibling("array_filters");
        let mut filters = ArrayFilters::parse(array_filters, &beside)?;
        let changes = parse::changes(document, &mut filters, location)?;
        filters.check_all_used(&beside)?;
        let source = UpdateSource {
            document: document.into(),
            array_filters: array_filters.map(ArrayBuf::from),
        };
        Ok(Self {
            changes,
            filters,
            source,
        })
    }

    /// What it was parsed from.
    #[must_use]
    pub const fn source(&self) -> &UpdateSource {
        &self.source
    }

    /// Whether it uses the positional operator `$`.
    #[must_use]
    pub fn is_positional(&self) -> bool {
        self.changes.iter().any(PathChange::is_positional)
    }

    /// The document after the update.
    pub fn apply(
        &self,
        document: Document<'_>,
        applied: Applied,
        environment: &EvaluationContext,
    ) -> Result<DocumentBuf, Error> {
        let after = apply::apply(&self.changes, &self.filters, document, applied, environment)?;
        check_id(document, after.as_ref())?;
        crate::bson::validate(after.as_bytes())?;
        Ok(after)
    }
}

/// The `_id` of a document cannot change.
fn check_id(before: Document<'_>, after: Document<'_>) -> Result<(), Error> {
    let same = match (before.get("_id"), after.get("_id")) {
        (Some(before), Some(after)) => equal(before, after),
        (None, _) => true,
        (Some(_), None) => false,
    };
    if same {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::InvalidUpdate,
        &ParseLocation::root(),
        "an update cannot change _id",
    ))
}

/// The error for an invalid update.
fn refuse(location: &ParseLocation<'_>, detail: impl Into<String>) -> Error {
    Error::new(ErrorCode::InvalidUpdate, location, detail)
}

/// The description of a value, for error details.
fn describe(value: ValueRef<'_>) -> &'static str {
    value.kind().alias()
}
