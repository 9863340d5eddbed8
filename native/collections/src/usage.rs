//! How collections and their indexes are used: counters since the node started, which are not
//! stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rillbase_documents::bounds::IndexBounds;

use crate::definition::NativeDefinition;
use crate::error::Result;
use crate::plan::CandidateRequest;
use crate::store::Collections;

/// The largest page for which a lookup counts as one of the newest documents.
const MAX_NEWEST: usize = 100;

/// How a collection was used since the node started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CollectionUsage {
    /// Queries that were planned, and documents that were read by their keys.
    pub reads: u64,
    /// Documents that were inserted, changed or deleted.
    pub writes: u64,
    /// Its indexes, as in the definition.
    pub indexes: Vec<IndexUsage>,
}

/// How an index was used since the node started, or since it was declared. Queries count for each
/// index that could serve them, whichever was chosen.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IndexUsage {
    /// The number of the index.
    pub number: u32,
    /// Queries whose filter bounds its fields.
    pub lookups: u64,
    /// Those of them that need a page of the documents that were changed last.
    pub newest: u64,
    /// Queries whose order it could give if it were composite, with or without bounds.
    pub ordered: u64,
    /// Lookups whose entries were counted.
    pub counted: u64,
    /// The sum of these counts, each up to the planner's limit.
    pub entries: u64,
}

#[derive(Debug, Default)]
struct DocumentCounters {
    reads: AtomicU64,
    writes: AtomicU64,
}

#[derive(Debug, Default)]
struct IndexCounters {
    lookups: AtomicU64,
    newest: AtomicU64,
    ordered: AtomicU64,
    counted: AtomicU64,
    entries: AtomicU64,
}

/// The counters of an installed collection. Those of successive definitions are shared: a query
/// that began with the earlier one still counts.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters {
    documents: Arc<DocumentCounters>,
    /// By the number of the index.
    indexes: Vec<(u32, Arc<IndexCounters>)>,
}

/// A query as an index sees it.
#[derive(Debug)]
pub(crate) struct IndexQuery<'a> {
    pub(crate) request: &'a CandidateRequest,
    pub(crate) limits: Option<&'a IndexBounds>,
    /// Whether the index could give its order if it were composite.
    pub(crate) is_ordered: bool,
    /// The entries within the bounds, if they were counted.
    pub(crate) entries: Option<usize>,
}

impl UsageCounters {
    /// The counters for a definition that is installed after one with these.
    pub(crate) fn continued(before: Option<&Self>, definition: &NativeDefinition) -> Self {
        let counters_of = |number: u32| before.and_then(|before| before.index(number));
        let indexes = definition.indexes.iter().map(|index| {
            let counters = counters_of(index.number).cloned();
            (index.number, counters.unwrap_or_default())
        });
        Self {
            indexes: indexes.collect(),
            documents: before.map_or_else(Arc::default, |before| Arc::clone(&before.documents)),
        }
    }

    fn index(&self, number: u32) -> Option<&Arc<IndexCounters>> {
        let mut indexes = self.indexes.iter();
        indexes.find_map(|(own, counters)| (*own == number).then_some(counters))
    }

    pub(crate) fn count_reads(&self, documents: u64) {
        add(&self.documents.reads, documents);
    }

    pub(crate) fn count_writes(&self, documents: u64) {
        add(&self.documents.writes, documents);
    }

    /// Counts a query for an index.
    pub(crate) fn count_query(&self, index: u32, query: &IndexQuery<'_>) {
        let Some(counters) = self.index(index) else {
            return;
        };
        if query.is_ordered {
            add(&counters.ordered, 1);
        }
        if query.limits.is_none() {
            return;
        }
        add(&counters.lookups, 1);
        let request = query.request;
        if request.sort.is_newest_first() && request.documents <= MAX_NEWEST {
            add(&counters.newest, 1);
        }
        if let Some(entries) = query.entries {
            add(&counters.counted, 1);
            add(&counters.entries, entries as u64);
        }
    }

    fn usage(&self) -> CollectionUsage {
        let value = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let indexes = self.indexes.iter().map(|(number, counters)| IndexUsage {
            number: *number,
            lookups: value(&counters.lookups),
            newest: value(&counters.newest),
            ordered: value(&counters.ordered),
            counted: value(&counters.counted),
            entries: value(&counters.entries),
        });
        CollectionUsage {
            reads: value(&self.documents.reads),
            writes: value(&self.documents.writes),
            indexes: indexes.collect(),
        }
    }
}

fn add(counter: &AtomicU64, number: u64) {
    counter.fetch_add(number, Ordering::Relaxed);
}

impl Collections {
    /// How a collection was used since the node started.
    pub fn usage(&self, collection: u64) -> Result<CollectionUsage> {
        Ok(self.installed(collection)?.usage.usage())
    }

    /// Counts documents that were read by their keys, or a query whose plan was chosen before.
    pub fn count_reads(&self, collection: u64, documents: u64) {
        // A collection that was dropped meanwhile has no counters.
        if let Ok(installed) = self.installed(collection) {
            installed.usage.count_reads(documents);
        }
    }
}
