//! A query's placement in the index, for `explain` and figures.

use rillbase_query::filter::Filter;

use crate::class::Class;
use crate::hashes::Hashes;
use crate::match_plan::MatchPlan;
use crate::plan::Planner;

/// How the index finds a query, and how often it is expected to.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// The kind of predicate.
    pub class: Class,
    /// The share of documents that are expected to be evaluated, from 0 to 1.
    pub selectivity: f64,
    /// The paths of its entries, in order.
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

/// The placement of a filter before any document was seen.
#[must_use]
pub fn placement(filter: &Filter) -> Placement {
    let hashes = Hashes::default();
    let plan = Planner::new(&hashes, None).plan(filter.root());
    Placement::of(plan.as_ref(), is_everything(filter))
}

/// Whether a filter has no conditions.
pub(crate) fn is_everything(filter: &Filter) -> bool {
    matches!(filter.root(), rillbase_query::filter::FilterClause::And(all) if all.is_empty())
}

/// How the index would lead a document to a query.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryReach {
    /// The query's placement.
    pub placement: Placement,
    /// Whether the document reaches it, so that the filter is evaluated.
    pub reached: bool,
}
