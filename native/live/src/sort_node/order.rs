//! The order of a sorted query.

use std::sync::Arc;

use rillbase_documents::refusal::Refusal;
use rillbase_query::bson::Document;
use rillbase_query::environment::Environment;
use rillbase_query::error::Place as ErrorPlace;
use rillbase_query::filter::Filter;
use rillbase_query::fuel::Fuel;
use rillbase_query::sort::{By, Sort};

use crate::message::{Definition, Row};

/// Bytes that compare as documents do in this query.
pub(crate) type Place = Arc<[u8]>;

/// How documents compare.
#[derive(Debug)]
pub(crate) struct Order {
    /// None: by key, which is the order of `_id`.
    sort: Option<Sort>,
    /// Kept where text score or distance decides.
    ranked: Option<Filter>,
}

impl Order {
    pub(crate) fn parse(query: &Definition, filter: Filter) -> Result<Self, Refusal> {
        let sort = if query.sort.is_empty() {
            // Groups have no distance and no score.
            if query.is_grouped() {
                Sort::default()
            } else {
                filter.default_sort()
            }
        } else {
            let document = Document::parse(&query.sort)?;
            let place = ErrorPlace::root();
            let Some(sort) = document.get("sort") else {
                return Err(Refusal::new("invalid_sort", "the sort is missing"));
            };
            Sort::parse(sort, &place)?
        };
        let ranks = sort.keys().iter().any(|key| !matches!(key.by, By::Path(_)));
        Ok(Self {
            ranked: ranks.then_some(filter),
            sort: (sort != Sort::default()).then_some(sort),
        })
    }

    /// Where a document stands.
    pub(crate) fn place(&self, row: &Row) -> Result<Place, Refusal> {
        let Some(sort) = &self.sort else {
            return Ok(Arc::clone(&row.key));
        };
        let document = row.document();
        let rank = match &self.ranked {
            Some(filter) => filter.rank_in(document, &Environment::default())?,
            None => None,
        };
        let place = sort.key(document, rank.unwrap_or_default(), &Fuel::default())?;
        Ok(place.into())
    }
}
