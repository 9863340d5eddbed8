//! The sort node: the windows of the sorted queries of one query partition.
//!
//! For each query it keeps the first rows, up to the end of the window and some beyond (slack), and
//! applies the filter nodes' reports to them. A row placed after the last known one is dropped,
//! because whether it is the next one is unknown. When so many rows have left that the window's end
//! is unknown, the query must be read again (`Renew`); until then steps are collected.
//!
//! For a grouped query it keeps all documents, reduced to what their groups need
//! ([`grouped_rows`]), and reports the rows that stand for groups.
//!
//! For a query with lookups it also keeps the looked-up documents ([`joined`]); reports about
//! looked-up collections go to all queries that use them ([`sides`]).
//!
//! The writes of a batch are applied together, once every filter node concerned has handled its
//! part; later writes of the query queue after them. So one `Window` is one write, one batch or one
//! renewal.
//!
//! ```text
//! requests ── Request ▶ registration ──▶ Rebase, Active
//! log ─────── Log ────▶ sources (order, completeness) ─▶ query (queue) ─▶ Window, Renew
//!                       └ ticks of all filter nodes ────────────────────▶ Tick, or Rebuild
//! documents ─ Rows ───▶ rebuild ──▶ Start, Rebase …, Rebased
//! ```

mod answers;
mod config;
mod document_fetches;
mod grouped_rows;
mod joined;
mod order;
mod orphans;
mod query;
mod rebuild;
mod registration;
mod retained_rows;
mod rows;
mod sides;
mod sources;
mod steps;

pub use config::SortNodeConfig;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use rillbase_documents::refusal::DocumentRefusal;

use crate::message::{
    NodeEvent, NodeRequest, Notification, NotificationSource, QueryHash, StreamId, StreamTick,
};
use crate::node::{self, NodeOutput, Voice, Why};
use crate::snapshot::PgSnapshot;

use answers::FilterAnswers;
pub(crate) use order::SortOrder;
use orphans::Orphans;
use query::{Advance, QueryWrite, SortedQuery};
use rebuild::SortRebuild;
use sides::SharedSides;
use sources::{EntryVerdict, Sources};
pub(crate) use steps::steps;

/// The input of a sort node.
pub type Input = node::NodeInput<Notification>;

/// The state machine of a sort node. See the module.
#[derive(Debug)]
pub struct SortNode {
    config: SortNodeConfig,
    voice: Voice,
    phase: SortPhase,
    queries: BTreeMap<QueryHash, SortedQuery>,
    /// Queries that do not concern this node: reports about them are not orphans.
    unsorted: HashSet<QueryHash>,
    /// Queries whose steps wait for the rest of a batch.
    held: BTreeSet<QueryHash>,
    /// Queries that refer to unknown documents.
    lacking: BTreeSet<QueryHash>,
    /// How many requests this holder has made.
    questions: u64,
    orphans: Orphans,
    sides: SharedSides,
    sources: Sources,
    /// What the last rebuild has seen.
    rebuilt: PgSnapshot,
    /// The last tick of all filter nodes: everything that it sees was reported.
    complete: Option<PgSnapshot>,
}

#[derive(Debug)]
enum SortPhase {
    /// Its state is incomplete, and no rebuild has started.
    NeedsRebuild,
    Rebuilding(Box<SortRebuild>),
    Running,
}

/// Figures about a sort node for operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SortFigures {
    /// Registered queries.
    pub queries: usize,
    /// Their rows, slack included.
    pub rows: usize,
    /// Queries that wait for new rows.
    pub waiting: usize,
}

impl SortNode {
    /// A node without state. Its first input must be [`Input::Start`].
    pub fn new(config: SortNodeConfig) -> Self {
        Self {
            voice: Voice::new(NotificationSource::Sort, config.token),
            phase: SortPhase::NeedsRebuild,
            queries: BTreeMap::new(),
            unsorted: HashSet::new(),
            held: BTreeSet::new(),
            lacking: BTreeSet::new(),
            questions: 0,
            orphans: Orphans::new(config.max_waiting, config.orphans_us),
            sides: config.sides(),
            sources: Sources::new(config.partitions, StreamId::default()),
            rebuilt: PgSnapshot::default(),
            complete: None,
            config,
        }
    }

    /// Handles one input.
    pub fn handle(&mut self, input: Input, now_us: u64, out: &mut Vec<NodeOutput>) {
        match input {
            Input::Start => self.start(out),
            Input::Begin(begin) => self.begin(begin, out),
            Input::Rows { collection, rows } => self.rows(collection, &rows),
            Input::End => self.end(now_us, out),
            Input::Request { id, request } if self.is_running() => {
                self.request(id, request, now_us, out);
            }
            Input::Entry { id, entry } if self.is_running() => self.log(id, entry, now_us, out),
            // What the entry reported is in the documents that a rebuild reads.
            Input::Quarantined { .. } if self.is_running() => self.give_up(Why::Unreadable, out),
            Input::LeftOut { collection } if self.is_running() => {
                self.poison(collection, out);
            }
            Input::Idle if self.is_running() => self.idle(now_us, out),
            Input::Request { .. }
            | Input::Entry { .. }
            | Input::Quarantined { .. }
            | Input::LeftOut { .. }
            | Input::Idle => {}
        }
    }

    /// Whether it keeps windows; otherwise it waits for a rebuild or is being rebuilt.
    pub const fn is_running(&self) -> bool {
        matches!(self.phase, SortPhase::Running)
    }

    /// The node's figures.
    pub fn figures(&self) -> SortFigures {
        let waiting = self
            .queries
            .values()
            .filter(|query| query.waiting.is_some());
        SortFigures {
            queries: self.queries.len(),
            rows: self.queries.values().map(SortedQuery::len).sum(),
            waiting: waiting.count(),
        }
    }

    fn log(
        &mut self,
        id: StreamId,
        notification: Notification,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        match self.sources.check_entry(id, &notification) {
            EntryVerdict::Nothing => return,
            EntryVerdict::Lost => return self.give_up(Why::Lost, out),
            EntryVerdict::News => {}
        }
        let NotificationSource::Filter(partition) = notification.source else {
            return;
        };
        match notification.event {
            NodeEvent::Match {
                image,
                added,
                changed,
                removed,
            } => {
                let image = Arc::new(image);
                let matching = added.into_iter().chain(changed);
                let step = |matches| QueryWrite {
                    image: Arc::clone(&image),
                    matches,
                    at: id,
                    partition,
                    side: None,
                };
                for query in matching {
                    self.step(query, step(true), now_us, out);
                }
                for query in removed {
                    self.step(query, step(false), now_us, out);
                }
            }
            NodeEvent::Done { xid } => {
                self.sources.done(partition, xid, id);
                self.release(now_us, out);
            }
            NodeEvent::Tick(tick) => self.tick(partition, (&tick, id), now_us, out),
            NodeEvent::TooOld {
                query,
                activation,
                request,
            } => self.answered(
                (query, activation),
                (partition, request),
                false,
                now_us,
                out,
            ),
            NodeEvent::Active {
                query,
                activation,
                request,
            } => self.answered((query, activation), (partition, request), true, now_us, out),
            NodeEvent::Start => {
                self.orphans.restarted(partition);
                for query in self.queries.values_mut() {
                    query.answers.restarted(partition);
                }
            }
            NodeEvent::Failed { query, .. } => {
                self.remove(&query);
            }
            NodeEvent::Rebased { snapshot } if self.rebuilt.covers(&snapshot) => {
                self.sources.rebased(partition, snapshot, id);
                self.doubt(now_us, out);
            }
            NodeEvent::Rebased { .. } => self.give_up(Why::FilterNode, out),
            NodeEvent::Rebase { .. }
            | NodeEvent::Window { .. }
            | NodeEvent::Renew { .. }
            | NodeEvent::Fetch { .. }
            | NodeEvent::Unevaluated { .. } => {}
        }
    }

    fn step(&mut self, hash: QueryHash, step: QueryWrite, now_us: u64, out: &mut Vec<NodeOutput>) {
        if self.unsorted.contains(&hash) {
            return;
        }
        let of_side = QueryWrite {
            side: Some(hash),
            ..step.clone()
        };
        if let Some(users) = self.sides.take(&hash, &of_side, now_us) {
            for user in users {
                if let Some(query) = self.queries.get_mut(&user) {
                    query.push(of_side.clone(), self.config.max_waiting);
                    self.advance(user, now_us, out);
                }
            }
            return;
        }
        match self.queries.get_mut(&hash) {
            Some(query) => {
                query.push(step, self.config.max_waiting);
                self.advance(hash, now_us, out);
            }
            None => self.orphans.push(hash, step, now_us),
        }
    }

    /// Applies the pending changes of a query that can be applied.
    fn advance(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let remembered = (now_us, self.config.remembered_us);
        loop {
            let Some(query) = self.queries.get_mut(&hash) else {
                return;
            };
            let advance = query.advance(&self.sources, self.complete.as_ref(), remembered);
            if std::mem::take(&mut query.unevaluated) {
                let queries = vec![hash];
                self.voice.emit(NodeEvent::Unevaluated { queries }, out);
            }
            match advance {
                Ok(Advance::Stuck) => break,
                Ok(Advance::Unseen) => {}
                Ok(Advance::Whole) => self.show(hash, out),
                Ok(Advance::Seen(event)) => self.voice.emit(event, out),
                Err(refusal) => return self.fail(hash, &refusal, out),
            }
            self.check(hash, now_us, out);
        }
        let held = self.queries.get(&hash).is_some_and(SortedQuery::is_held);
        if held {
            self.held.insert(hash);
        } else {
            self.held.remove(&hash);
        }
    }

    /// Requests new rows if the window's end is unknown.
    fn check(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        let Some(query) = self.queries.get_mut(&hash) else {
            return;
        };
        if !query.shown {
            return self.look_for(hash, now_us, out);
        }
        if query.is_too_large() {
            let rows = self.config.max_rows;
            let detail = format!("a live result has at most {rows} rows, and 256 MiB");
            self.fail(hash, &DocumentRefusal::new("result_too_large", detail), out);
        } else if query.has_too_much_aside(self.config.max_waiting) {
            query.aside = None;
            self.renew(hash, now_us, out);
        } else if query.is_short() {
            self.renew(hash, now_us, out);
        } else {
            self.look_for(hash, now_us, out);
        }
    }

    /// Requests new rows, unless that was done.
    fn renew(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        if let Some(query) = self.queries.get_mut(&hash)
            && query.waiting.is_none()
        {
            query.wait(self.config.max_slack, now_us);
            self.ask(hash, now_us, out);
        }
    }

    fn ask(&mut self, hash: QueryHash, now_us: u64, out: &mut Vec<NodeOutput>) {
        if let Some(query) = self.queries.get_mut(&hash)
            && let Some(waiting) = &mut query.waiting
        {
            waiting.asked_us = now_us;
            let event = NodeEvent::Renew {
                query: hash,
                activation: query.activation,
                slack: query.slack,
            };
            self.voice.emit(event, out);
        }
    }

    /// A filter node continues from the rows of a request, or does not: then other rows are needed
    /// here, too.
    fn answered(
        &mut self,
        (hash, activation): (QueryHash, u64),
        (partition, request): (u16, StreamId),
        accepted: bool,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        if self.unsorted.contains(&hash) {
            return;
        }
        let note = |answers: &mut FilterAnswers| {
            if accepted {
                answers.accepted(partition, request);
            } else {
                answers.refused(partition, request);
            }
        };
        match self.queries.get_mut(&hash) {
            Some(query) if query.activation == activation => {
                note(&mut query.answers);
                if !accepted {
                    self.renew(hash, now_us, out);
                }
                self.confirm(hash, now_us, out);
            }
            Some(query) if query.activation > activation => {}
            _ => self.orphans.answered((hash, activation), now_us, note),
        }
    }

    /// A filter node was rebuilt: rows read earlier lack what it does not report.
    fn doubt(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        let behind = self.queries.iter().filter_map(|(hash, query)| {
            let behind = query.is_behind(&self.sources);
            behind.then_some(*hash)
        });
        for hash in behind.collect::<Vec<_>>() {
            self.renew(hash, now_us, out);
            self.confirm(hash, now_us, out);
        }
    }

    fn tick(
        &mut self,
        partition: u16,
        (tick, at): (&StreamTick, StreamId),
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        self.sources.tick(partition, tick, at);
        self.release(now_us, out);
        if let Some(tick) = self.sources.common_tick() {
            self.complete = Some(tick.snapshot.clone());
            self.resolve_all(now_us, out);
            self.voice.emit(NodeEvent::Tick(tick), out);
        }
    }

    /// Applies batches that may have become complete.
    fn release(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        for hash in self.held.clone() {
            self.advance(hash, now_us, out);
        }
    }

    fn idle(&mut self, now_us: u64, out: &mut Vec<NodeOutput>) {
        self.orphans.forget(now_us);
        let again_us = self.config.renew_again_us;
        let late = self.queries.iter().filter_map(|(hash, query)| {
            let waiting = query.waiting.as_ref()?;
            let late = waiting.asked_us.saturating_add(again_us) <= now_us;
            late.then_some(*hash)
        });
        for hash in late.collect::<Vec<_>>() {
            self.ask(hash, now_us, out);
        }
        self.look_again(now_us, out);
    }

    /// Ends the queries that an unreadable document may concern.
    fn poison(&mut self, collection: [u8; 16], out: &mut Vec<NodeOutput>) {
        let poisoned = self.queries.values();
        let poisoned = poisoned.filter(|query| {
            let mut sides = query.sides.iter();
            query.collection == collection || sides.any(|side| side.collection == collection)
        });
        for hash in poisoned.map(|query| query.hash).collect::<Vec<_>>() {
            let detail = "a document could not be placed";
            self.fail(hash, &DocumentRefusal::new("poison", detail), out);
        }
    }

    fn give_up(&mut self, why: Why, out: &mut Vec<NodeOutput>) {
        self.phase = SortPhase::NeedsRebuild;
        out.push(NodeOutput::Rebuild(why));
    }

    fn fail(&mut self, hash: QueryHash, refusal: &DocumentRefusal, out: &mut Vec<NodeOutput>) {
        self.remove(&hash);
        self.held.remove(&hash);
        self.refuse(hash, refusal, out);
    }

    fn remove(&mut self, hash: &QueryHash) -> Option<SortedQuery> {
        let query = self.queries.remove(hash)?;
        self.lacking.remove(hash);
        self.sides.leave(hash, &query.sides);
        Some(query)
    }

    fn refuse(&mut self, query: QueryHash, refusal: &DocumentRefusal, out: &mut Vec<NodeOutput>) {
        let event = NodeEvent::Failed {
            query,
            code: refusal.code.clone().into_owned(),
            detail: refusal.detail.clone(),
        };
        self.voice.emit(event, out);
    }

    fn request(
        &mut self,
        id: StreamId,
        request: NodeRequest,
        now_us: u64,
        out: &mut Vec<NodeOutput>,
    ) {
        match request {
            NodeRequest::Expire { query, activation } => self.expire(query, activation, now_us),
            NodeRequest::Register { query, .. } if !query.sorted => {
                self.orphans.adopt(&query.hash, now_us);
                self.unsorted.insert(query.hash);
            }
            NodeRequest::Register {
                query,
                snapshot,
                rows,
                complete,
                foreign,
                renewal,
                positions: _,
            } => {
                let registration = registration::SortRegistration {
                    id,
                    query: &query,
                    snapshot: &snapshot,
                    rows: &rows,
                    complete,
                    foreign: &foreign,
                    renewal,
                };
                self.register(&registration, now_us, out);
            }
            NodeRequest::Fetched { fetch, documents } => {
                self.fetched(&fetch, documents, now_us, out);
            }
        }
    }
}
