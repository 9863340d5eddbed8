//! Evaluates a query on candidates and produces the result.
//!
//! The store reads rows that may match; here the filter decides, and offset, limit and cursor are
//! applied in the requested order. Candidates arrive in that order ([`CandidateOrder::Ordered`],
//! [`CandidateOrder::ByIndex`]) or in any ([`CandidateOrder::Unordered`]).
//!
//! Reading an index in order is delicate with arrays: a document has several entries, and its sort
//! position is only one of them. A document found at another entry is skipped if its position is
//! within the ranges that are read; if it is not, the order of this index cannot answer the query,
//! and the store reads in another way ([`SelectionProgress::Misplaced`]).

use std::collections::{BinaryHeap, HashSet};

use rillbase_query::bson::Document;
use rillbase_query::environment::EvaluationContext;
use rillbase_query::error::EvaluationFailure;
use rillbase_query::fuel::Fuel;
use rillbase_query::sort::{Sort, SortKey, SystemFields};

use crate::entry::ENTRY_BYTES;
use crate::envelope::Meta;
use crate::page::{PageBoundary, PageRow, ResultPage};
use crate::refusal::DocumentRefusal;
use crate::selection_request::{CandidateOrder, IndexOrder, SelectionRequest};
use crate::unevaluated::UnevaluatedDocuments;

/// A row that may match.
#[derive(Debug, Clone, Copy)]
pub struct CandidateRow<'c> {
    /// The document's key.
    pub key: &'c [u8],
    /// Version and times.
    pub meta: Meta,
    /// BSON.
    pub body: &'c [u8],
    /// The entry through which it was found.
    pub entry: Option<&'c [u8]>,
}

/// Whether more candidates are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SelectionProgress {
    /// More are needed.
    More,
    /// The page is full.
    Enough,
    /// This index cannot provide the order.
    Misplaced,
}

/// The outcome of a candidate.
#[allow(
    clippy::large_enum_variant,
    reason = "it is taken apart at once, for each candidate"
)]
enum CandidateVerdict {
    Held(PageRow),
    PassedOver,
    Misplaced,
}

/// A query in progress.
#[derive(Debug)]
pub struct Selection {
    request: SelectionRequest,
    arrival: CandidateOrder,
    /// The sort of an index's remaining fields, as its entries encode them.
    index_sort: Option<Sort>,
    by_id: bool,
    needs_rank: bool,
    seen: HashSet<Vec<u8>>,
    /// Ordered: the rows of the page. Unordered: unused.
    page: Vec<PageRow>,
    heap: BinaryHeap<PageRow>,
    /// Rows whose entries are equal because they were truncated.
    ties: Vec<PageRow>,
    tied: Vec<u8>,
    tied_bytes: usize,
    held_bytes: usize,
    more: bool,
    /// Documents that are omitted.
    pub unevaluated: UnevaluatedDocuments,
    /// The number of candidates.
    pub examined: usize,
    /// The number of matching candidates.
    pub matched: usize,
}

impl Selection {
    /// Starts a selection.
    #[must_use]
    pub fn new(request: SelectionRequest, arrival: CandidateOrder) -> Self {
        let by_id = request.sort == Sort::default();
        let needs_rank = request.sort.keys().iter().any(SortKey::is_rank);
        let index_sort = match &arrival {
            CandidateOrder::ByIndex(order) => Some(Sort::of_fields(&order.fields, order.backward)),
            _ => None,
        };
        Self {
            unevaluated: UnevaluatedDocuments::new(request.readable.clone()),
            request,
            arrival,
            index_sort,
            by_id,
            needs_rank,
            seen: HashSet::new(),
            page: Vec::new(),
            heap: BinaryHeap::new(),
            ties: Vec::new(),
            tied: Vec::new(),
            tied_bytes: 0,
            held_bytes: 0,
            more: false,
            examined: 0,
            matched: 0,
        }
    }

    const fn row_limit(&self) -> usize {
        self.request.offset.saturating_add(self.request.limit)
    }

    /// Adds candidates.
    pub fn feed<'c>(
        &mut self,
        candidates: impl Iterator<Item = CandidateRow<'c>>,
    ) -> Result<SelectionProgress, DocumentRefusal> {
        for candidate in candidates {
            self.examined += 1;
            match self.take(candidate)? {
                SelectionProgress::More => {}
                done => return Ok(done),
            }
        }
        Ok(SelectionProgress::More)
    }

    /// Adds a candidate, or omits it if it cannot be evaluated.
    fn take(&mut self, candidate: CandidateRow<'_>) -> Result<SelectionProgress, DocumentRefusal> {
        let document = Document::trusted(candidate.body);
        let held = match self.judge(candidate, document) {
            Ok(CandidateVerdict::Held(held)) => held,
            Ok(CandidateVerdict::PassedOver) => return Ok(SelectionProgress::More),
            Ok(CandidateVerdict::Misplaced) => return Ok(SelectionProgress::Misplaced),
            Err(failure) => {
                let now_ms = self.request.now_ms;
                let unevaluated = &mut self.unevaluated;
                unevaluated.note(candidate.key, document, &failure, now_ms);
                return Ok(SelectionProgress::More);
            }
        };
        match self.arrival {
            CandidateOrder::Unordered => self.hold(held),
            CandidateOrder::Ordered => Ok(self.append(held)),
            CandidateOrder::ByIndex(_) => {
                self.append_tied(held, candidate.entry.unwrap_or_default())
            }
        }
    }

    fn judge(
        &mut self,
        candidate: CandidateRow<'_>,
        document: Document<'_>,
    ) -> Result<CandidateVerdict, EvaluationFailure> {
        let environment = EvaluationContext::at(self.request.now_ms);
        let Some(position) = self.request.filter.position_in(document, &environment)? else {
            return Ok(CandidateVerdict::PassedOver);
        };
        if let (CandidateOrder::ByIndex(order), Some(entry)) = (&self.arrival, candidate.entry) {
            let sort_position = self.index_position(order, document)?;
            if sort_position != entry {
                let elsewhere = order.ranges.iter().any(|range| {
                    sort_position >= range.low
                        && range.high.as_ref().is_none_or(|high| sort_position < *high)
                });
                return Ok(if elsewhere {
                    CandidateVerdict::PassedOver
                } else {
                    CandidateVerdict::Misplaced
                });
            }
        }
        let sort_position = self.sort_position(candidate, document)?;
        self.check_parts(document)?;
        if matches!(self.arrival, CandidateOrder::Unordered)
            && candidate.entry.is_some()
            && !self.seen.insert(candidate.key.to_vec())
        {
            return Ok(CandidateVerdict::PassedOver);
        }
        self.matched += 1;
        let after = self.request.after.as_ref();
        if after.is_some_and(|after| sort_position <= *after) {
            return Ok(CandidateVerdict::PassedOver);
        }
        Ok(CandidateVerdict::Held(PageRow {
            sort_position,
            key: candidate.key.to_vec(),
            entry: candidate.entry.unwrap_or_default().to_vec(),
            body: match &self.request.group {
                None => candidate.body.to_vec(),
                Some(group) => group.reduce(document).into_bytes(),
            },
            version: candidate.meta.version,
            created_ms: candidate.meta.created_ms,
            updated_ms: candidate.meta.updated_ms,
            position,
            embedded: None,
        }))
    }

    /// Whether everything else that is derived from a document can be evaluated.
    fn check_parts(&self, document: Document<'_>) -> Result<(), EvaluationFailure> {
        if let Some(group) = &self.request.group {
            group.share(document)?;
        }
        let lookups = self.request.lookups.iter();
        for lookup in lookups.flat_map(|lookups| lookups.iter()) {
            lookup.references(document)?;
        }
        Ok(())
    }

    /// The sort position of a document, `_id` included.
    fn sort_position(
        &self,
        candidate: CandidateRow<'_>,
        document: Document<'_>,
    ) -> Result<Vec<u8>, EvaluationFailure> {
        if self.by_id {
            return Ok(candidate.key.to_vec());
        }
        let rank = if self.needs_rank {
            let environment = EvaluationContext::at(self.request.now_ms);
            self.request
                .filter
                .rank_in(document, &environment)?
                .unwrap_or_default()
        } else {
            0.0
        };
        let system = SystemFields {
            rank,
            created_ms: candidate.meta.created_ms,
            updated_ms: candidate.meta.updated_ms,
        };
        self.request.sort.key(document, system, &Fuel::default())
    }

    /// The entry that determines a document's position in an index's order.
    fn index_position(
        &self,
        order: &IndexOrder,
        document: Document<'_>,
    ) -> Result<Vec<u8>, EvaluationFailure> {
        let Some(sort) = &self.index_sort else {
            return Ok(Vec::new());
        };
        let least = sort.key_of_fields(document, &Fuel::default())?;
        let mut sort_position = order.prefix.clone();
        if order.backward {
            sort_position.extend(least.iter().map(|byte| !byte));
        } else {
            sort_position.extend(least);
        }
        sort_position.truncate(ENTRY_BYTES);
        Ok(sort_position)
    }

    fn hold(&mut self, held: PageRow) -> Result<SelectionProgress, DocumentRefusal> {
        let room = self.row_limit().saturating_add(1);
        self.held_bytes += held.size();
        self.heap.push(held);
        if self.heap.len() > room
            && let Some(last) = self.heap.pop()
        {
            self.held_bytes -= last.size();
        }
        if self.held_bytes > self.request.max_bytes {
            return Err(too_much_to_sort());
        }
        Ok(SelectionProgress::More)
    }

    /// Adds the next document of the page. One more than requested is searched for, which shows
    /// whether there is another page.
    fn append(&mut self, mut held: PageRow) -> SelectionProgress {
        let full = self.page.len() >= self.row_limit()
            || (self.held_bytes > self.request.page_bytes && self.page.len() > self.request.offset);
        if full {
            self.more = true;
            return SelectionProgress::Enough;
        }
        // Documents before the page are only counted.
        if self.page.len() < self.request.offset {
            held.body = Vec::new();
        } else {
            self.held_bytes += held.size();
        }
        self.page.push(held);
        SelectionProgress::More
    }

    /// Truncated entries may be equal although their documents differ: those are sorted among
    /// themselves.
    fn append_tied(
        &mut self,
        held: PageRow,
        entry: &[u8],
    ) -> Result<SelectionProgress, DocumentRefusal> {
        if self.tied != entry
            && let SelectionProgress::Enough = self.settle_ties()
        {
            return Ok(SelectionProgress::Enough);
        }
        if entry.len() < ENTRY_BYTES {
            return Ok(self.append(held));
        }
        if self.tied != entry {
            entry.clone_into(&mut self.tied);
        }
        self.tied_bytes += held.size();
        self.ties.push(held);
        if self.tied_bytes > self.request.max_bytes {
            return Err(too_much_to_sort());
        }
        Ok(SelectionProgress::More)
    }

    fn settle_ties(&mut self) -> SelectionProgress {
        let mut ties = std::mem::take(&mut self.ties);
        self.tied.clear();
        self.tied_bytes = 0;
        ties.sort_unstable();
        for held in ties {
            if self.append(held) == SelectionProgress::Enough {
                return SelectionProgress::Enough;
            }
        }
        SelectionProgress::More
    }

    /// The rows of the page in order, and the position after which the next page starts, if there
    /// is one.
    pub fn finish(&mut self) -> ResultPage {
        self.settle_ties();
        if matches!(self.arrival, CandidateOrder::Unordered) {
            self.finish_heap();
        }
        let mut rows = std::mem::take(&mut self.page);
        rows.drain(..self.request.offset.min(rows.len()));
        let next = rows.last().filter(|_| self.more).map(|last| PageBoundary {
            sort_position: last.sort_position.clone(),
            entry: last.entry.clone(),
            key: last.key.clone(),
        });
        ResultPage { rows, next }
    }

    /// Takes as many of the first sorted documents as the page may have.
    fn finish_heap(&mut self) {
        let sorted = std::mem::take(&mut self.heap).into_sorted_vec();
        self.held_bytes = 0;
        for held in sorted {
            if self.append(held) == SelectionProgress::Enough {
                break;
            }
        }
    }

    /// How many documents are in the result, one more than requested at most.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.heap.len() + self.page.len()
    }

    /// The bytes of the held documents.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.held_bytes + self.tied_bytes
    }

    /// The request.
    #[must_use]
    pub const fn request(&self) -> &SelectionRequest {
        &self.request
    }
}

fn too_much_to_sort() -> DocumentRefusal {
    DocumentRefusal::new(
        "query_too_expensive",
        "sorting needs more memory than allowed; an index in the order of the sort helps",
    )
}
