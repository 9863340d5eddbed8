//! The order of a sorted query.

use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;
use rillbase_query::bson::Document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::ParseLocation;
use rillbase_query::filter::Filter;
use rillbase_query::fuel::Fuel;
use rillbase_query::sort::{Sort, SortKey, SystemFields};

use crate::lookups::{Join, join_of};
use crate::message::{QueryDefinition, ResultRow};

/// Bytes that compare as documents do in this query.
pub(crate) type SortPosition = Arc<[u8]>;

/// How documents compare.
#[derive(Debug)]
pub(crate) struct SortOrder {
    /// `None`: by key, which is the order of `_id`.
    sort: Option<Sort>,
    /// Set if text score or distance decides.
    ranked: Option<Filter>,
    /// The lookups that documents are shown with.
    join: Option<Arc<Join>>,
}

impl SortOrder {
    pub(crate) fn parse(query: &QueryDefinition, filter: Filter) -> Result<Self, DocumentRefusal> {
        let sort = if query.sort.is_empty() {
            // Groups have no distance and no score.
            if query.is_grouped() {
                Sort::default()
            } else {
                filter.default_sort()
            }
        } else {
            let document = Document::parse(&query.sort)?;
            let root = ParseLocation::root();
            let Some(sort) = document.get("sort") else {
                return Err(DocumentRefusal::new("invalid_sort", "the sort is missing"));
            };
            if query.is_grouped() {
                Sort::parse_of_values(sort, &root)?
            } else {
                Sort::parse(sort, &root)?
            }
        };
        let ranks = sort.keys().iter().any(SortKey::is_rank);
        Ok(Self {
            ranked: ranks.then_some(filter),
            sort: (sort != Sort::default()).then_some(sort),
            join: join_of(query)?,
        })
    }

    /// Whether the times of a document decide.
    pub(crate) fn needs_times(&self) -> bool {
        let mut keys = self.sort.iter().flat_map(Sort::keys);
        keys.any(SortKey::is_time)
    }

    /// The sort position of a document. `None` if it cannot be evaluated and is omitted.
    pub(crate) fn sort_position(&self, row: &ResultRow) -> Option<SortPosition> {
        if self.join.as_ref().is_some_and(|join| !join.can_embed(row)) {
            return None;
        }
        let Some(sort) = &self.sort else {
            return Some(Arc::clone(&row.key));
        };
        let document = row.document();
        let rank = match &self.ranked {
            Some(filter) => filter
                .rank_in(document, &EvaluationContext::default())
                .ok()?,
            None => None,
        };
        let system = SystemFields {
            rank: rank.unwrap_or_default(),
            created_ms: row.document_created_ms(),
            updated_ms: row.document_updated_ms(),
        };
        let sort_position = sort.key(document, system, &Fuel::default());
        Some(sort_position.ok()?.into())
    }
}
