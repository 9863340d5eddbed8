//! One sorted query: its rows, and the pending writes.

mod applying;
mod document_fetch;
mod settling;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{
    Cause, Foreign, LookupSide, NodeEvent, QueryDefinition, QueryHash, ResultRow, StreamId,
    WindowChange,
};
use crate::snapshot::PgSnapshot;
use crate::sort_order::SortOrder;

use super::answers::FilterAnswers;
use super::query_write::QueryWrite;
use super::retained_rows::{RetainedRows, RowCollector};
use super::rows::SortedRows;

pub(super) use applying::Advance;
pub(super) use document_fetch::{DocumentFetch, MissingDocuments};
pub(super) use settling::{Aside, AsideVerdict, RowRequest};

/// Earlier reports about a query that are not kept: rows must have seen them.
#[derive(Debug, Default)]
pub(super) struct OrphanHistory {
    /// Transactions.
    pub(super) xids: Vec<u64>,
    /// Whatever this sees.
    pub(super) snapshot: Option<PgSnapshot>,
    /// Some of those up to this one.
    pub(super) below: u64,
}

/// One sorted query.
#[derive(Debug)]
pub(super) struct SortedQuery {
    pub(super) hash: QueryHash,
    pub(super) activation: u64,
    pub(super) collection: [u8; 16],
    /// The collections that are looked up.
    pub(super) sides: Arc<[LookupSide]>,
    order: SortOrder,
    offset: usize,
    limit: Option<usize>,
    pub(super) slack: u32,
    renewed_us: Option<u64>,
    rows: RetainedRows,
    /// The window that was last reported, while an unknown document is referred to.
    held_window: Option<Vec<Arc<ResultRow>>>,
    /// What the rows have seen, besides the steps that were applied.
    snapshot: PgSnapshot,
    /// Transactions that were applied and that `pruned` does not see.
    applied: Vec<u64>,
    pruned: Option<PgSnapshot>,
    queue: VecDeque<QueryWrite>,
    /// The last step that was present when the rows arrived. Until then filter nodes may have
    /// reported what makes up for what these rows lack.
    compensated_until: StreamId,
    /// Rows read by a rebuild may be ahead of what filter nodes know, until their ticks have
    /// reached this.
    ahead: Option<PgSnapshot>,
    pub(super) waiting: Option<RowRequest>,
    /// The pending request for documents that it refers to.
    question: Option<DocumentFetch>,
    /// New rows that not all filter nodes have answered for.
    pub(super) aside: Option<Aside>,
    /// Whether rows were taken before.
    pub(super) shown: bool,
    /// A subscriber joined while the rows were incomplete, and is to be sent them when they are
    /// complete.
    pub(super) rebase_pending: bool,
    /// The last request for it that was read here.
    pub(super) read: StreamId,
    /// The newest access rules under which any of the rows may have been written.
    rules_version: u64,
    pub(super) answers: FilterAnswers,
    /// What the rows have seen with which filter nodes may have started since rows were taken here.
    /// They do not report any of it.
    begun: Vec<PgSnapshot>,
    /// Rows must have seen some transactions up to this one.
    pub(super) below: u64,
    /// Whether a document that cannot be placed was written since that was last reported.
    pub(super) unevaluated: bool,
    /// Versions of removed documents, and since when.
    removals: HashMap<Arc<[u8]>, u64>,
    removals_since: VecDeque<(u64, Arc<[u8]>)>,
}

impl SortedQuery {
    /// A query whose rows have not arrived yet: [`SortedQuery::settle`].
    pub(super) fn new(definition: &QueryDefinition) -> Result<Self, DocumentRefusal> {
        let filter = crate::filter_node::parse(definition)?;
        Ok(Self {
            hash: definition.hash,
            activation: definition.activation,
            collection: definition.collection,
            sides: Arc::clone(&definition.sides),
            order: SortOrder::parse(definition, filter)?,
            offset: to_usize(definition.offset),
            limit: definition.limit.map(to_usize),
            slack: definition.slack,
            renewed_us: None,
            rows: RetainedRows::Rows(SortedRows::new(Vec::new(), false, 0)),
            held_window: None,
            snapshot: PgSnapshot::default(),
            applied: Vec::new(),
            pruned: None,
            queue: VecDeque::new(),
            compensated_until: StreamId::default(),
            ahead: None,
            waiting: None,
            question: None,
            aside: None,
            shown: false,
            rebase_pending: false,
            read: StreamId::default(),
            rules_version: 0,
            answers: FilterAnswers::default(),
            begun: Vec::new(),
            below: 0,
            unevaluated: false,
            removals: HashMap::new(),
            removals_since: VecDeque::new(),
        })
    }

    /// Starts with what was reported about it before its rows arrived.
    pub(super) fn begin(&mut self, answers: FilterAnswers, history: OrphanHistory, now_us: u64) {
        self.answers = answers;
        self.pruned = history.snapshot;
        self.applied = history.xids;
        self.below = history.below;
        self.waiting = Some(RowRequest {
            asked_us: now_us,
            dropped: Vec::new(),
        });
    }

    /// What was reported of the query in this activation.
    pub(super) fn into_history(self) -> OrphanHistory {
        let dropped = self.waiting.into_iter().flat_map(|waiting| waiting.dropped);
        let queued = self.queue.iter().map(|step| step.image.xid);
        let mut xids = self.applied;
        xids.extend(dropped.chain(queued));
        OrphanHistory {
            xids,
            snapshot: self.pruned,
            below: self.below,
        }
    }

    /// The row at which the window ends; `None` for all rows.
    fn window_end(&self) -> Option<usize> {
        Some(self.offset.saturating_add(self.limit?))
    }

    /// How many rows are kept.
    fn capacity(&self, max_rows: usize) -> usize {
        let wanted = self.window_end();
        wanted.map_or(max_rows, |rows| rows.saturating_add(to_usize(self.slack)))
    }

    /// Collects its documents one by one.
    pub(super) fn gathered(
        &self,
        definition: &QueryDefinition,
        foreign: Option<&[Foreign]>,
        max_rows: usize,
    ) -> Result<RowCollector, DocumentRefusal> {
        RowCollector::new(definition, foreign, self.capacity(max_rows), max_rows)
    }

    pub(super) fn order(&self) -> &SortOrder {
        &self.order
    }

    pub(super) fn window(&self) -> Vec<Arc<ResultRow>> {
        if let Some(window) = &self.held_window {
            return window.clone();
        }
        let limit = self.limit.unwrap_or(usize::MAX);
        self.rows.window(self.offset, limit)
    }

    /// Whether a result without limit, or a grouped one, has become too large to be kept.
    pub(super) fn is_too_large(&self) -> bool {
        self.rows.is_overfull() || (self.limit.is_none() && !self.rows.reaches(usize::MAX))
    }

    /// Whether rows at the end of the window may be missing.
    pub(super) fn is_short(&self) -> bool {
        self.window_end()
            .is_some_and(|rows| !self.rows.reaches(rows))
    }

    /// Whether rows refer to an unknown document.
    pub(super) fn has_unknown_references(&self) -> bool {
        self.rows.has_unknown_references()
    }

    /// Rows are not reported before the documents they refer to have arrived. Until then the window
    /// is this one.
    pub(super) fn hold(&mut self, window: Vec<Arc<ResultRow>>) {
        self.held_window = Some(window);
    }

    /// Whether the window differs from the rows.
    pub(super) const fn is_on_hold(&self) -> bool {
        self.held_window.is_some()
    }

    /// Takes the window from the rows again and returns the previous one.
    pub(super) fn refresh_window(&mut self) -> Vec<Arc<ResultRow>> {
        self.held_window.take().unwrap_or_default()
    }

    /// Whether more was applied than can be applied again.
    pub(super) fn is_aside_overfull(&self, max_waiting: usize) -> bool {
        let aside = self.aside.as_ref();
        aside.is_some_and(|aside| aside.steps.len() > max_waiting)
    }

    /// Rows were read that may have been written under these access rules, by collection.
    pub(super) fn apply_rules(&mut self, rules: &HashMap<[u8; 16], u64>) {
        self.apply_rules_version(rules.get(&self.collection).copied().unwrap_or(0));
        let newer = |side: &LookupSide| {
            let known = rules.get(&side.collection);
            side.rules_version != 0 && known.is_some_and(|known| *known > side.rules_version)
        };
        if self.sides.iter().any(newer) {
            self.apply_rules_version(u64::MAX);
        }
    }

    /// Rows arrive that may have been written under these access rules; the highest number stands
    /// for rules other than the query's.
    pub(super) fn apply_rules_version(&mut self, version: u64) {
        self.rules_version = self.rules_version.max(version);
    }

    pub(super) fn window_event(
        &self,
        image: Option<Cause>,
        changes: Vec<WindowChange>,
    ) -> NodeEvent {
        NodeEvent::Window {
            query: self.hash,
            activation: self.activation,
            rules_version: self.rules_version,
            image,
            changes,
        }
    }

    /// The window from which new subscribers start.
    pub(super) fn rebase(&self, max_bytes: usize) -> Vec<NodeEvent> {
        let mut parts: Vec<Vec<ResultRow>> = vec![Vec::new()];
        let mut bytes = 0;
        for row in self.window() {
            let size = 64 + row.key.len() + row.body.len();
            if bytes + size > max_bytes && bytes > 0 {
                parts.push(Vec::new());
                bytes = 0;
            }
            bytes += size;
            if let Some(part) = parts.last_mut() {
                part.push(ResultRow::clone(&row));
            }
        }
        let count = parts.len();
        let parts = parts.into_iter().enumerate();
        let event = parts.map(|(part, rows)| NodeEvent::Rebase {
            query: self.hash,
            activation: self.activation,
            snapshot: self.snapshot.clone(),
            rules_version: self.rules_version,
            rows,
            part: u32::try_from(part).unwrap_or(u32::MAX),
            last: part + 1 == count,
        });
        event.collect()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

pub(super) fn to_usize(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
