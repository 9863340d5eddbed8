//! Projections: which parts of a document are shown.
//!
//! The parts are a tree of keys. An inclusion shows only what the tree names, and an exclusion
//! everything else; `$slice` truncates arrays in both; `$elemMatch` and the positional `$` show one
//! element. Through arrays a projection applies to each element that is a document.

mod apply;
mod parse;

use crate::bson::{Document, DocumentBuf, DocumentWriter, ValueRef};
use crate::environment::EvaluationContext;
use crate::error::{Error, EvaluationFailure, ParseLocation};
use crate::filter::Test;

/// A parsed projection.
#[derive(Debug, Clone)]
pub struct Projection {
    tree: ProjectionBranch,
    includes: bool,
}

/// The keys below one node.
#[derive(Debug, Clone, Default)]
struct ProjectionBranch {
    children: Vec<(Box<str>, ProjectionPart)>,
}

/// What happens to the value of a key.
#[derive(Debug, Clone)]
enum ProjectionPart {
    /// Only parts of it are selected.
    Branch(ProjectionBranch),
    Include,
    Exclude,
    Slice {
        skip: i64,
        limit: Option<u64>,
    },
    Element(Box<Test>),
    Positional,
    TextScore,
}

/// How the document matched, as far as a projection needs it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Matched {
    /// The position for the positional `$`.
    pub position: Option<u32>,
    /// The score of `$text`.
    pub text_score: Option<f64>,
}

impl Projection {
    /// Parses a projection; the empty one shows everything.
    pub fn parse(document: Document<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        parse::projection(document, location)
    }

    /// The parts of the document that are shown.
    pub fn apply(
        &self,
        document: Document<'_>,
        matched: Matched,
        environment: &EvaluationContext,
    ) -> Result<DocumentBuf, EvaluationFailure> {
        apply::Applying {
            matched,
            environment,
            includes: self.includes,
        }
        .document(document, &self.tree)
    }

    /// The parts of a document that are shown. If the projection cannot be applied, that is the
    /// `_id` alone: other documents are still shown, and nothing is shown that was not requested.
    #[must_use]
    pub fn apply_or_id(
        &self,
        document: Document<'_>,
        matched: Matched,
        environment: &EvaluationContext,
    ) -> (DocumentBuf, Option<EvaluationFailure>) {
        match self.apply(document, matched, environment) {
            Ok(shown) => (shown, None),
            Err(failure) => {
                let mut writer = DocumentWriter::with_capacity(32);
                writer.append("_id", document.get("_id").unwrap_or(ValueRef::Null));
                (writer.into(), Some(failure))
            }
        }
    }

    /// Whether applying it needs the position at which the filter matched.
    #[must_use]
    pub fn is_positional(&self) -> bool {
        fn positional(branch: &ProjectionBranch) -> bool {
            branch.children.iter().any(|(_, part)| match part {
                ProjectionPart::Positional => true,
                ProjectionPart::Branch(inner) => positional(inner),
                _ => false,
            })
        }
        positional(&self.tree)
    }
}
