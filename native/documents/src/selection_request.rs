//! What a query asks for, and in which order its candidates come.

use std::sync::Arc;

use rillbase_query::filter::Filter;
use rillbase_query::group::GroupDefinition;
use rillbase_query::index::IndexField;
use rillbase_query::lookup::LookupFields;
use rillbase_query::sort::Sort;

use crate::bounds::EncodedRange;

/// In which order candidates come.
#[derive(Debug, Clone)]
pub enum CandidateOrder {
    /// In any; a document may come several times.
    Unordered,
    /// In the requested order, each once.
    Ordered,
    /// In the order of an index.
    ByIndex(IndexOrder),
}

/// An index that is read in the order of a sort.
#[derive(Debug, Clone)]
pub struct IndexOrder {
    /// How many leading bytes of each entry are fixed.
    pub prefix: Vec<u8>,
    /// The fields that follow, whose order is the sort's.
    pub fields: Vec<IndexField>,
    /// Whether the index is read from its end.
    pub backward: bool,
    /// What is read of it.
    pub ranges: Vec<EncodedRange>,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct SelectionRequest {
    /// What decides.
    pub filter: Arc<Filter>,
    /// The order.
    pub sort: Sort,
    /// How many are passed over.
    pub offset: usize,
    /// How many are wanted.
    pub limit: usize,
    /// The place of the last document of the page before.
    pub after: Option<Vec<u8>>,
    /// The moment of the query.
    pub now_ms: i64,
    /// The most that is held while documents are sorted.
    pub max_bytes: usize,
    /// A page ends behind the document with which it has more.
    pub page_bytes: usize,
    /// For what groups the documents are read; of others than those, all of each is.
    pub group: Option<Arc<GroupDefinition>>,
    /// What is looked up for each document.
    pub lookups: Option<Arc<LookupFields>>,
    /// What the caller may read, which is a part of the filter; none: everything.
    pub readable: Option<Arc<Filter>>,
}
