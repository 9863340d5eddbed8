//! Residual queries: each is evaluated for every document. Predicates that they share are evaluated
//! once.

use rillbase_query::bson::Document;
use rillbase_query::filter::Filter;
use rillbase_query::filter_set::{FilterId, FilterSet, PredicateAnswers};

/// The approximate size of a filter in a set, besides its operands.
const FILTER_BYTES: usize = 700;

/// The residual queries of a group.
#[derive(Debug, Default)]
pub(crate) struct Residual {
    set: FilterSet,
    /// The query of each filter.
    owners: Vec<Option<u32>>,
    scratch: PredicateAnswers,
}

impl Residual {
    pub(crate) fn insert(&mut self, filter: &Filter, query: u32) -> FilterId {
        let id = self.set.insert(filter);
        let at = id.0 as usize;
        if self.owners.len() <= at {
            self.owners.resize(at + 1, None);
        }
        if let Some(owner) = self.owners.get_mut(at) {
            *owner = Some(query);
        }
        id
    }

    pub(crate) fn remove(&mut self, id: FilterId) {
        self.set.remove(id);
        if let Some(owner) = self.owners.get_mut(id.0 as usize) {
            *owner = None;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.set.len()
    }

    /// Evaluates all queries; adds those whose evaluation fails to `failed`.
    pub(crate) fn matches(
        &mut self,
        document: Document<'_>,
        matched: &mut impl FnMut(u32),
        failed: &mut impl FnMut(u32),
    ) {
        if self.set.is_empty() {
            return;
        }
        let mut prepared = self.set.prepare(document, 0, &mut self.scratch);
        for (number, owner) in (0..).zip(&self.owners) {
            let Some(query) = owner else {
                continue;
            };
            match prepared.matches(FilterId(number)) {
                Ok(true) => matched(*query),
                Ok(false) => {}
                Err(_) => failed(*query),
            }
        }
    }

    /// Its approximate size in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.set.len() * FILTER_BYTES
    }
}
