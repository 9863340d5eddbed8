//! A query's placement in the index, for `explain` and figures.

use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;

use crate::entry::Hashes;
use crate::limits::{MatcherLimits, QueryRefusal};
use crate::matcher::Matcher;
use crate::plan::{MatchPlan, Planner};

/// By what kind of predicate a query is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// No document matches it, and none is looked at.
    Never,
    /// Every document matches it.
    Everything,
    /// A value equal to one of some, null and missing included.
    Equality,
    /// A value between bounds.
    Range,
    /// Text with a literal that a regular expression cannot do without.
    Literal,
    /// A document with a term of a `$text`.
    Text,
    /// A geometry near a place.
    Geo,
    /// That a field is there, is not there, or is of a type.
    Existence,
    /// Several of these, one for each branch of an `$or`.
    Mixed,
    /// Nothing useful must hold: it is evaluated for every document.
    Residual,
}

impl Class {
    /// Every class.
    pub const ALL: [Self; 10] = [
        Self::Never,
        Self::Everything,
        Self::Equality,
        Self::Range,
        Self::Literal,
        Self::Text,
        Self::Geo,
        Self::Existence,
        Self::Mixed,
        Self::Residual,
    ];

    /// The name that `explain` and metrics show.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Everything => "everything",
            Self::Equality => "equality",
            Self::Range => "range",
            Self::Literal => "literal",
            Self::Text => "text",
            Self::Geo => "geo",
            Self::Existence => "existence",
            Self::Mixed => "mixed",
            Self::Residual => "residual",
        }
    }
}

/// By what a query is found, and how often that is expected.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The kind of predicate.
    pub class: Class,
    /// The share of documents that are expected to be evaluated, from 0 to 1.
    pub selectivity: f64,
    /// The paths at which it waits, in order.
    pub paths: Vec<String>,
}

impl Placement {
    pub(crate) fn of(plan: Option<&MatchPlan>, everything: bool) -> Self {
        let Some(plan) = plan else {
            let class = if everything {
                Class::Everything
            } else {
                Class::Residual
            };
            return Self {
                class,
                selectivity: 1.0,
                paths: Vec::new(),
            };
        };
        let mut paths: Vec<String> = plan.entries.iter().map(|entry| entry.path.text()).collect();
        paths.dedup();
        Self {
            class: plan.class,
            selectivity: plan.selectivity,
            paths,
        }
    }
}

/// Where a filter would be placed as long as no document was seen.
#[must_use]
pub fn placement(filter: &Filter) -> Placement {
    let hashes = Hashes::default();
    let plan = Planner::new(&hashes, None).plan(filter.root());
    Placement::of(plan.as_ref(), is_everything(filter))
}

/// How the index would lead a document to a filter as long as no other was seen.
#[must_use]
pub fn reach(filter: &Filter, document: Document<'_>) -> QueryReach {
    let mut matcher = Matcher::new(MatcherLimits::default());
    match matcher.add([0; 16], [0; 16], filter) {
        Ok(id) => matcher.reach(id, document),
        Err(QueryRefusal::ResidualQuota) => QueryReach {
            placement: placement(filter),
            reached: true,
        },
    }
}

/// Whether it is the filter without conditions.
pub(crate) fn is_everything(filter: &Filter) -> bool {
    matches!(filter.root(), rillbase_query::filter::FilterClause::And(all) if all.is_empty())
}

/// How the index would lead a document to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryReach {
    /// Where the query waits.
    pub placement: Placement,
    /// Whether the document reaches it, so that the filter is evaluated.
    pub reached: bool,
}
