//! Filters: parses a document of operators into a tree, and evaluates it on documents.
//!
//! ```text
//! BSON ── parse ──▶ Node ── normal ──▶ negations at the leaves, no redundant
//!                                      connectives
//!                        ── canonical ▶ children in one order ──▶ hash
//! Node + document ── matcher ──▶ true, false, or out of fuel
//! ```
//!
//! Filters that differ only in the order of conjuncts, in nesting of `$and`,
//! in double negation or in the width of their numbers have one canonical
//! form, one hash, and so one live query.

mod arguments;
mod canonical;
mod explain;
mod list;
mod matcher;
mod node;
mod normal;
mod operators;
mod parse;

use std::fmt;

use sha2::{Digest, Sha256};

pub use arguments::{BitTest, Bits};
pub use explain::{Connective, Explanation, FilterReason};
pub use list::List;
pub(crate) use matcher::DocumentMatcher;
pub use node::{Comparison, FilterClause, Predicate, Test, Whole};
pub(crate) use parse::FilterParser;

use crate::bson::Document;
use crate::environment::EvaluationContext;
use crate::error::{Error, ErrorCode, EvaluationFailure, ParseLocation};
use crate::geo::Near;
use crate::limits::FILTER_BYTES;
use crate::path::{FieldPath, Leaf};
use crate::sort::Sort;
use crate::text::TextQuery;

/// 256 bits that are equal iff the canonical forms are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A parsed, normalized filter.
#[derive(Debug, Clone)]
pub struct Filter {
    root: FilterClause,
    canonical: Box<[u8]>,
    hash: Hash,
    moment: Option<Box<Error>>,
}

impl Filter {
    /// Parses a filter.
    pub fn parse(document: Document<'_>) -> Result<Self, Error> {
        Self::parse_at(document, &ParseLocation::root())
    }

    /// Parses a filter at `location` of a larger input.
    pub fn parse_at(document: Document<'_>, location: &ParseLocation<'_>) -> Result<Self, Error> {
        if document.as_bytes().len() > FILTER_BYTES {
            let detail = format!("a filter may have at most {FILTER_BYTES} bytes");
            return Err(Error::new(ErrorCode::FilterTooLarge, location, detail));
        }
        let mut parser = FilterParser::default();
        let parsed = parser.filter(document, 1, location)?;
        Ok(Self::of(parsed, parser.moment.map(Box::new)))
    }

    /// The filter that every document matches.
    #[must_use]
    pub fn everything() -> Self {
        let (root, canonical) = canonical::canonical(FilterClause::And(Vec::new()));
        let hash = Hash(Sha256::digest(&canonical).into());
        Self {
            root,
            canonical: canonical.into(),
            hash,
            moment: None,
        }
    }

    /// Both filters at once, for example a query and an access rule.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let both = FilterClause::And(vec![self.root.clone(), other.root.clone()]);
        let not_live = self.moment.clone().or_else(|| other.moment.clone());
        Self::of(both, not_live)
    }

    /// The same filter within a distance of its `$near`.
    #[must_use]
    pub fn within(&self, distance: f64) -> Self {
        Self::of(self.root.within(distance), self.moment.clone())
    }

    fn of(clause: FilterClause, not_live: Option<Box<Error>>) -> Self {
        let (root, canonical) = canonical::canonical(normal::normal(clause));
        let hash = Hash(Sha256::digest(&canonical).into());
        Self {
            root,
            canonical: canonical.into(),
            hash,
            moment: not_live,
        }
    }

    /// Whether the document matches, with fresh fuel.
    pub fn matches(&self, document: Document<'_>) -> Result<bool, EvaluationFailure> {
        self.matches_in(document, &EvaluationContext::default())
    }

    /// Whether the document matches; fuel and time come from outside.
    pub fn matches_in(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<bool, EvaluationFailure> {
        DocumentMatcher::new(document, environment).node(&self.root, document)
    }

    /// Whether the document matches, and then the array position that the positional operator `$`
    /// denotes.
    pub fn position_in(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<Option<Option<u32>>, EvaluationFailure> {
        let matcher = DocumentMatcher::new(document, environment);
        let answer = matcher.node(&self.root, document)?;
        Ok(answer.then(|| matcher.position()))
    }

    /// The document's rank: the score of `$text` or the distance of `$near`; `None` if the filter
    /// has neither or does not match by it.
    pub fn rank_in(
        &self,
        document: Document<'_>,
        environment: &EvaluationContext,
    ) -> Result<Option<f64>, EvaluationFailure> {
        if let Some(text) = self.text() {
            return text.score(document, &environment.fuel);
        }
        let Some((path, near)) = self.near() else {
            return Ok(None);
        };
        let mut nearest: Option<f64> = None;
        path.any(
            document,
            Leaf::Elements,
            &environment.fuel,
            &mut |value, _| {
                let distance = match value {
                    Some(value) => near.distance(value, &environment.fuel)?,
                    None => None,
                };
                nearest = match (nearest, distance) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
                Ok(false)
            },
        )?;
        Ok(nearest)
    }

    /// The `$text` of the filter.
    #[must_use]
    pub fn text(&self) -> Option<&TextQuery> {
        self.root.find(&|node| match node {
            FilterClause::Whole(whole) => match whole.as_ref() {
                Whole::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        })
    }

    /// The `$near` of the filter with its path.
    #[must_use]
    pub fn near(&self) -> Option<(&FieldPath, &Near)> {
        self.root.find(&|node| match node {
            FilterClause::Field(Predicate {
                path,
                test: Test::Near(near),
            }) => Some((path, near.as_ref())),
            _ => None,
        })
    }

    /// The default order of results: by distance for `$near`, otherwise by `_id`.
    #[must_use]
    pub fn default_sort(&self) -> Sort {
        if self.near().is_some() {
            Sort::by_distance()
        } else {
            Sort::default()
        }
    }

    /// The tree in normal form, for indexing by predicates.
    #[must_use]
    pub const fn root(&self) -> &FilterClause {
        &self.root
    }

    /// The canonical form: a filter that parses to this one.
    #[must_use]
    pub fn canonical(&self) -> Document<'_> {
        Document::trusted(&self.canonical)
    }

    /// The hash of the canonical form.
    #[must_use]
    pub const fn hash(&self) -> Hash {
        self.hash
    }

    /// Rejects filters that cannot be subscribed to because they depend on the time of evaluation.
    pub fn check_live(&self) -> Result<(), Error> {
        self.moment
            .as_deref()
            .map_or(Ok(()), |error| Err(error.clone()))
    }
}
