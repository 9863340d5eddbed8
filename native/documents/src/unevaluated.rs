//! Documents that could not be evaluated for a query and are omitted from its result.
//!
//! A document may have more values than one evaluation may examine, or a value that an expression
//! of the query does not accept. That must not fail the queries of others, so the query omits it
//! and reports the number of such documents. Only documents that the caller may read are counted:
//! otherwise the number would reveal documents that do not exist for the caller.

use std::collections::HashSet;
use std::sync::Arc;

use rillbase_query::bson::Document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::EvaluationFailure;
use rillbase_query::filter::Filter;

/// See the module.
#[derive(Debug, Default)]
pub struct UnevaluatedDocuments {
    /// What the caller may read; `None` for everything.
    readable: Option<Arc<Filter>>,
    keys: HashSet<Vec<u8>>,
    detail: Option<String>,
}

impl UnevaluatedDocuments {
    /// Empty, for a caller who may read what this filter matches.
    #[must_use]
    pub fn new(readable: Option<Arc<Filter>>) -> Self {
        Self {
            readable,
            ..Self::default()
        }
    }

    /// Counts a document once.
    pub fn note(
        &mut self,
        key: &[u8],
        document: Document<'_>,
        failure: &EvaluationFailure,
        now_ms: i64,
    ) {
        if self.keys.contains(key) {
            return;
        }
        let may_read = self.readable.as_ref().is_none_or(|rule| {
            let environment = EvaluationContext::at(now_ms);
            rule.matches_in(document, &environment) == Ok(true)
        });
        if may_read {
            self.keys.insert(key.to_vec());
            self.detail.get_or_insert_with(|| failure.to_string());
        }
    }

    /// The number of documents that the caller may read.
    #[must_use]
    pub fn count(&self) -> usize {
        self.keys.len()
    }

    /// Why the first of them could not be evaluated.
    #[must_use]
    pub fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }
}
