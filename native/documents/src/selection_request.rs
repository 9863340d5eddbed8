//! The parameters of a query, and the order in which its candidates arrive.

use std::sync::Arc;

use rillbase_query::filter::Filter;
use rillbase_query::group::GroupDefinition;
use rillbase_query::index::IndexField;
use rillbase_query::lookup::LookupFields;
use rillbase_query::sort::Sort;

use crate::bounds::{EncodedRange, IndexBounds};

/// The order of candidates.
#[derive(Debug, Clone)]
pub enum CandidateOrder {
    /// Any; a document may come several times.
    Unordered,
    /// In the requested order, each once.
    Ordered,
    /// In the order of an index.
    ByIndex(IndexOrder),
}

/// An index that is read in the order of a sort.
#[derive(Debug, Clone)]
pub struct IndexOrder {
    /// The leading bytes that all entries share.
    pub prefix: Vec<u8>,
    /// The fields that follow, whose order is the sort's.
    pub fields: Vec<IndexField>,
    /// Whether the index is read from its end.
    pub backward: bool,
    /// The ranges that are read.
    pub ranges: Vec<EncodedRange>,
}

impl IndexOrder {
    /// The order of an index with these fields, of which a filter's bounds are read, or everything.
    #[must_use]
    pub fn new(fields: Vec<IndexField>, bounds: Option<&IndexBounds>, backward: bool) -> Self {
        let equalities = bounds.map_or(0, |bounds| bounds.equalities);
        Self {
            prefix: bounds.map_or_else(Vec::new, |bounds| bounds.prefix.clone()),
            fields: fields.into_iter().skip(equalities).collect(),
            backward,
            ranges: bounds.map_or_else(EncodedRange::everything, |bounds| bounds.ranges.clone()),
        }
    }
}

/// A query.
#[derive(Debug, Clone)]
pub struct SelectionRequest {
    /// The filter.
    pub filter: Arc<Filter>,
    /// The sort.
    pub sort: Sort,
    /// How many documents are skipped.
    pub offset: usize,
    /// How many documents are returned.
    pub limit: usize,
    /// The position of the last document of the previous page.
    pub after: Option<Vec<u8>>,
    /// The time of the query.
    pub now_ms: i64,
    /// The maximum bytes held while documents are sorted.
    pub max_bytes: usize,
    /// A page ends with the document that exceeds this.
    pub page_bytes: usize,
    /// The group definition, if the documents are read for groups.
    pub group: Option<Arc<GroupDefinition>>,
    /// The lookups of each document.
    pub lookups: Option<Arc<LookupFields>>,
    /// What the caller may read, which is a part of the filter; `None` for everything.
    pub readable: Option<Arc<Filter>>,
}
