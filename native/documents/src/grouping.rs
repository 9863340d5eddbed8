//! Computes the groups of the candidates that match.

use std::collections::HashSet;
use std::sync::Arc;

use rillbase_query::bson::{Document, ValueRef};
use rillbase_query::ejson::Form;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::EvaluationFailure;
use rillbase_query::filter::Filter;
use rillbase_query::group::{GroupDefinition, GroupShare, GroupTable};
use rillbase_query::sort::Sort;

use crate::envelope::write_group;
use crate::refusal::DocumentRefusal;
use crate::selection::CandidateRow;
use crate::unevaluated::UnevaluatedDocuments;

/// A grouped query in progress. Candidates come in any order; a document with several entries in an
/// index may come several times.
#[derive(Debug)]
pub struct Grouping {
    filter: Arc<Filter>,
    groups: GroupTable,
    now_ms: i64,
    /// The maximum number of documents in groups.
    max: usize,
    seen: HashSet<Vec<u8>>,
    matched: usize,
    held_bytes: usize,
    /// Documents that are in no group.
    pub unevaluated: UnevaluatedDocuments,
}

impl Grouping {
    /// Starts without documents. The filter contains what the caller may read; `None` for
    /// everything.
    #[must_use]
    pub fn new(
        (filter, readable): (Arc<Filter>, Option<Arc<Filter>>),
        group: Arc<GroupDefinition>,
        now_ms: i64,
        max: usize,
    ) -> Self {
        Self {
            filter,
            groups: GroupTable::new(group),
            now_ms,
            max,
            seen: HashSet::new(),
            matched: 0,
            held_bytes: 0,
            unevaluated: UnevaluatedDocuments::new(readable),
        }
    }

    /// Adds candidates.
    pub fn feed<'c>(
        &mut self,
        candidates: impl Iterator<Item = CandidateRow<'c>>,
    ) -> Result<(), DocumentRefusal> {
        for candidate in candidates {
            let document = Document::trusted(candidate.body);
            let share = match self.share(document) {
                Ok(Some(share)) => share,
                Ok(None) => continue,
                Err(failure) => {
                    let unevaluated = &mut self.unevaluated;
                    unevaluated.note(candidate.key, document, &failure, self.now_ms);
                    continue;
                }
            };
            if candidate.entry.is_some() && !self.seen.insert(candidate.key.to_vec()) {
                continue;
            }
            self.matched += 1;
            if self.matched > self.max {
                let detail = format!("a query may group at most {} documents", self.max);
                return Err(DocumentRefusal::new("query_too_expensive", detail));
            }
            self.add(share);
        }
        Ok(())
    }

    fn add(&mut self, share: GroupShare) {
        let groups = self.groups.len();
        let kept = self.groups.add(share);
        self.held_bytes += kept.bytes();
        if self.groups.len() > groups {
            // Accounts for the key, the row's `_id`, and the rendered row.
            self.held_bytes += 3 * kept.key().len();
        }
    }

    /// The maximum bytes that the groups use.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// A document's contribution to its group; `None` if it does not match.
    fn share(&self, document: Document<'_>) -> Result<Option<GroupShare>, EvaluationFailure> {
        let environment = EvaluationContext::at(self.now_ms);
        if !self.filter.matches_in(document, &environment)? {
            return Ok(None);
        }
        self.groups.group().share(document).map(Some)
    }

    /// Some of the groups in order, as a JSON array of envelopes.
    pub fn render(
        &self,
        sort: Option<&Sort>,
        (offset, limit): (usize, usize),
        form: Form,
    ) -> Result<String, DocumentRefusal> {
        let mut out = String::from("[");
        for (number, row) in self.groups.window(sort, offset, limit)?.iter().enumerate() {
            if number > 0 {
                out.push(',');
            }
            let row = row.body.as_ref();
            write_group(
                &mut out,
                row.get("_id").unwrap_or(ValueRef::Null),
                row,
                form,
            );
        }
        out.push(']');
        Ok(out)
    }
}
